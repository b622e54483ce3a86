"""Features of single places: hover, code actions, workspace symbols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsp_harness import local_client

pytestmark = pytest.mark.asyncio


def at(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}


@pytest.mark.parametrize(
    "uri",
    ["file:///nowhere.py", "untitled:Untitled-1", "git:/x/gov.py?ref", "output:x", "no scheme", "zipfile:///a::b"],
)
async def test_u02_places_the_memory_knows_nothing_about(root: Path, uri: str) -> None:
    """U01, U02: hover is null and code actions are empty for every scheme, with nothing shown to the user."""
    async with local_client() as client:
        await client.start(root)
        client.open(uri, "x")
        assert await client.request("textDocument/hover", at(uri)) is None
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
        params = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": []}}
        assert await client.request("textDocument/codeAction", params) == []
        assert [message for message in client.messages if "method" in message] == []


async def test_workspace_symbols_are_off_until_switched_on(root: Path) -> None:
    query = {"query": "at gov.py 0 4 12"}
    async with local_client() as client:
        await client.start(root)
        assert await client.request("workspace/symbol", query) == []
    async with local_client() as client:
        await client.start(root, options={"settings": {"symbols": {"code": True}}})
        (symbol,) = await client.request("workspace/symbol", query)
        assert (symbol["name"], symbol["kind"], symbol["containerName"]) == ("f", 12, "gov.py")
        assert symbol["location"] == {
            "uri": (root / "gov.py").as_uri(),
            "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 12}},
        }
        assert await client.request("workspace/symbol", {"query": " "}) == []


async def test_workspace_symbols_of_several_folders(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    async with local_client() as client:
        await client.start(root, second, options={"settings": {"symbols.code": True}})
        symbols = await client.request("workspace/symbol", {"query": "at gov.py 0 0 0"})
        assert [symbol["location"]["uri"] for symbol in symbols] == [
            (root / "gov.py").as_uri(),
            (second / "gov.py").as_uri(),
        ]
