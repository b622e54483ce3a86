"""What all connections of one process share: the engine's workspace, its folders, the threads that run requests.

Guarantees: every method returns at once and is called on the event loop's thread; the engine is imported and asked in
threads only, so `initialize` is answered before numpy is loaded; folders are added and removed in the order asked for;
what the engine tells is handed to the subscribers on the loop.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import EnvironmentProblem, NmError
from nm_lsp.engine.documents import Document
from nm_lsp.engine.requests import HostEvent, Nothing, SearchParams, SearchResult
from nm_lsp.engine.settings import SettingProblem, Settings, resolve_settings

if TYPE_CHECKING:
    from nm_lsp.engine.decisions.desk import Desk
    from nm_lsp.engine.decisions.outlines import Outlines
    from nm_lsp.engine.memory.desk import MemoryDesk

log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")

N_QUICK_THREADS = 3
"""For what is shown on files: a hover, a lens and a set of diagnostics at once."""

N_REQUEST_THREADS = 4
"""Requests that are worked on at once. Each may block; more would only compete for the same two cores."""


class HostPort(Protocol):
    """What the server needs of `engine.host.Host`, beyond one method per command. Document calls are O(1)."""

    @property
    def folder(self) -> Path: ...

    @property
    def decisions(self) -> Desk: ...

    @property
    def memory(self) -> MemoryDesk: ...

    @property
    def outlines(self) -> Outlines: ...

    @property
    def repository_root(self) -> Path: ...

    def open_document(self, doc: Document) -> None: ...

    def change_document(self, doc: Document) -> None: ...

    def save_document(self, path: str) -> None: ...

    def close_document(self, path: str) -> None: ...

    def files_changed(self, paths: Sequence[str]) -> None: ...

    def files_renamed(self, renames: Mapping[str, str]) -> None: ...

    def tell_events(self) -> None: ...

    def search(self, params: SearchParams, cancel: Cancellation) -> SearchResult: ...

    def cancel_index(self, params: Nothing, cancel: Cancellation) -> Any: ...


class WorkspacePort(Protocol):
    """What the server needs of `engine.workspace.Workspace`."""

    def add_folder(self, folder: Path) -> Any: ...

    def remove_folder(self, folder: Path) -> None: ...

    def configure(self, settings: Settings) -> None: ...

    def close(self) -> None: ...


ENGINE_GRACE_S = 0.3
"""How long the end of the process waits for a change of folders or settings that is under way."""

Listener = Callable[[HostEvent], None]
WorkspaceFactory = Callable[[Settings, Listener], WorkspacePort]


def engine_workspace(settings: Settings, listener: Listener) -> WorkspacePort:
    """The real workspace."""
    # Imported late: the engine brings numpy and the graph, which `initialize` must not wait for.
    from nm_lsp.engine.workspace import Workspace

    workspace: WorkspacePort = Workspace(settings, listener)
    return workspace


@dataclass(eq=False, slots=True)
class SharedFolder:
    """A folder that at least one connection has open. `host` is done once the engine has it, or has refused it."""

    folder: Path
    host: asyncio.Future[HostPort]
    users: set[object] = field(default_factory=set)


class Backend:
    def __init__(self, loop: asyncio.AbstractEventLoop, factory: WorkspaceFactory = engine_workspace) -> None:
        self._loop = loop
        self._factory = factory
        self._workspace: WorkspacePort | None = None
        self._settings: Settings | None = None
        self._folders: dict[Path, SharedFolder] = {}
        self._subscribers: list[Listener] = []
        self._overlay: dict[tuple[Path, str], dict[object, Document]] = {}
        self._closing = False
        self.is_configured = False
        self.executor = ThreadPoolExecutor(N_REQUEST_THREADS, "nm-request")
        # Hovers and what is shown on files must not wait behind searches, nor behind the looks at a commit.
        self._quick = ThreadPoolExecutor(N_QUICK_THREADS, "nm-quick")
        self.background = ThreadPoolExecutor(1, "nm-background")
        # One thread, so that folder and settings changes stay in order.
        self._engine_thread = ThreadPoolExecutor(1, "nm-engine")

    async def in_thread(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run what takes milliseconds, for a place of one file."""
        return await asyncio.wrap_future(self._quick.submit(call, *args, **kwargs))

    async def in_background(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run what may take a second and nobody waits for. One at a time."""
        return await asyncio.wrap_future(self.background.submit(call, *args, **kwargs))

    def prewarm(self) -> None:
        """Load the engine's modules while the client is still asked for its settings."""
        if self._factory is engine_workspace:
            self._submit(importlib.import_module, "nm_lsp.engine.workspace")

    # -- events ---------------------------------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> None:
        self._subscribers.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        if listener in self._subscribers:
            self._subscribers.remove(listener)

    def _listen(self, event: HostEvent) -> None:
        """Called from threads of the engine."""
        self._post(self._publish, event)

    def _publish(self, event: HostEvent) -> None:
        for subscriber in list(self._subscribers):
            subscriber(event)

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        if self._closing:
            return
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop closed between the two lines
            log.debug("An event came after the end")

    # -- settings and folders -------------------------------------------------------------------------------------

    def configure(
        self, client: object, first_folder: Path | None, tell: Callable[[tuple[SettingProblem, ...]], None]
    ) -> None:
        """Read the settings anew and pass them on; `tell` gets what could not be used, on the loop."""
        self.is_configured = True
        self._submit(self._configure, client, first_folder, tell)

    def _configure(
        self, client: object, first_folder: Path | None, tell: Callable[[tuple[SettingProblem, ...]], None]
    ) -> None:
        settings, problems = resolve_settings(client, first_folder)
        if self._workspace is None:
            workspace = self._factory(settings, self._listen)
            if self._closing:
                workspace.close()
                return
            self._workspace = workspace
        elif settings != self._settings:
            self._workspace.configure(settings)
        self._settings = settings
        if problems:
            self._post(tell, problems)

    @property
    def settings(self) -> Settings:
        return self._settings or Settings()

    def add_folder(self, user: object, folder: Path) -> SharedFolder:
        """Open `folder` for `user` (a connection); the engine hears of it once, however many open it."""
        shared = self._folders.get(folder)
        if shared is None:
            shared = self._folders[folder] = SharedFolder(folder, self._loop.create_future())
            # Nobody may ask for this folder at all: its failure is then not an error of asyncio's.
            shared.host.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._submit(self._add, shared)
        shared.users.add(user)
        return shared

    def _add(self, shared: SharedFolder) -> None:
        if self._workspace is None:
            self._post(_fail, shared.host, EnvironmentProblem("The engine could not be started; see the log."))
            return
        try:
            host: HostPort = self._workspace.add_folder(shared.folder)
        except NmError as error:
            self._post(_fail, shared.host, error)
        except OSError as error:
            reason = EnvironmentProblem(f"The folder {shared.folder} cannot be opened: {error.strerror}.")
            self._post(_fail, shared.host, reason)
        else:
            self._post(_succeed, shared.host, host)

    def remove_folder(self, user: object, shared: SharedFolder) -> None:
        """The last user's removal closes the folder in the engine."""
        shared.users.discard(user)
        if shared.users or self._folders.get(shared.folder) is not shared:
            return
        del self._folders[shared.folder]
        self._overlay = {key: docs for key, docs in self._overlay.items() if key[0] != shared.folder}
        self._submit(self._remove, shared.folder)

    def _remove(self, folder: Path) -> None:
        if self._workspace is not None:
            self._workspace.remove_folder(folder)

    def _submit(self, call: Callable[..., object], *args: Any) -> None:
        if not self._closing:
            self._engine_thread.submit(self._supervise, call, *args)

    def _supervise(self, call: Callable[..., object], *args: Any) -> None:
        if self._closing:
            return
        try:
            call(*args)
        except Exception:  # the only place that would see it: the thread's future is nobody's
            log.exception("The engine failed")

    # -- documents ------------------------------------------------------------------------------------------------

    def show_document(self, host: HostPort, owner: object, doc: Document) -> None:
        """`owner` (a connection's view of a file) shows `doc`. Several may show one file; the latest change counts."""
        shown = self._overlay.setdefault((host.folder, doc.path), {})
        known = bool(shown)
        shown.pop(owner, None)
        shown[owner] = doc
        if known:
            host.change_document(doc)
        else:
            host.open_document(doc)

    def hide_document(self, host: HostPort, owner: object, path: str) -> None:
        """`owner` no longer shows `path`; what another still shows counts again."""
        shown = self._overlay.get((host.folder, path), {})
        if shown.pop(owner, None) is None:
            return
        if shown:
            host.change_document(list(shown.values())[-1])
        else:
            del self._overlay[host.folder, path]
            host.close_document(path)

    # -- end --------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the workspace and stop all threads. Blocks as long as the engine does (under half a second)."""
        self._closing = True
        for executor in (self.executor, self._quick, self.background):
            executor.shutdown(wait=False, cancel_futures=True)
        # What is queued sees `_closing` and does nothing; a start of the engine that is under way is not waited for.
        wait([self._engine_thread.submit(int)], ENGINE_GRACE_S)
        self._engine_thread.shutdown(wait=False, cancel_futures=True)
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None


def _succeed(future: asyncio.Future[HostPort], host: HostPort) -> None:
    if not future.done():
        future.set_result(host)


def _fail(future: asyncio.Future[HostPort], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def resolve_folder(path: str) -> Path:
    """The folder as the system knows it: links followed, so that two ways to one folder are one folder."""
    return Path(os.path.realpath(path))
