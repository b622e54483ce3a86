"""Cases S01 to S07, U01 to U06 in one process, where the engine's own copy of a document can be looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lsp_harness import local_client
from random_edits import RandomEditor, span

pytestmark = pytest.mark.asyncio


async def test_s01_changes_of_unopened_documents_are_ignored(root: Path) -> None:
    """S01: full and incremental changes and a save before didOpen do nothing; after didOpen everything works."""
    uri = (root / "gov.py").as_uri()
    async with local_client() as client:
        await client.start(root)
        host = client.host(root)
        client.change(uri, {"text": "full"})
        client.change(uri, {"range": span((0, 0), (0, 1)), "text": "x"})
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert host.log == []
        client.open(uri, "abc\n")
        client.change(uri, {"range": span((0, 1), (0, 2)), "text": "B"})
        assert host.documents["gov.py"].text == "aBc\n"
        assert not [message for message in client.messages if "method" in message]


async def test_s02_opening_and_closing_twice(root: Path) -> None:
    """S02: a second didOpen replaces the text, a second didClose is ignored, and the document can be opened again."""
    uri = (root / "gov.py").as_uri()
    async with local_client() as client:
        await client.start(root)
        host = client.host(root)
        client.open(uri, "one", 1)
        client.open(uri, "two", 7)
        assert (host.documents["gov.py"].text, host.documents["gov.py"].version) == ("two", 7)
        for _ in range(2):
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert host.documents == {}
        await client.request("neuralmind/status", {})
        client.open(uri, "three", 1)
        assert host.documents["gov.py"].text == "three"
        assert [what for what, _ in host.log] == ["open", "change", "close", "open"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_s03_s05_random_edits_keep_the_texts_equal(root: Path, encoding: str) -> None:
    """S03, S05: after 500 incremental edits, several to a message and around emoji, server and client have one text."""
    editor = RandomEditor(encoding)
    uri = (root / "gov.py").as_uri()
    async with local_client() as client:
        result = await client.start(root, capabilities={"general": {"positionEncodings": [encoding]}})
        assert result["capabilities"]["positionEncoding"] == encoding
        client.open(uri, editor.text)
        for number in range(500):
            client.change(uri, *editor.message(), version=number + 2)
            if number % 50 == 49:
                assert client.host(root).documents["gov.py"].text == editor.text


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", (7, 11)), ("utf-16", (5, 9)), ("utf-32", (4, 8))])
async def test_s05_ranges_are_in_the_negotiated_unit(root: Path, encoding: str, expected: tuple[int, int]) -> None:
    """S05: a range behind an emoji, in an open document and on disk, is sent in the client's unit."""
    text = 'x = 0\n"😀" name\n'
    (root / "other.py").write_text(text)
    async with local_client() as client:
        await client.start(root, capabilities={"general": {"positionEncodings": ["utf-7", encoding]}})
        client.open((root / "gov.py").as_uri(), text)
        for path in ("gov.py", "other.py"):
            result = await client.request("neuralmind/search", {"query": f"at {path} 1 7 11"})
            found = result["hits"][0]["range"]
            assert (found["start"]["character"], found["end"]["character"]) == expected


async def test_s07_a_lone_surrogate_is_survived(root: Path) -> None:
    """S07: a lone surrogate in a change is replaced for the engine, and the frame that carries the text is valid."""
    uri = (root / "gov.py").as_uri()
    async with local_client() as client:
        await client.start(root)
        client.open(uri, "ab\n")
        client.change(uri, {"range": span((0, 1), (0, 1)), "text": "\ud83d"})
        assert client.host(root).documents["gov.py"].text == "a\ufffdb\n"
        client.change(uri, {"range": span((0, 2), (0, 2)), "text": "\ude00"})
        assert client.host(root).documents["gov.py"].text == "a😀b\n"
        result = await client.request("neuralmind/search", {"query": "text gov.py"})
        assert json.dumps(result).isascii()


async def test_u01_u02_u03_other_schemes_are_ignored_as_a_whole(root: Path) -> None:
    """U01, U02, U03: unsaved buffers, views of other tools and notebook cells reach neither engine nor index."""
    uris = [
        "untitled:Untitled-1",
        f"git:{root}/gov.py?ref",
        "vscode-vfs://github/a/gov.py",
        "output:tasks",
        "vscode-userdata:/settings.json",
        f"zipfile://{root}/a.zip::gov.py",
        str(root / "gov.py"),
        f"vscode-notebook-cell:{root}/a.ipynb#W0",
        f"vscode-notebook-cell:{root}/a.ipynb#W1",
        f"{(root / 'a.ipynb').as_uri()}#W0",
    ]
    async with local_client() as client:
        await client.start(root)
        notebook = {"uri": (root / "a.ipynb").as_uri(), "notebookType": "jupyter-notebook", "version": 1, "cells": []}
        client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": []})
        for uri in uris:
            client.open(uri, "x = 1\n")
            for number in range(20):
                client.change(uri, {"text": f"x = {number}\n"}, version=number + 2)
            client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert client.host(root).log == []
        assert [message for message in client.messages if "method" in message] == []


async def test_u04_one_document_under_several_spellings(tmp_path: Path) -> None:
    """U04: open, change and close under differing escapes are one document; answers use the client's own spelling."""
    root = tmp_path / "a b+ü"
    root.mkdir()
    base = f"file://{tmp_path}"
    opened, changed, closed = f"{base}/a b+ü/x#1.py", f"{base}/a%20b%2b%c3%bc/x%231.py", f"{base}/a b+ü/x%231.py"
    async with local_client() as client:
        await client.start(root)
        host = client.host(root)
        client.open(opened.replace("#", "%23"), "one")
        client.change(changed, {"text": "two"})
        assert host.documents["x#1.py"].text == "two"
        result = await client.request("neuralmind/search", {"query": "text x#1.py"})
        assert result["hits"][0]["uri"] == opened.replace("#", "%23")
        client.notify("textDocument/didClose", {"textDocument": {"uri": closed}})
        assert host.documents == {}
        assert [what for what, _ in host.log] == ["open", "change", "close"]


async def test_u06_a_folder_reached_through_a_link_is_one_folder(root: Path, tmp_path: Path) -> None:
    """U06: documents opened under the link and under the target belong to the one folder, whichever is the root."""
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    async with local_client() as client:
        await client.start(link)
        assert list(client.workspace.by_folder) == [root.resolve()]
        host = client.host(root)
        client.open((root / "gov.py").as_uri(), "by target")
        client.open((link / "gov.py").as_uri(), "by link")
        assert host.documents["gov.py"].text == "by link"
        client.notify("textDocument/didClose", {"textDocument": {"uri": (link / "gov.py").as_uri()}})
        assert host.documents["gov.py"].text == "by target"
        client.notify("textDocument/didClose", {"textDocument": {"uri": (root / "gov.py").as_uri()}})
        assert host.documents == {}
