"""A person at work in an editor whose messages reach the real server: its protocol, its workspace, its index child.

The server object lives in this process, so that its clock can be injected; every message is JSON as on a pipe. The
workspace's own thread learns twice a second of real time; `tick` is the same call, made when the clock has moved.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parents[1] / "engine_memory"))
sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

from editing import Editing
from lsp_harness import FULL, LspError, local_client

from nm_lsp.engine.memory.desk import MemoryDesk
from nm_lsp.engine.workspace import Workspace
from nm_lsp.server.backend import Backend

INDEXED_WITHIN_S = 3.0
"""So long a new file is waited for; one that is no source never comes."""
SETTINGS = {"model": {"enabled": False}, "decisions": {"hover": False}}
_T = TypeVar("_T")


class ServerEditing(Editing):
    """`reindex` waits until the index has what was saved."""

    def _open(self) -> MemoryDesk:
        self._saved: set[str] = set()
        self._hopeless: set[str] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stack = AsyncExitStack()
        return self._run(self._start())

    async def _start(self) -> MemoryDesk:
        self._workspaces: list[Workspace] = []

        def workspace(settings: Any, listener: Any) -> Workspace:
            self._workspaces.append(Workspace(settings, listener, clock=lambda: self.now))
            return self._workspaces[0]

        self._backend = Backend(asyncio.get_running_loop(), workspace)
        self._client = await self._stack.enter_async_context(local_client(backend=self._backend))
        await self._client.start(self.root, capabilities=FULL, options={"settings": SETTINGS})
        while not (await self._client.request("neuralmind/status", {}))["ready"]:
            await asyncio.sleep(0.05)
        (host,) = self._workspaces[0].hosts
        return host.memory

    def _run(self, call: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(120)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._client.messages.clear()
        return self._run(self._client.request(f"neuralmind/{method}", params))

    def close(self) -> None:
        self._run(self._stack.aclose())
        self._run(asyncio.to_thread(self._backend.close))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.keepers.close()
        self.repositories.close()

    # -- the editor ---------------------------------------------------------------------------------------------------

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._run(self._told(method, params))

    async def _told(self, method: str, params: dict[str, Any]) -> None:
        self._client.notify(method, params)

    def _uri(self, path: str) -> str:
        return (self.root / path).as_uri()

    def open(self, *paths: str) -> None:
        for path in paths:
            if path not in self.screen:
                self.screen[path] = (self.read(path), 1)
                item = {"uri": self._uri(path), "languageId": "", "version": 1, "text": self.screen[path][0]}
                self._notify("textDocument/didOpen", {"textDocument": item})

    def change(self, path: str, text: str, *, version: int | None = None) -> None:
        self.open(path)
        number = self.screen[path][1] + 1 if version is None else version
        self.screen[path] = (text, number)
        item = {"uri": self._uri(path), "version": number}
        self._notify("textDocument/didChange", {"textDocument": item, "contentChanges": [{"text": text}]})

    def save(self, *paths: str) -> None:
        for path in paths or tuple(self.screen):
            self.write({path: self.screen[path][0]})
            self._notify("textDocument/didSave", {"textDocument": {"uri": self._uri(path)}})
            self._saved.add(path)

    def close_documents(self) -> None:
        for path in self.screen:
            self._notify("textDocument/didClose", {"textDocument": {"uri": self._uri(path)}})
        self.screen.clear()

    def reindex(self) -> None:
        """Wait until what was saved is known."""
        until = time.monotonic() + INDEXED_WITHIN_S
        while self._saved - self._hopeless:
            path = min(self._saved - self._hopeless)
            try:
                self.ask("neighbors", {"symbol": path, "limit": 1})
            except LspError:
                if time.monotonic() > until:
                    self._hopeless.add(path)
                time.sleep(0.02)
            else:
                self._saved.discard(path)
