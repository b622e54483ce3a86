"""Commands and requests: parameters, folders, errors, cancellation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsp_harness import LspError, local_client

pytestmark = pytest.mark.asyncio


async def test_a_command_and_its_request_give_the_same_answer(root: Path) -> None:
    async with local_client() as client:
        result = await client.start(root)
        assert "neuralmind.index.rebuild" in result["capabilities"]["executeCommandProvider"]["commands"]
        by_request = await client.request("neuralmind/status", {})
        by_command = await client.request("workspace/executeCommand", {"command": "neuralmind.status"})
        with_object = await client.request(
            "workspace/executeCommand", {"command": "neuralmind.status", "arguments": [{}]}
        )
        assert by_request == by_command == with_object
        assert by_request["ready"] is True
        assert by_request["folder"] == root.as_uri()


async def test_the_prefix_of_commands_is_the_clients_choice(root: Path) -> None:
    async with local_client() as client:
        result = await client.start(root, options={"commandPrefix": "nmlsp.x"})
        assert all(name.startswith("nmlsp.x.") for name in result["capabilities"]["executeCommandProvider"]["commands"])
        assert (await client.request("workspace/executeCommand", {"command": "nmlsp.x.status"}))["ready"]
        with pytest.raises(LspError) as error:
            await client.request("workspace/executeCommand", {"command": "neuralmind.status"})
        assert error.value.code == -32602


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("neuralmind/search", {}, "query: is missing"),
        ("neuralmind/search", {"query": 5}, "query: expected a text, got the number 5"),
        ("neuralmind/search", {"query": "x", "limt": 1}, 'limt: unknown field. Did you mean "limit"?'),
        ("neuralmind/search", {"query": "x", "limit": 0}, "limit: is out of range"),
        ("neuralmind/search", {"query": "x", "kinds": ["class", 1]}, "kinds[1]: expected a text"),
        ("neuralmind/search", {"query": "x" * 30_000}, "query: is too long"),
        ("neuralmind/search", [1], "params: expected an object"),
        ("neuralmind/search", {"query": "x", "folder": 1}, "folder: expected a text"),
        ("neuralmind/search", {"query": "x", "path": "/etc/passwd"}, "path: lies outside every open folder"),
        ("neuralmind/status", {"jsonrpc": "2.0"}, "jsonrpc: unknown field. This call takes no fields."),
        ("workspace/executeCommand", {"command": "neuralmind.search", "arguments": [{}, {}]}, "arguments: expected"),
        ("workspace/executeCommand", {"command": "neuralmind.search", "arguments": {"query": "x"}}, "arguments: "),
        ("workspace/executeCommand", {"command": "neuralmind.nope"}, 'there is no command "neuralmind.nope"'),
        ("workspace/executeCommand", {}, "command: expected a text, got null"),
        ("workspace/executeCommand", None, "command: expected a text"),
    ],
)
async def test_wrong_parameters_are_answered_with_the_name_of_the_field(
    root: Path, method: str, params: Any, said: str
) -> None:
    async with local_client() as client:
        await client.start(root)
        with pytest.raises(LspError) as error:
            await client.request(method, params)
        assert error.value.code == -32602
        assert said in error.value.message
        assert error.value.data["code"] == "invalid-input"
        assert client.host(root).n_started == 0


@pytest.mark.parametrize(
    ("query", "code", "data"),
    [
        ("git", -32803, {"code": "git", "hint": "Install git."}),
        ("conflict", -32803, {"code": "conflict", "hint": None, "current": {"revision": 2}}),
        ("odd conflict", -32803, None),  # an error whose data has no JSON form is still an answer
        ("bug", -32603, {"code": "internal", "hint": None}),
    ],
)
async def test_errors_of_the_engine_have_codes_and_no_traceback(root: Path, query: str, code: int, data: Any) -> None:
    async with local_client() as client:
        await client.start(root)
        with pytest.raises(LspError) as error:
            await client.request("neuralmind/search", {"query": query})
        assert (error.value.code, error.value.data) == (code, data)
        assert "secret" not in error.value.message


@pytest.mark.parametrize("as_command", [True, False])
async def test_cancelling_stops_the_work_and_is_answered_once(root: Path, as_command: bool) -> None:
    async with local_client() as client:
        await client.start(root)
        host = client.host(root)
        if as_command:
            call = {"command": "neuralmind.search", "arguments": [{"query": "wait"}]}
            number = client.ask("workspace/executeCommand", call)
        else:
            number = client.ask("neuralmind/search", {"query": "wait"})
        await client.until(lambda: host.n_started)
        client.notify("$/cancelRequest", {"id": number})
        client.notify("$/cancelRequest", {"id": number})
        answer = await client.answer_to(number)
        assert answer["error"]["code"] == -32800
        await client.until(lambda: host.n_cancelled)
        await client.request("neuralmind/status", {})
        assert len(client.answers(number)) == 1


async def test_p04_cancelled_requests_are_not_worked_off_in_turn(root: Path) -> None:
    """P04: of forty requests cancelled while they queue, none is begun, and the next one is answered at once."""
    async with local_client() as client:
        await client.start(root)
        host = client.host(root)
        numbers = [client.ask("neuralmind/search", {"query": "wait"}) for _ in range(40)]
        await client.until(lambda: host.n_started)
        for number in numbers:
            client.notify("$/cancelRequest", {"id": number})
        await asyncio.wait_for(client.request("neuralmind/search", {"query": "x"}), 0.5)
        for number in numbers:
            assert (await client.answer_to(number))["error"]["code"] == -32800
        assert host.n_started < 10


async def test_several_folders_need_to_be_told_apart(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    async with local_client() as client:
        await client.start(root, second)
        with pytest.raises(LspError, match="folder: is needed") as error:
            await client.request("neuralmind/search", {"query": "x"})
        assert root.as_uri() in error.value.data["hint"]
        await client.request("neuralmind/search", {"query": "x", "folder": second.as_uri() + "/"})
        await client.request("neuralmind/search", {"query": "x", "path": (root / "gov.py").as_uri()})
        await client.request("neuralmind/search", {"query": "x", "path": str(root / "gov.py")})
        assert (client.host(root).n_started, client.host(second).n_started) == (2, 1)
        with pytest.raises(LspError, match="is not open"):
            await client.request("neuralmind/search", {"query": "x", "folder": "file:///nowhere"})


async def test_a_large_result_arrives_whole(root: Path) -> None:
    async with local_client() as client:
        await client.start(root)
        result = await client.request("neuralmind/graph.export", {})
        assert [node["id"] for node in result["graph"]["nodes"]] == list(range(1200))
        assert result["graph"]["edges"] == []
        assert result["nodes"] == 1200


async def test_an_engine_that_cannot_start_is_an_answer(root: Path) -> None:
    from nm_lsp.server.backend import Backend

    def broken(settings: Any, listener: Any) -> Any:
        raise OSError("no engine here")

    backend = Backend(asyncio.get_running_loop(), broken)
    async with local_client(backend=backend) as client:
        await client.start(root)
        with pytest.raises(LspError, match="engine could not be started") as error:
            await client.request("neuralmind/search", {"query": "x"})
        assert error.value.code == -32803
    await asyncio.to_thread(backend.close)
