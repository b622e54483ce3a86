"""Two ways to be a client: over a real process and pipe (`ProcessClient`), and in process (`local_client`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from fake_workspace import FakeHost, FakeWorkspace

from nm_lsp.server.backend import Backend
from nm_lsp.server.connection import NmServer

FAKE = [sys.executable, str(Path(__file__).with_name("fake_workspace.py"))]
REAL = [sys.executable, "-m", "nm_lsp.server.main"]

FULL = {
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
    },
}
"""The capabilities of a client that can do everything the server asks about."""

Answer = Callable[[str, Any], Any]


class Refusal(Exception):
    """Raised by an answerer: the client answers with an error."""


class Silence(Exception):
    """Raised by an answerer: the client does not answer."""


class LspError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


def answer_nothing(method: str, params: Any) -> Any:
    return [None] * len(params["items"]) if method == "workspace/configuration" else None


def initialize_params(root: Path | None, capabilities: Any, options: Any, **more: Any) -> dict[str, Any]:
    uri = root.as_uri() if root is not None else None
    folders = [{"uri": uri, "name": root.name}] if root is not None else None
    return {
        "processId": os.getpid(),
        "rootUri": uri,
        "workspaceFolders": folders,
        "capabilities": {} if capabilities is None else capabilities,
        "initializationOptions": options,
        **more,
    }


class ProcessClient:
    """Every byte of the server's output is read as frames: whatever is not one ends up in `unframed`, a frame that the
    end of the process cut short in `cut`."""

    def __init__(self, command: list[str] = FAKE, *, env: dict[str, str] | None = None, stderr: Any = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stderr is None else stderr,
            env={**os.environ, **(env or {})},
            cwd=Path(__file__).parents[2],
        )
        self.answer: Answer = answer_nothing
        self.messages: list[dict[str, Any]] = []
        self.unframed = b""
        self.cut = b""
        self.errors = b""
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._next_id = 0
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._error_reader = threading.Thread(target=self._read_errors, daemon=True)
        if stderr is None:
            self._error_reader.start()

    # -- wire -------------------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_bytes(self, body: bytes) -> None:
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            match = re.fullmatch(rb"Content-Length: (\d+)\r\n", header)
            if match is None or stream.readline() != b"\r\n":
                self.unframed += header + stream.read()
                break
            body = stream.read(length := int(match[1]))
            if len(body) < length:
                self.cut = header + body
                break
            self._take(json.loads(body.decode("utf-8")))
        self._answers.put(None)
        with self._changed:
            self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()
        if "method" not in message:
            self._answers.put(message)
        elif "id" in message:
            with contextlib.suppress(Silence, OSError, ValueError):
                try:
                    result = self.answer(message["method"], message.get("params"))
                except Refusal:
                    self.send({"id": message["id"], "error": {"code": -32603, "message": "no"}})
                else:
                    self.send({"id": message["id"], "result": result})

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    # -- protocol ---------------------------------------------------------------------------------------------------

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request and do not wait; the id."""
        self._next_id += 1
        self.send({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    def request(self, method: str, params: Any = None, timeout: float = 60.0) -> Any:
        number = self.ask(method, params)
        answer = self.wait_for(lambda message: message.get("id") == number and "method" not in message, timeout)
        if "error" in answer:
            raise LspError(answer["error"])
        return answer["result"]

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"method": method, "params": params})

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool], timeout: float = 10.0) -> dict[str, Any]:
        with self._changed:
            found: list[dict[str, Any]] = []

            def look() -> bool:
                found[:] = [message for message in list(self.messages) if wanted(message)]
                return bool(found)

            if not self._changed.wait_for(look, timeout):
                raise TimeoutError(f"not seen in {timeout} s; stderr: {self.errors!r}")
            return found[0]

    def start(self, root: Path | None, capabilities: Any = None, options: Any = None, **more: Any) -> Any:
        result = self.request("initialize", initialize_params(root, capabilities, options, **more))
        self.notify("initialized", {})
        return result

    def stop(self, timeout: float = 5.0) -> int:
        self.request("shutdown")
        self.notify("exit")
        return self.wait(timeout)

    def wait(self, timeout: float = 5.0) -> int:
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        if self._error_reader.is_alive():
            self._error_reader.join(timeout)
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class LocalClient:
    """A server object in this process and loop, with a fake workspace behind it."""

    def __init__(self, server: NmServer, outlet: _ListOutlet, workspaces: list[FakeWorkspace]) -> None:
        self.server = server
        self.codes: list[int] = []
        self._outlet = outlet
        self._workspaces = workspaces
        self._next_id = 0

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self._outlet.messages

    @property
    def workspace(self) -> FakeWorkspace:
        return self._workspaces[0]

    def host(self, root: Path) -> FakeHost:
        return self.workspace.by_folder[root.resolve()]

    def notify(self, method: str, params: Any = None) -> None:
        self.receive({"method": method, "params": params})

    def receive(self, message: dict[str, Any]) -> None:
        self.server.protocol.receive(json.dumps({"jsonrpc": "2.0", **message}))

    def ask(self, method: str, params: Any = None) -> int:
        self._next_id += 1
        self.receive({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    async def answer_to(self, number: Any) -> dict[str, Any]:
        return await self.seen(lambda message: message.get("id") == number and "method" not in message)

    async def request(self, method: str, params: Any = None) -> Any:
        answer = await self.answer_to(self.ask(method, params))
        if "error" in answer:
            raise LspError(answer["error"])
        return answer["result"]

    def answers(self, number: Any) -> list[dict[str, Any]]:
        return [message for message in self.messages if message.get("id") == number and "method" not in message]

    async def seen(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted, once it is there."""
        return await self.until(lambda: next((message for message in self.messages if wanted(message)), None))

    async def until(self, look: Callable[[], Any]) -> Any:
        """What `look` gives, once that is true."""
        async with asyncio.timeout(10):
            while not (found := look()):
                self._outlet.arrived.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._outlet.arrived.wait(), 0.01)
            return found

    async def start(self, *roots: Path, capabilities: Any = None, options: Any = None, **more: Any) -> Any:
        params = initialize_params(roots[0] if roots else None, capabilities, options, **more)
        if roots:
            params["workspaceFolders"] = [{"uri": root.as_uri(), "name": root.name} for root in roots]
        result = await self.request("initialize", params)
        self.notify("initialized", {})
        if capabilities and capabilities.get("workspace", {}).get("configuration"):
            asked = await self.seen(lambda message: message.get("method") == "workspace/configuration")
            self.receive({"id": asked["id"], "result": [None]})
        for root in self.server.roots.all:
            await self.until(root.host.done)
        return result

    def open(self, uri: str, text: str, version: int | None = 1) -> None:
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, *changes: Any, version: int | None = 2) -> None:
        item = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": item, "contentChanges": list(changes)})


class _ListOutlet:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()

    def send(self, body: bytes) -> None:
        self.messages.append(json.loads(body))
        self.arrived.set()

    def close(self) -> None:
        pass


@contextlib.asynccontextmanager
async def local_client(*, token: str | None = None, backend: Backend | None = None) -> AsyncIterator[LocalClient]:
    workspaces: list[FakeWorkspace] = []

    def factory(settings: Any, listener: Any) -> FakeWorkspace:
        workspaces.append(FakeWorkspace(settings, listener))
        return workspaces[0]

    used = backend or Backend(asyncio.get_running_loop(), factory)
    outlet = _ListOutlet()
    codes: list[int] = []
    server = NmServer(used, outlet, codes.append, version="0", token=token)
    client = LocalClient(server, outlet, workspaces)
    client.codes = codes
    try:
        yield client
    finally:
        for workspace in workspaces:
            for host in workspace.by_folder.values():
                host.release.set()
        server.close()
        if backend is None:
            await asyncio.to_thread(used.close)
