"""From initialize on: sparse clients, folders, settings, watched files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsp_harness import FULL, LocalClient, LspError, local_client

pytestmark = pytest.mark.asyncio


def shown(client: LocalClient) -> list[str]:
    return [
        message["params"]["message"] for message in client.messages if message.get("method") == "window/showMessage"
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"capabilities": {}, "rootUri": None, "workspaceFolders": None},
        {"capabilities": {}, "rootUri": None, "workspaceFolders": []},
        {"capabilities": {}, "processId": None},
        {"capabilities": {}, "rootUri": "untitled:x"},
        {"capabilities": {}, "workspaceFolders": [{"uri": "vscode-vfs://github/a/b", "name": "b"}]},
        {"capabilities": {"workspace": None, "window": None, "general": None}},
        {"capabilities": {"textDocument": 5, "general": {"positionEncodings": 7}}},
        {"capabilities": {}, "initializationOptions": "odd"},
        {"capabilities": {}, "initializationOptions": {"commandPrefix": 5, "notifications": 7, "settings": "x"}},
        {"capabilities": {}, "clientInfo": {"name": "x"}, "locale": "de", "rootPath": None, "trace": "off"},
    ],
)
async def test_p03_sparse_clients_start_without_an_index(params: dict[str, Any]) -> None:
    """P03: whatever is missing or odd in initialize, the server starts, opens no folder, and answers status."""
    async with local_client() as client:
        result = await client.request("initialize", params)
        assert result["serverInfo"]["name"] == "nm_lsp"
        assert result["capabilities"]["positionEncoding"] == "utf-16"
        client.notify("initialized", {})
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}})
        status = await client.request("neuralmind/status", {})
        assert (status["ready"], status["files"], status["problems"][0]["code"]) == (True, 0, "no-folder")
        with pytest.raises(LspError, match="No folder is open"):
            await client.request("neuralmind/search", {"query": "x"})
        await client.until(lambda: client._workspaces)
        assert client.workspace.by_folder == {}


@pytest.mark.parametrize("how", ["rootUri", "rootPath", "workspaceFolders"])
async def test_p03_every_way_to_name_the_root(root: Path, how: str) -> None:
    """P03: rootPath alone, rootUri alone and workspaceFolders alone open the folder."""
    values: dict[str, Any] = {
        "rootUri": root.as_uri(),
        "rootPath": str(root),
        "workspaceFolders": [{"uri": root.as_uri(), "name": "x"}],
    }
    async with local_client() as client:
        await client.request("initialize", {"capabilities": {}, how: values[how]})
        client.notify("initialized", {})
        assert (await client.request("neuralmind/status", {}))["folder"] == root.as_uri()


async def test_a_client_that_never_says_initialized_is_served(root: Path) -> None:
    async with local_client() as client:
        await client.request("initialize", {"capabilities": {}, "rootUri": root.as_uri()})
        assert (await client.request("neuralmind/status", {}))["ready"]


async def test_g19_a_git_folder_as_root_is_left_alone(root: Path) -> None:
    """G19: opened as a commit editor does, nothing below .git reaches the engine, and status says why."""
    git = root / ".git"
    git.mkdir()
    (git / "COMMIT_EDITMSG").write_text("x")
    async with local_client() as client:
        await client.start(git)
        client.open((git / "COMMIT_EDITMSG").as_uri(), "message")
        status = await client.request("neuralmind/status", {})
        assert (status["files"], status["problems"][0]["code"]) == (0, "not-indexed")
        assert client.workspace.by_folder == {}
        with pytest.raises(LspError, match="belongs to git itself"):
            await client.request("neuralmind/search", {"query": "x"})


async def test_a_home_folder_is_told_of_once_and_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything a person has lies in it: indexed only where they made it a workspace on purpose."""
    monkeypatch.setattr(Path, "home", lambda: root)
    async with local_client() as client:
        await client.start(root)
        told = await client.seen(lambda message: message.get("method") == "window/showMessage")
        status = await client.request("neuralmind/status", {})
        await client.request("neuralmind/status", {})
        assert "is your home folder, so nothing in it is indexed" in told["params"]["message"]
        assert told["params"]["message"].count("make the folder") == 1
        assert (status["ready"], status["files"], status["problems"][0]["code"]) == (True, 0, "not-indexed")
        assert "make the folder" in status["problems"][0]["hint"]
        assert "make the folder" not in status["problems"][0]["message"]
        assert client.workspace.by_folder == {}
        with pytest.raises(LspError, match="home folder"):
            await client.request("neuralmind/search", {"query": "x"})
        assert len([each for each in client.messages if each.get("method") == "window/showMessage"]) == 1

    (root / ".neuralmind" / "lsp").mkdir(parents=True)
    async with local_client() as client:
        await client.start(root)
        await client.until(lambda: client.workspace.by_folder)


