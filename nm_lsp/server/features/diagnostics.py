"""Diagnostics of decisions, source `neuralmind`: sent unasked to every client that did not ask to pull them.

- `decision-stale`, a warning: a commit changed what the decision governs. Information where only comments or layout
  changed, or on a branch that merely differs.
- `decision-at-risk`, a hint: committing what is on the screen or on disk would make it stale.
- `decision-invalidated`: off unless switched on.

Guarantees: only differences are sent (and all of a file that is opened or closed), under the client's own URI; what was
sent is taken back when the decision holds again, the file goes, the folder is closed or the connection ends; while a
rebase, merge, cherry-pick or bisect goes on the last set stays. One `Feed` per connection, on the event loop; marks and
files are read in the backend's threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NmError
from nm_lsp.base.uris import child_uri, relative_to
from nm_lsp.engine.decision_requests import Marks
from nm_lsp.engine.requests import Notice
from nm_lsp.server.backend import HostPort
from nm_lsp.server.documents import OpenDocument
from nm_lsp.server.features import news, planning
from nm_lsp.server.features.planning import EMPTY, OpenText, Plan, PlanRequest, RiskMarks
from nm_lsp.server.roots import Root

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

log = logging.getLogger(__name__)

FEW = 20
"""So many new marks wait, for a moment, for layout to be told from change, so that they are shown once."""
CLASSIFY_GRACE_S = 0.15
FILES_S = 2.0
"""How often the marked files are looked at, since no event tells of every file that goes or comes back."""


@dataclass(eq=False, slots=True)
class _Folder:
    """What one open folder shows. `touched` are changed paths whose risk is not known yet (None: everything)."""

    root: Root
    host: HostPort
    marks: Marks | None = None
    risks: RiskMarks = field(default_factory=dict)
    plan: Plan = EMPTY
    sent: dict[str, tuple[str, tuple[types.Diagnostic, ...]]] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    touched: set[str] | None = field(default_factory=set)
    quiet_timer: asyncio.TimerHandle | None = None
    files_timer: asyncio.TimerHandle | None = None
    showing: asyncio.Lock = field(default_factory=asyncio.Lock)
    looking: bool = False
    look_again: bool = False
    was_full: bool = False
    told: Marks | None = None
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False


class Feed:
    def __init__(self, server: NmServer) -> None:
        self._server = server
        self._folders: dict[Root, _Folder] = {}

    # -- what happens -------------------------------------------------------------------------------------------

    def folder_ready(self, root: Root, host: HostPort) -> None:
        folder = self._folders[root] = _Folder(root, host)
        self._look(folder)
        self._watch_files(folder)

    def folder_removed(self, root: Root) -> None:
        folder = self._folders.pop(root, None)
        if folder is not None:
            self._close(folder)

    def decisions_changed(self, root: Root) -> None:
        """There is a new look at the folder's decisions."""
        if (folder := self._folders.get(root)) is not None:
            self._look(folder)

    def files_changed(self, root: Root) -> None:
        """Something on disk has changed: what is uncommitted may put other decisions at risk."""
        if (folder := self._folders.get(root)) is not None:
            folder.touched = None
            self._wait_for_quiet(folder)

    def renamed(self, root: Root, old: str, new: str) -> None:
        """The editor has moved a file within the folder; its marks go with it until git says where it is."""
        if (folder := self._folders.get(root)) is not None:
            prefix = folder.host.decisions.prefix
            here, there = prefix.to_repository(old), prefix.to_repository(new)
            origin = next((source for source, target in folder.renames.items() if target == here), here)
            folder.renames.pop(there, None)
            folder.renames[origin] = there
            folder.touched = None
            self._look(folder)

    def document_changed(self, document: OpenDocument, *, came_or_went: bool) -> None:
        """A document was opened, closed (`came_or_went`), changed or saved."""
        folder = self._folders.get(document.root) if document.root is not None else None
        if folder is None or not document.path:
            return
        if folder.touched is not None:
            folder.touched.add(document.path)
        self._wait_for_quiet(folder)
        if came_or_went:
            if (before := folder.sent.get(document.path)) is not None:
                # Neovim drops the diagnostics of a file that it closes or loads anew, so they are sent again.
                folder.sent[document.path] = (before[0], ())
            self._server.spawn(self._show(folder))

    def show_all(self) -> None:
        """Settings, folders or the set of open documents changed: the same marks may be shown otherwise."""
        for folder in self._folders.values():
            self._server.spawn(self._show(folder))

    def close(self) -> None:
        """Take back everything."""
        for folder in self._folders.values():
            self._close(folder)
        self._folders.clear()

    def _close(self, folder: _Folder) -> None:
        folder.closed = True
        folder.looked.set()
        for timer in (folder.quiet_timer, folder.files_timer):
            if timer is not None:
                timer.cancel()
        for uri, _ in folder.sent.values():
            self._publish(uri, None, ())
        folder.sent.clear()

    # -- for other features -------------------------------------------------------------------------------------

    def marks_of(self, root: Root) -> Marks | None:
        """The marks that are shown; None before the first look."""
        folder = self._folders.get(root)
        return folder.marks if folder is not None else None

    async def report(self, root: Root, path: str) -> tuple[types.Diagnostic, ...]:
        """What a file shows, for clients that pull; waits for the first look."""
        folder = self._folders.get(root)
        if folder is None:
            return ()
        await folder.looked.wait()
        file = folder.plan.files.get(path)
        return file.diagnostics if file is not None else ()

    async def reports(self) -> list[tuple[str, int | None, tuple[types.Diagnostic, ...]]]:
        """URI, version and diagnostics of every file that shows any."""
        found = []
        for folder in list(self._folders.values()):
            await folder.looked.wait()
            for file in folder.plan.files.values():
                version = file.opened.version if file.opened is not None else None
                found.append((self._uri(folder, file.path), version, file.diagnostics))
        return found

    # -- looking ------------------------------------------------------------------------------------------------

    def _look(self, folder: _Folder) -> None:
        if folder.looking:
            folder.look_again = True
            return
        folder.looking = True
        self._server.spawn(self._look_until_done(folder))

    async def _look_until_done(self, folder: _Folder) -> None:
        try:
            folder.look_again = True
            while folder.look_again and not folder.closed:
                folder.look_again = False
                await self._look_once(folder)
        except NmError as error:
            # The engine tells the user what is wrong; what was shown stays.
            log.warning("Decisions of %s cannot be shown: %s", folder.root.path, error)
        finally:
            folder.looking = False
            folder.looked.set()

    async def _look_once(self, folder: _Folder) -> None:
        desk, backend = folder.host.decisions, self._server.backend
        quick = await backend.in_thread(desk.marks, classified=False)
        if news.n_fresh(folder.marks, quick) > FEW:
            # Telling layout from change competes for the same core, and would hold up the marks themselves.
            await self._take(folder, quick)
        full = asyncio.wrap_future(backend.background.submit(desk.marks))
        done, _ = await asyncio.wait({full}, timeout=CLASSIFY_GRACE_S)
        if not done:
            await self._take(folder, quick)
        marks = await full
        await self._take(folder, marks)
        if marks.quiet or folder.closed:
            return
        self._tell(folder, marks)
        folder.touched = None
        await self._look_at_risks(folder)

    async def _take(self, folder: _Folder, marks: Marks) -> None:
        # In the midst of a rebase or merge, what was shown stays; at the start there is nothing that could.
        if marks.quiet and folder.marks is not None:
            return
        folder.marks = marks
        await self._show(folder)

    def _tell(self, folder: _Folder, marks: Marks) -> None:
        before, folder.told = folder.told, marks
        if self._server.surface.settings_of(folder.root).decisions.messages:
            for text in news.messages_of(before, marks, self._server.client.command_prefix):
                self._server.reporter.notice(Notice("warning", text))

    # -- at risk ------------------------------------------------------------------------------------------------

    def _wait_for_quiet(self, folder: _Folder) -> None:
        if folder.quiet_timer is not None:
            folder.quiet_timer.cancel()
        delay_s = self._server.surface.settings_of(folder.root).decisions.quiet_ms / 1000
        loop = asyncio.get_running_loop()
        folder.quiet_timer = loop.call_later(delay_s, self._quiet, folder)

    def _quiet(self, folder: _Folder) -> None:
        folder.quiet_timer = None
        if not folder.looking and not folder.closed:
            self._server.spawn(self._look_at_risks(folder))
        elif not folder.closed:
            self._wait_for_quiet(folder)

    async def _look_at_risks(self, folder: _Folder) -> None:
        """Find what the touched texts put at risk, and show all anew: in changed texts marks have moved, too."""
        if folder.marks is None or folder.closed:
            return
        touched, folder.touched = folder.touched, set()
        prefix = folder.host.decisions.prefix
        paths = None if touched is None else sorted(map(prefix.to_repository, touched))
        try:
            folder.risks = await self._risks(folder, paths)
        except NmError as error:
            log.warning("Nothing is known of decisions at risk: %s", error)
        await self._show(folder)

    async def _risks(self, folder: _Folder, paths: list[str] | None) -> RiskMarks:
        desk, backend = folder.host.decisions, self._server.backend
        is_off = self._server.surface.settings_of(folder.root).decisions.at_risk == "off"
        if is_off or folder.marks is None or not folder.marks.counts:
            # Without any decision, typing must not make git run.
            return {}
        if paths is None:
            on_screen = sorted(map(desk.prefix.to_repository, self._opened(folder.root)))
            on_disk = await backend.in_background(desk.risks, None, Cancellation())
            unsaved = await backend.in_background(desk.risks, on_screen, Cancellation()) if on_screen else {}
            return {**on_disk, **unsaved}
        found = await backend.in_background(desk.risks, paths, Cancellation())
        kept = {path: marks for path, marks in folder.risks.items() if path not in paths}
        return {**kept, **found}

    # -- showing ------------------------------------------------------------------------------------------------

    async def _show(self, folder: _Folder) -> None:
        """Plan and send the differences. One at a time for each folder, so that the newest comes last."""
        async with folder.showing:
            if folder.marks is None or folder.closed:
                return
            request = self._request(folder, folder.marks)
            plan = await self._server.backend.in_thread(planning.plan, request)
            if self._folders.get(folder.root) is not folder:
                return
            folder.plan = plan
            self._send(folder, plan)
            settings = request.settings
            if plan.n_left_out and not folder.was_full and settings.messages:
                text = news.left_out_message(len(plan.files), plan.n_left_out)
                self._server.reporter.notice(Notice("info", text))
            folder.was_full = plan.n_left_out > 0

    def _request(self, folder: _Folder, marks: Marks) -> PlanRequest:
        return PlanRequest(
            host=folder.host,
            marks=marks,
            risks=folder.risks,
            opened=self._opened(folder.root),
            settings=self._server.surface.settings_of(folder.root).decisions,
            encoding=self._server.client.encoding,
            renames=folder.renames,
            foreign=self._foreign(folder.root),
            before=folder.plan,
        )

    def _opened(self, root: Root) -> dict[str, OpenText]:
        """The documents of a folder as the engine was shown them last."""
        return {
            document.shown.path: OpenText(document.uri, document.shown.version, document.shown.text)
            for document in self._server.documents.of_root(root)
            if document.shown is not None and document.uris
        }

    def _foreign(self, root: Root) -> tuple[str, ...]:
        """The folders below `root` that are opened by themselves, relative to it."""
        found = set()
        for other in self._server.roots.all:
            for spelling in (root.path, root.real or root.path):
                relative = relative_to(other.path, spelling) or relative_to(other.real or other.path, spelling)
                if relative:
                    found.add(relative + "/")
        return tuple(sorted(found))

    def _send(self, folder: _Folder, plan: Plan) -> None:
        changed = False
        for path in [path for path in folder.sent if path not in plan.files]:
            uri, _ = folder.sent.pop(path)
            self._publish(uri, None, ())
            changed = True
        on_screen = self._opened(folder.root)
        for path, file in plan.files.items():
            opened = on_screen.get(path)
            if opened is not None and opened != file.opened:
                # The text has moved on meanwhile, and a plan for the new one follows once it rests.
                continue
            uri = self._uri(folder, path)
            before = folder.sent.get(path)
            if before == (uri, file.diagnostics):
                continue
            if before is not None and before[0] != uri:
                self._publish(before[0], None, ())
            folder.sent[path] = (uri, file.diagnostics)
            self._publish(uri, opened.version if opened is not None else None, file.diagnostics)
            changed = True
        if changed and self._server.client.pulls_diagnostics and self._server.client.refreshes_diagnostics:
            self._server.spawn(self._refresh())

    def _uri(self, folder: _Folder, path: str) -> str:
        return self._server.documents.uri_of(folder.root, path) or child_uri(folder.root.uri, path)

    def _publish(self, uri: str, version: int | None, diagnostics: Iterable[types.Diagnostic]) -> None:
        if self._server.client.pulls_diagnostics:
            return
        params = types.PublishDiagnosticsParams(uri=uri, diagnostics=list(diagnostics), version=version)
        self._server.text_document_publish_diagnostics(params)

    async def _refresh(self) -> None:
        # A client that does not answer asks again by itself.
        with contextlib.suppress(TimeoutError, JsonRpcException):
            await self._server.ask(types.WORKSPACE_DIAGNOSTIC_REFRESH, None)

    # -- files --------------------------------------------------------------------------------------------------

    def _watch_files(self, folder: _Folder) -> None:
        if not folder.closed:
            loop = asyncio.get_running_loop()
            folder.files_timer = loop.call_later(FILES_S, self._look_at_files, folder)

    def _look_at_files(self, folder: _Folder) -> None:
        if folder.plan.files or folder.plan.missing:
            self._server.spawn(self._compare_files(folder))
        else:
            self._watch_files(folder)

    async def _compare_files(self, folder: _Folder) -> None:
        plan = folder.plan
        known = {path: file.stamp for path, file in plan.files.items()} | dict.fromkeys(plan.missing)
        now = await self._server.backend.in_thread(planning.stamps_of, folder.host, list(known))
        if now != known:
            await self._show(folder)
        self._watch_files(folder)
