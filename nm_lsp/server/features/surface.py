"""All that one connection shows of decisions unasked, and the settings it shows it by. Lives on the event loop."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from nm_lsp.engine.decision_requests import DecisionsChanged
from nm_lsp.engine.requests import HostEvent, StatusChanged
from nm_lsp.engine.settings import Settings, resolve_settings
from nm_lsp.server.backend import HostPort
from nm_lsp.server.documents import OpenDocument
from nm_lsp.server.features.diagnostics import Feed
from nm_lsp.server.features.pages import PageFolder
from nm_lsp.server.roots import Root

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer


class Surface:
    """Each folder is shown by its own settings: the client's over its own file over the defaults."""

    def __init__(self, server: NmServer) -> None:
        self._server = server
        self.feed = Feed(server)
        self._settings: dict[Root, Settings] = {}
        self._pages: dict[Root, PageFolder] = {}

    def settings_of(self, root: Root) -> Settings:
        return self._settings.get(root) or self._server.backend.settings

    def pages_of(self, root: Root, host: HostPort) -> PageFolder:
        """Where texts of decisions are written for editors that open nothing but files."""
        pages = self._pages.get(root)
        if pages is None:
            pages = self._pages[root] = PageFolder(host)
        return pages

    # -- what happens ---------------------------------------------------------------------------------------------

    def handle(self, event: HostEvent) -> None:
        if isinstance(event, DecisionsChanged):
            for root in self._roots_of(event.folder):
                self.feed.decisions_changed(root)
                self._tell(root)
                if root in self._pages:
                    self._server.spawn(self._server.backend.in_background(self._pages[root].renew))
            self._refresh_lenses()
        elif isinstance(event, StatusChanged):
            for root in self._roots_of(event.folder):
                self.feed.files_changed(root)

    def folder_ready(self, root: Root, host: HostPort) -> None:
        self._server.spawn(self._begin(root, host))

    def folder_removed(self, root: Root) -> None:
        self.feed.folder_removed(root)
        self._settings.pop(root, None)
        self._drop_pages(root)

    def document_changed(self, document: OpenDocument, came_or_went: bool) -> None:
        self.feed.document_changed(document, came_or_went=came_or_went)

    def settings_changed(self) -> None:
        if self._server.started and not self._server.is_shut_down:
            self._server.spawn(self._read_settings())

    def close(self) -> None:
        self.feed.close()
        for root in list(self._pages):
            self._drop_pages(root)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _roots_of(self, folder: str) -> list[Root]:
        return [root for root in self._server.roots.all if folder in {root.real, root.path}]

    async def _begin(self, root: Root, host: HostPort) -> None:
        self._settings[root] = await self._resolve(root)
        if root in self._server.roots.all:
            self.feed.folder_ready(root, host)
            self._refresh_lenses()

    async def _read_settings(self) -> None:
        for root in [root for root in self._server.roots.all if root in self._settings]:
            before, now = self._settings[root], await self._resolve(root)
            self._settings[root] = now
            if before.decisions != now.decisions:
                self.feed.files_changed(root)
        self.feed.show_all()
        self._refresh_lenses()

    async def _resolve(self, root: Root) -> Settings:
        backend = self._server.backend
        settings, _ = await backend.in_thread(resolve_settings, self._server.client_settings, Path(root.path))
        return settings

    def _tell(self, root: Root) -> None:
        client = self._server.client
        if client.wants("statusChanged"):
            self._server.protocol.notify("neuralmind/statusChanged", {"folder": root.uri})
        if client.wants("event"):
            self._server.protocol.notify("neuralmind/event", {"kind": "decisionsChanged", "folder": root.uri})

    def _refresh_lenses(self) -> None:
        if self._server.client.refreshes_lenses and self._server.started and not self._server.is_shut_down:
            self._server.spawn(self._ask_for_lenses())

    async def _ask_for_lenses(self) -> None:
        # A client that does not answer asks for lenses by itself at the next change.
        with contextlib.suppress(TimeoutError, JsonRpcException):
            await self._server.ask(types.WORKSPACE_CODE_LENS_REFRESH, None)

    def _drop_pages(self, root: Root) -> None:
        pages = self._pages.pop(root, None)
        if pages is not None:
            # Not in the backend's threads: those drop what waits when the process ends.
            threading.Thread(target=pages.clear, name="nm-pages").start()
