"""TCP and WebSocket as real processes: tokens, several clients, the end."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsp_harness import FAKE, initialize_params
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from nm_lsp.base.errors import InvalidInput
from nm_lsp.server.sockets import loopback_address
from nm_lsp.server.tokens import write_token


class Listening:
    def __init__(self, scheme: str, state: Path) -> None:
        env = {**os.environ, "XDG_RUNTIME_DIR": str(state), "XDG_STATE_HOME": str(state)}
        self.process = subprocess.Popen(
            [*FAKE, scheme],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert self.process.stderr is not None
        self.url = self.process.stderr.readline().rsplit(" ", 1)[1].strip()
        self.token = self.process.stderr.readline().removeprefix("token: ").strip()
        self.token_file = Path(self.process.stderr.readline().removeprefix("token file: ").strip())

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def initialize(self, root: Path, token: str | None = None) -> dict[str, Any]:
        params = initialize_params(root, None, {"token": token or self.token})
        return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def tcp(tmp_path: Path) -> Iterator[Listening]:
    server = Listening("tcp", tmp_path)
    yield server
    server.stop()


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Listening]:
    server = Listening("ws", tmp_path)
    yield server
    server.stop()


class TcpClient:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self) -> dict[str, Any] | None:
        header = self.file.readline()
        if not header:
            return None
        self.file.readline()
        message: dict[str, Any] = json.loads(self.file.read(int(header.split(b":")[1])))
        return message

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def test_tcp_serves_several_clients_that_share_a_folder(tcp: Listening, root: Path) -> None:
    assert stat.S_IMODE(tcp.token_file.stat().st_mode) == 0o600
    assert tcp.token_file.read_text().strip() == tcp.token
    clients = [TcpClient(tcp.port) for _ in range(3)]
    for number, client in enumerate(clients):
        client.send(tcp.initialize(root))
        answer = client.receive()
        assert answer is not None
        assert answer["result"]["serverInfo"]["name"] == "nm_lsp"
        client.send({"method": "initialized", "params": {}})
        uri = (root / f"{number}.py").as_uri()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": f"text {number}"}
        client.send({"method": "textDocument/didOpen", "params": {"textDocument": item}})
    for number, client in enumerate(clients):
        client.send({"id": 2, "method": "neuralmind/search", "params": {"query": f"text {number}.py"}})
        answer = client.receive()
        assert answer is not None
        assert answer["result"]["hits"][0]["text"] == f"text {number}"
    clients[0].send({"id": 3, "method": "shutdown"})
    assert clients[0].receive() == {"jsonrpc": "2.0", "id": 3, "result": None}
    clients[0].send({"method": "exit"})
    assert clients[0].receive() is None
    clients[1].close()
    clients[2].send({"id": 4, "method": "neuralmind/status", "params": {}})
    answer = clients[2].receive()
    assert answer is not None
    assert answer["result"]["files"] == 1
    for client in (clients[0], clients[2]):
        client.close()


@pytest.mark.parametrize("first", ["wrong token", "no initialize", "junk"])
def test_tcp_closes_whoever_lacks_the_token(tcp: Listening, root: Path, first: str) -> None:
    client = TcpClient(tcp.port)
    if first == "wrong token":
        client.send(tcp.initialize(root, "wrong"))
    elif first == "no initialize":
        client.send({"id": 1, "method": "neuralmind/status", "params": {}})
    else:
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert client.receive() is None
    client.close()
    good = TcpClient(tcp.port)
    good.send(tcp.initialize(root))
    answer = good.receive()
    assert answer is not None
    assert "result" in answer
    good.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_tcp_ends_on_sigterm_and_removes_its_token(tcp: Listening, root: Path) -> None:
    client = TcpClient(tcp.port)
    client.send(tcp.initialize(root))
    client.receive()
    tcp.process.send_signal(signal.SIGTERM)
    out, err = tcp.process.communicate(timeout=5)
    assert (tcp.process.returncode, out, err) == (0, "", "")
    assert not tcp.token_file.exists()
    client.close()


def ask(client: ClientConnection, message: dict[str, Any]) -> Any:
    client.send(json.dumps({"jsonrpc": "2.0", **message}))
    return json.loads(client.recv(timeout=10))


@pytest.mark.parametrize("by_header", [True, False])
def test_websocket_takes_the_token_in_either_place(ws: Listening, root: Path, by_header: bool) -> None:
    headers = {"Authorization": f"Bearer {ws.token}"} if by_header else {}
    with connect(ws.url, additional_headers=headers) as client:
        message = ws.initialize(root, "not needed" if by_header else None)
        assert ask(client, message)["result"]["serverInfo"]
        assert ask(client, {"id": 2, "method": "neuralmind/status", "params": {}})["result"]["ready"]
        client.send(json.dumps({"jsonrpc": "2.0", "method": "exit"}))
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=10)


def test_websocket_refuses_a_wrong_token(ws: Listening, root: Path) -> None:
    with pytest.raises(InvalidStatus), connect(ws.url, additional_headers={"Authorization": "Bearer wrong"}):
        pass
    with connect(ws.url) as client, pytest.raises(ConnectionClosed):
        ask(client, ws.initialize(root, "wrong"))


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1.evil.example:80"}],
)
def test_websocket_refuses_pages_of_other_sites_even_with_the_token(ws: Listening, headers: dict[str, str]) -> None:
    given = {"Authorization": f"Bearer {ws.token}", **headers}
    with pytest.raises(InvalidStatus) as refusal, connect(ws.url, additional_headers=given):
        pass
    assert refusal.value.response.status_code == 403


def test_websocket_refuses_another_name_for_this_machine(ws: Listening, root: Path) -> None:
    for name, status in ((f"evil.example:{ws.port}", b" 403 "), (f"localhost:{ws.port}", b" 101 ")):
        lines = [
            "GET / HTTP/1.1", f"Host: {name}", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {ws.token}", "", "",
        ]  # fmt: skip
        with socket.create_connection(("127.0.0.1", ws.port), timeout=10) as client:
            client.sendall("\r\n".join(lines).encode())
            assert status in client.makefile("rb").readline()


def test_websocket_takes_a_page_of_this_machine(ws: Listening, root: Path) -> None:
    headers = {"Origin": "http://localhost:8080"}
    with connect(ws.url, additional_headers=headers) as client:
        assert ask(client, ws.initialize(root))["result"]["serverInfo"]


@pytest.mark.parametrize("first", [{"id": 1, "method": "neuralmind/status", "params": {}}, {"method": "exit"}])
def test_websocket_closes_whoever_begins_without_the_token(ws: Listening, root: Path, first: dict[str, Any]) -> None:
    with connect(ws.url) as client:
        client.send(json.dumps({"jsonrpc": "2.0", **first}))
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=10)


@pytest.mark.parametrize(("host", "address"), [("localhost", "127.0.0.1"), ("", "127.0.0.1"), ("[::1]", "::1")])
def test_loopback_addresses(host: str, address: str) -> None:
    assert loopback_address(host) == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_other_addresses_are_refused(host: str) -> None:
    with pytest.raises(InvalidInput):
        loopback_address(host)


def test_a_token_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "tokens"
    folder.mkdir()
    (folder / "server-5.token").symlink_to(victim)
    written = write_token("secret", 5, folder)
    assert (victim.read_text(), written.is_symlink(), written.read_text()) == ("mine", False, "secret\n")
