"""Progress, notices and notifications: what the client sees of the engine's events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsp_harness import FULL, LocalClient, local_client

from nm_lsp.engine.requests import IndexFinished, IndexProgress, Phase
from nm_lsp.server import progress

pytestmark = pytest.mark.asyncio

CREATE = "window/workDoneProgress/create"


def step(root: Path, percent: int | None = 10) -> IndexProgress:
    return IndexProgress(str(root), Phase.KEYWORD, percent, "reading")


def shown(client: LocalClient) -> list[dict[str, Any]]:
    return [message["params"]["value"] for message in client.messages if message.get("method") == "$/progress"]


def creations(client: LocalClient) -> list[dict[str, Any]]:
    return [message for message in client.messages if message.get("method") == CREATE]


async def accept(client: LocalClient, number: int = 0) -> str:
    await client.until(lambda: len(creations(client)) > number)
    asked = creations(client)[number]
    client.receive({"id": asked["id"], "result": None})
    return str(asked["params"]["token"])


async def test_a_build_is_begun_reported_and_ended(root: Path) -> None:
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        handle = client.server.reporter.handle
        handle(step(root, None))
        token = await accept(client)
        await client.until(lambda: len(shown(client)) == 1)
        handle(step(root, 60))
        handle(IndexFinished(str(root), "42 files"))
        begin, report, end = shown(client)
        assert (begin["kind"], begin["percentage"], begin["cancellable"]) == ("begin", 0, True)
        assert begin["title"] == "Indexing project"
        assert (report["kind"], report["percentage"], report["message"]) == ("report", 60, "reading")
        assert end == {"kind": "end", "message": "42 files"}
        tokens = {message["params"]["token"] for message in client.messages if message.get("method") == "$/progress"}
        assert tokens == {token}
        handle(step(root))
        await accept(client, 1)
        await client.until(lambda: len(shown(client)) == 4)


async def test_p06_a_failed_build_is_ended_with_the_reason(root: Path) -> None:
    """P06: a failure in mid-index ends the display and says what failed."""
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        client.server.reporter.handle(step(root))
        await accept(client)
        await client.until(lambda: shown(client))
        client.server.reporter.handle(IndexFinished(str(root), "", "the folder cannot be read"))
        assert shown(client)[-1] == {"kind": "end", "message": "Failed: the folder cannot be read"}
        client.server.reporter.handle(IndexFinished(str(root), "again"))
        assert [value["kind"] for value in shown(client)] == ["begin", "end"]


async def test_p06_a_build_that_ends_before_the_client_answers_is_never_begun(root: Path) -> None:
    """P06: no begin without end, when the build is over before the token is accepted."""
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        client.server.reporter.handle(step(root))
        client.server.reporter.handle(IndexFinished(str(root), "done"))
        await accept(client)
        await client.request("neuralmind/status", {})
        assert shown(client) == []


async def test_p06_a_client_that_refuses_the_token_is_left_alone(root: Path) -> None:
    """P06: an error in reply to create means no progress for this build."""
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        client.server.reporter.handle(step(root))
        await client.until(lambda: creations(client))
        client.receive({"id": creations(client)[0]["id"], "error": {"code": -32603, "message": "no"}})
        await client.request("neuralmind/status", {})
        client.server.reporter.handle(step(root))
        client.server.reporter.handle(IndexFinished(str(root), "done"))
        assert shown(client) == []
        assert len(creations(client)) == 1


async def test_p06_a_client_without_progress_gets_none(root: Path) -> None:
    """P06: no progress traffic to a client that lacks window.workDoneProgress."""
    async with local_client() as client:
        await client.start(root)
        await client.request("neuralmind/search", {"query": "index"})
        await client.request("neuralmind/status", {})
        assert [message for message in client.messages if "method" in message] == []


@pytest.mark.parametrize("engine_answers", [True, False])
async def test_p06_cancelling_reaches_the_engine_and_ends_once(
    root: Path, engine_answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P06: workDoneProgress/cancel stops the build; even if the engine never says so, there is one end."""
    monkeypatch.setattr(progress, "CANCEL_GRACE_S", 0.05)
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        client.server.reporter.handle(step(root))
        token = await accept(client)
        await client.until(lambda: shown(client))
        for wrong in (None, {}, {"token": "other"}, []):
            client.notify("window/workDoneProgress/cancel", wrong)
        client.notify("window/workDoneProgress/cancel", {"token": token})
        await client.until(lambda: ("cancel_index", None) in client.host(root).log)
        if engine_answers:
            client.server.reporter.handle(IndexFinished(str(root), "stopped by the user"))
        await client.until(lambda: len(shown(client)) == 2)
        assert [value["kind"] for value in shown(client)] == ["begin", "end"]


async def test_p06_closing_the_folder_ends_its_display(root: Path) -> None:
    """P06: a folder removed in mid-index ends its display; late events of it show nothing."""
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        client.server.reporter.handle(step(root))
        await accept(client)
        await client.until(lambda: shown(client))
        removed = {"event": {"added": [], "removed": [{"uri": root.as_uri(), "name": "x"}]}}
        client.notify("workspace/didChangeWorkspaceFolders", removed)
        client.server.reporter.handle(step(root))
        client.server.reporter.handle(IndexFinished(str(root), "late"))
        assert [value["kind"] for value in shown(client)] == ["begin", "end"]


async def test_p06_shutdown_ends_every_display(root: Path) -> None:
    """P06: the display ends with the server."""
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        client.server.reporter.handle(step(root))
        await accept(client)
        await client.until(lambda: shown(client))
        await client.request("shutdown")
        assert [value["kind"] for value in shown(client)] == ["begin", "end"]


async def test_a_notice_is_shown_once_with_its_command(root: Path) -> None:
    async with local_client() as client:
        await client.start(root)
        await client.request("neuralmind/search", {"query": "notice"})
        await client.request("neuralmind/search", {"query": "notice"})
        messages = [message for message in client.messages if message.get("method") == "window/showMessage"]
        assert [message["params"] for message in messages] == [
            {"type": 2, "message": "No weights. Run `nm-lsp model install`."}
        ]


@pytest.mark.parametrize(
    ("wanted", "n_sent"),
    [(True, 1), (["statusChanged"], 1), (["neuralmind/statusChanged"], 1), (["event"], 0), (False, 0), (None, 0)],
)
async def test_status_changes_go_to_those_who_ask(root: Path, wanted: Any, n_sent: int) -> None:
    async with local_client() as client:
        await client.start(root, options={"notifications": wanted})
        await client.request("neuralmind/search", {"query": "index"})
        await client.request("neuralmind/status", {})
        sent = [message for message in client.messages if message.get("method") == "neuralmind/statusChanged"]
        assert [message["params"] for message in sent] == [{"folder": root.as_uri()}] * n_sent
