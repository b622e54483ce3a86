"""What the engine tells unasked: progress of the index, notices, changes of status.

Guarantees: one `end` for each `begin`, whatever happens to the build, the folder or the connection; nothing at all
about progress to a client that did not say it shows it, or that refused the token; every notice is shown once.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.requests import BrainEvent, HostEvent, IndexFinished, IndexProgress, Nothing, Notice, StatusChanged
from nm_lsp.server.roots import Root

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

CANCEL_GRACE_S = 3.0
"""How long the engine may take to say that a cancelled build has ended; after that the display is ended anyway."""

_LEVELS = {
    "info": types.MessageType.Info,
    "warning": types.MessageType.Warning,
    "error": types.MessageType.Error,
}


@dataclass(eq=False, slots=True)
class _Display:
    """One progress bar. It is `begun` once the client has accepted its token."""

    token: str
    root: Root
    latest: IndexProgress
    begun: bool = False
    over: bool = False


class EventReporter:
    """Turns the engine's events into messages to one client. Lives on the event loop."""

    def __init__(self, server: NmServer) -> None:
        self._server = server
        self._displays: dict[str, _Display] = {}
        self._told: set[tuple[str, str]] = set()
        self._waiting_notices: list[Notice] = []
        self._client_listens = False

    def start(self) -> None:
        """The client has said `initialized`: from now on requests and messages may be sent to it."""
        self._client_listens = True
        for notice in self._waiting_notices:
            self._notice(notice)
        self._waiting_notices.clear()

    def handle(self, event: HostEvent) -> None:
        match event:
            case IndexProgress():
                self._progress(event)
            case IndexFinished():
                self._finished(event)
            case StatusChanged():
                self._status_changed(event)
            case Notice():
                self.notice(event)
            case BrainEvent():
                self._brain_event(event)

    def notice(self, notice: Notice) -> None:
        """Show a notice once; one for a folder this client does not have open is not its business."""
        if notice.folder is not None and self._server.roots.of_folder(notice.folder) is None:
            return
        if self._client_listens:
            self._notice(notice)
        else:
            self._waiting_notices.append(notice)

    def _notice(self, notice: Notice) -> None:
        key = (notice.level, notice.message)
        if key in self._told:
            return
        self._told.add(key)
        text = f"{notice.message} {notice.hint}" if notice.hint else notice.message
        level = _LEVELS.get(notice.level, types.MessageType.Info)
        self._server.window_show_message(types.ShowMessageParams(type=level, message=text))

    def _status_changed(self, event: StatusChanged) -> None:
        root = self._server.roots.of_folder(event.folder)
        if root is not None and self._client_listens and self._server.client.wants("statusChanged"):
            self._server.protocol.notify("neuralmind/statusChanged", {"folder": root.uri})

    def _brain_event(self, event: BrainEvent) -> None:
        root = self._server.roots.of_folder(event.folder)
        if root is not None and self._client_listens and self._server.client.wants("event"):
            body = {"folder": root.uri, "id": event.id, "time": event.time, "kind": event.kind, "data": event.data}
            self._server.protocol.notify("neuralmind/event", body)

    # -- progress -----------------------------------------------------------------------------------------------

    def _progress(self, event: IndexProgress) -> None:
        root = self._server.roots.of_folder(event.folder)
        if root is None or not self._client_listens or not self._server.client.shows_progress:
            return
        display = self._displays.get(event.folder)
        if display is None:
            display = self._displays[event.folder] = _Display(f"nm-{uuid.uuid4()}", root, event)
            self._server.spawn(self._create(display))
            return
        display.latest = event
        if display.begun and not display.over:
            report = types.WorkDoneProgressReport(message=event.message, percentage=event.percent, cancellable=True)
            self._send(display, report)

    async def _create(self, display: _Display) -> None:
        try:
            await self._server.ask(
                types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token=display.token)
            )
        except (TimeoutError, JsonRpcException):
            # Kept in the table, unbegun: this build is not asked about again.
            return
        if display.over:
            return
        display.begun = True
        event = display.latest
        # Clients that see no percentage at the beginning ignore all later ones.
        begin = types.WorkDoneProgressBegin(
            title=f"Indexing {display.root.path.rstrip('/').rpartition('/')[2]}",
            message=event.message,
            percentage=event.percent or 0,
            cancellable=True,
        )
        self._send(display, begin)

    def _finished(self, event: IndexFinished) -> None:
        self._end(event.folder, f"Failed: {event.error}" if event.error else event.message)

    def _end(self, folder: str, message: str) -> None:
        display = self._displays.pop(folder, None)
        if display is None or display.over:
            return
        display.over = True
        if display.begun:
            self._send(display, types.WorkDoneProgressEnd(message=message))

    def _send(self, display: _Display, value: Any) -> None:
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(token=display.token, value=value))

    def cancel(self, params: Any) -> None:
        """`window/workDoneProgress/cancel`."""
        token = params.get("token") if isinstance(params, dict) else None
        for folder, display in self._displays.items():
            if display.token == token:
                host = display.root.ready_host()
                if host is not None:
                    self._server.backend.executor.submit(host.cancel_index, Nothing(), Cancellation())
                asyncio.get_running_loop().call_later(CANCEL_GRACE_S, self._end_if, folder, display)
                return

    def _end_if(self, folder: str, display: _Display) -> None:
        if self._displays.get(folder) is display:
            self._end(folder, "Stopped.")

    def folder_removed(self, root: Root) -> None:
        for folder, display in list(self._displays.items()):
            if display.root is root:
                self._end(folder, "The folder was closed.")

    def stop(self) -> None:
        """End every display; called before the connection does."""
        for folder in list(self._displays):
            self._end(folder, "The server is shutting down.")
        self._client_listens = False
