"""JSON-RPC: exactly one answer for each request, whatever it looks like."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lsp_harness import FULL, LspError, local_client
from pygls.exceptions import JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCProtocol

from nm_lsp.server import connection, faults
from nm_lsp.server.protocol import NmProtocol


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (JsonRPCProtocol, "_execute_handler", ["self", "msg_id", "handler", "callback", "args", "kwargs"]),
        (JsonRPCProtocol, "_send_handler_result", ["self", "future", "msg_id"]),
        (JsonRPCProtocol, "_get_handler", ["self", "feature_name"]),
        (JsonRPCProtocol, "_handle_cancel_notification", ["self", "msg_id"]),
        (JsonRPCProtocol, "_handle_notification", ["self", "method_name", "params"]),
        (JsonRPCProtocol, "_handle_request", ["self", "msg_id", "method_name", "params"]),
        (JsonRPCProtocol, "_handle_response", ["self", "msg_id", "result", "error"]),
        (JsonRPCProtocol, "_send_data", ["self", "data"]),
        (JsonRPCProtocol, "_send_response", ["self", "msg_id", "result", "error"]),
        (JsonRPCProtocol, "_serialize_message", ["self", "data"]),
        (JsonRPCProtocol, "structure_message", ["self", "data"]),
        (JsonRPCProtocol, "send_request", ["self", "method", "params", "callback", "msg_id"]),
        (LanguageServerProtocol, "_register_builtin_features", ["self"]),
        (LanguageServerProtocol, "lsp_initialize", ["self", "params"]),
        (LanguageServerProtocol, "lsp_shutdown", ["self", "args"]),
        (LanguageServerProtocol, "lsp_exit", ["self", "args"]),
        (LanguageServerProtocol, "lsp_set_trace", ["self", "params"]),
        (LanguageServerProtocol, "lsp_workspace__execute_command", ["self", "params"]),
        (LanguageServerProtocol, "get_message_type", ["self", "method"]),
        (LanguageServerProtocol, "get_result_type", ["self", "method"]),
    ],
)
def test_the_private_names_we_rely_on_are_still_there(owner: type, name: str, parameters: list[str]) -> None:
    method = inspect.unwrap(inspect.getattr_static(owner, name))
    assert list(inspect.signature(method).parameters) == parameters
    assert name in vars(NmProtocol) or name in {"_execute_handler", "_get_handler", "_serialize_message"}


@pytest.mark.parametrize("attribute", ["_request_futures", "_result_types", "_shutdown", "_converter"])
@pytest.mark.asyncio
async def test_the_private_attributes_we_rely_on_are_still_there(attribute: str) -> None:
    async with local_client() as client:
        assert hasattr(client.server.protocol, attribute)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/rename", {}),
        ("window/nope", {}),
        ("$/nope", None),
        ("neuralmind/nope", {"a-b": 1, "class": 2}),
    ],
)
@pytest.mark.asyncio
async def test_unknown_methods_are_answered(root: Path, method: str, params: Any) -> None:
    async with local_client() as client:
        await client.start(root)
        number = client.ask(method, params)
        answer = await client.answer_to(number)
        assert answer["error"]["code"] == -32601
        assert "traceback" not in json.dumps(answer).lower()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"textDocument": {"uri": "x"}, "position": {"line": "a", "character": 0}}, "position.line: expected a whole"),
        ({"textDocument": {"uri": "x"}, "position": {"line": -1, "character": 0}}, "position: is out of range"),
        ({"textDocument": 5, "position": {"line": 1, "character": 0}}, "textDocument.uri: has the wrong type"),
        ({}, "position: is missing; textDocument: is missing"),
        (None, "params: has the wrong type"),
    ],
)
@pytest.mark.asyncio
async def test_a_typed_request_that_cannot_be_read_is_answered(root: Path, params: Any, said: str) -> None:
    async with local_client() as client:
        await client.start(root)
        with pytest.raises(LspError) as error:
            await client.request("textDocument/hover", params)
        assert error.value.code == -32602
        assert said in error.value.message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'"x"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"shutdown"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"shutdown"}', -32600),
        (b'{"jsonrpc":"2.0","id":[],"method":"shutdown"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
    ],
)
@pytest.mark.asyncio
async def test_what_is_no_message_gets_an_error(root: Path, body: bytes, code: int) -> None:
    async with local_client() as client:
        await client.start(root)
        client.messages.clear()
        client.server.protocol.receive(body)
        assert [(message["id"], message["error"]["code"]) for message in client.messages] == [(None, code)]
        await client.request("neuralmind/status", {})


@pytest.mark.asyncio
async def test_before_initialize_and_twice() -> None:
    async with local_client() as client:
        with pytest.raises(LspError) as error:
            await client.request("neuralmind/status", {})
        assert error.value.code == -32002
        client.notify("textDocument/didOpen", {})
        await client.request("initialize", {"capabilities": {}})
        with pytest.raises(LspError) as error:
            await client.request("initialize", {"capabilities": {}})
        assert error.value.code == -32600


@pytest.mark.asyncio
async def test_an_id_in_use_is_refused_and_the_first_request_goes_on(root: Path) -> None:
    async with local_client() as client:
        await client.start(root)
        number = client.ask("neuralmind/search", {"query": "wait"})
        client.receive({"id": number, "method": "neuralmind/status", "params": {}})
        await client.until(lambda: client.host(root).n_started)
        client.host(root).release.set()
        await client.until(lambda: len(client.answers(number)) == 2)
        refused, done = client.answers(number)
        assert refused["error"]["code"] == -32600
        assert done["result"] == {"hits": [], "partial": []}
        client.receive({"id": number, "method": "neuralmind/status", "params": {}})
        await client.until(lambda: len(client.answers(number)) == 3)
        assert client.answers(number)[2]["result"]["ready"]


@pytest.mark.asyncio
async def test_ids_of_any_allowed_kind_come_back_as_they_were(root: Path) -> None:
    async with local_client() as client:
        await client.start(root)
        for number in ("text", "", 0, -5, "1", 2**40):
            client.receive({"id": number, "method": "neuralmind/status", "params": {}})
            answer = await client.answer_to(number)
            assert "result" in answer, answer


@pytest.mark.asyncio
async def test_l04_requests_after_shutdown_are_refused(root: Path) -> None:
    """L04: after shutdown a request gets -32600, notifications nothing, and exit still ends the connection with 0."""
    async with local_client() as client:
        await client.start(root)
        waiting = client.ask("neuralmind/search", {"query": "wait"})
        await client.until(lambda: client.host(root).n_started)
        assert await client.request("shutdown") is None
        assert (await client.answer_to(waiting))["error"]["code"] == -32800
        with pytest.raises(LspError) as error:
            await client.request("textDocument/hover", {})
        assert error.value.code == -32600
        client.open((root / "gov.py").as_uri(), "x")
        client.notify("exit")
        client.notify("exit")
        assert client.codes == [0]


@pytest.mark.asyncio
async def test_exit_without_shutdown_is_an_error() -> None:
    async with local_client() as client:
        client.notify("exit")
        assert client.codes == [1]


@pytest.mark.asyncio
async def test_p05_answers_that_come_late_twice_or_for_nothing_are_harmless(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """P05: the client answers our requests after we have given up on them, twice, and for ids that never were."""
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        asked = await client.seen(lambda message: message.get("method") == "workspace/configuration")
        await client.request("neuralmind/search", {"query": "index"})
        client.server.protocol.cancel_all()
        for message in [*client.messages, {"id": "never", "method": "x"}, {"id": 1, "method": "x"}]:
            if "method" in message and "id" in message:
                for _ in range(2):
                    client.receive({"id": message["id"], "result": 5})
                    client.receive({"id": message["id"], "error": {"code": -1, "message": "no"}})
                    client.receive({"id": message["id"], "error": None})
        client.receive({"id": {"odd": 1}, "result": 5})
        assert asked["params"]["items"] == [{"section": "nmLsp"}]
        assert (await client.request("neuralmind/status", {}))["ready"]
        assert [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []


@pytest.mark.asyncio
async def test_p05_an_answer_after_we_stopped_waiting_is_harmless(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P05: a request of ours that timed out is forgotten, and its late answer changes nothing."""
    monkeypatch.setattr(connection, "ASK_TIMEOUT_S", 0.01)
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        asked = await client.seen(lambda message: message.get("method") == "client/registerCapability")
        await client.until(lambda: not client.server.protocol._outgoing)
        client.receive({"id": asked["id"], "result": None})
        client.receive({"id": asked["id"], "error": {"code": 1, "message": "x"}})
        assert (await client.request("neuralmind/status", {}))["ready"]
        assert [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []


@pytest.mark.asyncio
async def test_an_answer_never_counts_as_one_to_a_request_of_the_client(root: Path) -> None:
    async with local_client() as client:
        await client.start(root)
        number = client.ask("neuralmind/search", {"query": "wait"})
        await client.until(lambda: client.host(root).n_started)
        client.receive({"id": number, "result": "forged"})
        client.host(root).release.set()
        assert (await client.answer_to(number))["result"] == {"hits": [], "partial": []}


@pytest.mark.asyncio
async def test_nothing_is_left_behind_by_notifications_and_requests(root: Path) -> None:
    async with local_client() as client:
        await client.start(root, capabilities=FULL)
        await client.seen(lambda message: message.get("method") == "client/registerCapability")
        await client.request("neuralmind/search", {"query": "index"})
        client.server.protocol.cancel_all()
        uri = (root / "gov.py").as_uri()
        client.open(uri, "x")
        for _ in range(50):
            client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            await client.request("neuralmind/status", {})
        protocol = client.server.protocol
        assert (protocol._request_futures, protocol._outgoing, protocol._result_types) == ({}, {}, {})
        assert protocol._unanswered == set()


@pytest.mark.asyncio
async def test_connections_that_ended_are_forgotten(root: Path) -> None:
    async with local_client() as first:
        await first.start(root)
        for _ in range(3):
            async with local_client(backend=first.server.backend) as other:
                await other.start(root)
        gc.collect()
        protocols = [thing for thing in gc.get_objects() if isinstance(thing, NmProtocol)]
        assert len(protocols) <= 2, len(protocols)
        assert len(first.server.backend._subscribers) == 1


@pytest.mark.asyncio
async def test_a_failing_notification_is_logged_and_not_shown(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with local_client() as client:
        await client.start(root)

        def fail(path: str) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(client.host(root), "save_document", fail)
        uri = (root / "gov.py").as_uri()
        client.open(uri, "x")
        client.messages.clear()
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        await client.request("neuralmind/status", {})
        assert len(client.messages) == 1
        assert "didSave failed" in caplog.text


@pytest.mark.asyncio
async def test_a_result_without_json_form_is_still_an_answer(root: Path) -> None:
    async with local_client() as client:

        async def odd(params: Any) -> Any:
            return {"x": {1, 2}, "y": object()}

        client.server.feature("test/odd")(odd)
        await client.start(root)
        number = client.ask("test/odd", {})
        answer = await client.answer_to(number)
        await asyncio.sleep(0)
        assert answer["error"]["code"] == -32603
        assert len(client.answers(number)) == 1


def test_no_traceback_leaves_even_in_an_error_of_the_library() -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        error = JsonRpcInternalError.of(sys.exc_info())
    assert error.data
    assert faults.to_json_rpc(error).data is None


@pytest.mark.asyncio
async def test_plain_parameters_keep_their_keys(root: Path) -> None:
    sent = {"a-b": 1, "class": {"jsonrpc": "2.0", "id": 5, "method": "x"}, "jsonrpc": None}
    async with local_client() as client:
        seen: list[Any] = []

        async def echo(params: Any) -> Any:
            seen.append(params)
            return params

        client.server.feature("test/echo")(echo)
        await client.start(root)
        assert await client.request("test/echo", sent) == sent
        assert seen == [sent]