async def test_a_whole_disk_is_no_workspace(tmp_path: Path) -> None:
    async with local_client() as client:
        await client.start(Path(tmp_path.anchor))
        await client.seen(lambda message: "is the whole disk" in str(message))
        assert client.workspace.by_folder == {}


async def test_g19_documents_inside_git_of_a_folder_are_ignored(root: Path) -> None:
    """G19: COMMIT_EDITMSG opened beside the project feeds nothing."""
    async with local_client() as client:
        await client.start(root)
        for name in (".git/COMMIT_EDITMSG", "sub/.git/rebase-merge/git-rebase-todo", ".neuralmind/lsp/config.toml"):
            client.open((root / name).as_uri(), "x")
        client.notify(
            "workspace/didChangeWatchedFiles", {"changes": [{"uri": (root / ".git/HEAD").as_uri(), "type": 2}]}
        )
        assert client.host(root).log == []


async def test_folders_come_and_go(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    async with local_client() as client:
        result = await client.start(root)
        assert result["capabilities"]["workspace"]["workspaceFolders"] == {
            "supported": True,
            "changeNotifications": True,
        }
        change = {"event": {"added": [{"uri": second.as_uri(), "name": "s"}], "removed": [{"uri": root.as_uri()}]}}
        client.notify("workspace/didChangeWorkspaceFolders", change)
        client.notify("workspace/didChangeWorkspaceFolders", change)
        assert (await client.request("neuralmind/status", {}))["folder"] == second.as_uri()
        assert list(client.workspace.by_folder) == [second]


async def test_a_folder_added_before_the_start_is_opened_with_the_others(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    async with local_client() as client:
        await client.request("initialize", {"capabilities": {}, "rootUri": root.as_uri()})
        added = {"event": {"added": [{"uri": second.as_uri(), "name": "s"}], "removed": []}}
        client.notify("workspace/didChangeWorkspaceFolders", added)
        client.notify("initialized", {})
        for folder in (root, second):
            status = await client.request("neuralmind/status", {"folder": folder.as_uri()})
            assert status["folder"] == folder.as_uri()


async def test_a_request_that_waits_for_a_folder_is_answered_when_the_folder_is_closed(root: Path) -> None:
    async with local_client() as client:
        await client.request("initialize", {"capabilities": {}, "rootUri": root.as_uri()})
        number = client.ask("neuralmind/search", {"query": "x"})
        await asyncio.sleep(0)
        removed = {"event": {"added": [], "removed": [{"uri": root.as_uri(), "name": "x"}]}}
        client.notify("workspace/didChangeWorkspaceFolders", removed)
        answer = await client.answer_to(number)
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32803, "The folder was closed.")


async def test_the_end_closes_the_workspace(root: Path) -> None:
    async with local_client() as client:
        await client.start(root)
        workspace = client.workspace
        assert not workspace.closed
    assert workspace.closed


async def test_a_folder_stays_open_while_another_client_has_it(root: Path) -> None:
    async with local_client() as first:
        await first.start(root)
        async with local_client(backend=first.server.backend) as second:
            await second.start(root)
        await first.request("neuralmind/status", {})
        await asyncio.to_thread(first.server.backend._engine_thread.submit(int).result)
        assert list(first.workspace.by_folder) == [root]


async def test_settings_come_from_the_client_over_the_file_over_the_defaults(root: Path) -> None:
    config = root / ".neuralmind" / "lsp" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[search]\nrrf_k = 10\ncosine_floor = 0.5\n[index]\nmax_filez = 3\n")
    async with local_client() as client:
        await client.start(root, options={"settings": {"search": {"rrfK": 20}, "index.maxFiles": "many"}})
        settings = client.workspace.settings
        assert (settings.search.rrf_k, settings.search.cosine_floor) == (20, 0.5)
        assert settings.index.max_files == 100_000
        await client.until(lambda: len(shown(client)) == 2)
        assert "index.maxFilez in .neuralmind/lsp/config.toml" in shown(client)[0]
        assert "index.maxFiles in the client's settings" in shown(client)[1]
        config.write_text("[search]\nrrf_k = 10\ncosine_floor = 0.6\n[index]\nmax_filez = 3\n")
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": config.as_uri(), "type": 2}]})
        await client.until(lambda: client.workspace.settings.search.cosine_floor == 0.6)
        assert len(shown(client)) == 2


async def test_the_file_of_a_folder_opened_later_is_read(root: Path) -> None:
    config = root / ".neuralmind" / "lsp" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("search.rrf_k = 10\n")
    async with local_client() as client:
        await client.start()
        added = {"event": {"added": [{"uri": root.as_uri(), "name": "x"}], "removed": []}}
        client.notify("workspace/didChangeWorkspaceFolders", added)
        assert (await client.request("neuralmind/status", {}))["folder"] == root.as_uri()
        assert client.workspace.settings.search.rrf_k == 10


async def test_a_client_without_settings_does_not_undo_those_of_another(root: Path) -> None:
    async with local_client() as first:
        await first.start(root, options={"settings": {"search": {"rrfK": 20}}})
        async with local_client(backend=first.server.backend) as second:
            await second.start(root)
            assert first.workspace.settings.search.rrf_k == 20
        async with local_client(backend=first.server.backend) as third:
            await third.start(root, options={"settings": {"search": {"rrfK": 21}}})
            await third.until(lambda: first.workspace.settings.search.rrf_k == 21)


async def test_settings_are_asked_for_before_folders_are_opened(root: Path) -> None:
    async with local_client() as client:
        params = {"capabilities": FULL, "rootUri": root.as_uri()}
        await client.request("initialize", params)
        client.notify("initialized", {})
        asked = await client.seen(lambda message: message.get("method") == "workspace/configuration")
        assert client._workspaces == []
        client.receive({"id": asked["id"], "result": [{"search": {"rrfK": 33}}]})
        await client.request("neuralmind/status", {})
        assert (client.workspace.settings.search.rrf_k, client.workspace.n_configured) == (33, 0)
        client.messages.clear()
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        asked = await client.seen(lambda message: message.get("method") == "workspace/configuration")
        client.receive({"id": asked["id"], "result": [{"search": {"rrfK": 34}}]})
        await client.until(lambda: client.workspace.settings.search.rrf_k == 34)


async def test_pushed_settings_are_taken_and_foreign_ones_ignored(root: Path) -> None:
    async with local_client() as client:
        await client.start(root, options={"settings": {"search": {"rrfK": 20}}})
        for settings in ({}, None, 5, {"python": {"x": 1}}):
            client.notify("workspace/didChangeConfiguration", {"settings": settings})
        client.notify("workspace/didChangeConfiguration", {"settings": {"nmLsp": {"search": {"rrfK": 21}}}})
        await client.until(lambda: client.workspace.settings.search.rrf_k == 21)
        assert client.workspace.n_configured == 1


async def test_p08_watched_files_are_registered_with_patterns_of_source_files(root: Path) -> None:
    """P08: no pattern asks the client to watch everything; a client without the capability is not asked at all."""
    async with local_client() as client:
        await client.start(root, capabilities={"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}})
        asked = await client.seen(lambda message: message.get("method") == "client/registerCapability")
        watchers = asked["params"]["registrations"][0]["registerOptions"]["watchers"]
        globs = [watcher["globPattern"] for watcher in watchers]
        assert globs
        assert not {"**", "**/*", "**/*.*"} & set(globs)
        changes = [
            {"uri": (root / "gov.py").as_uri(), "type": 2},
            {"uri": (root / "new.py").as_uri(), "type": 1},
            {"uri": "file:///elsewhere/x.py", "type": 1},
            {"uri": "untitled:x", "type": 1},
        ]
        client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        assert client.host(root).log == [("files", ("gov.py", "new.py"))]
    async with local_client() as client:
        await client.start(root)
        await client.request("neuralmind/status", {})
        assert [message for message in client.messages if "method" in message] == []


async def test_a_wrong_token_closes_and_the_right_one_opens(root: Path) -> None:
    for first in (
        {"id": 1, "method": "neuralmind/status", "params": {}},
        {"method": "initialized", "params": {}},
        {"id": 1, "method": "initialize", "params": {"capabilities": {}}},
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "initializationOptions": {"token": "x"}}},
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "initializationOptions": {"token": 5}}},
        {"id": 1, "method": "initialize", "params": []},
        {"id": 1, "result": {}},
    ):
        async with local_client(token="secret") as client:
            client.receive(first)
            assert (client.codes, client.messages) == ([1], [])
    async with local_client(token="secret") as client:
        await client.start(root, options={"token": "secret"})
        assert (await client.request("neuralmind/status", {}))["ready"]
        assert client.codes == []
