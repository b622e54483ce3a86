"""Pages about decisions for editors that can open files and nothing else, and showing them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NotFound
from nm_lsp.base.uris import uri_of_path
from nm_lsp.engine.decision_requests import Caller, DiffParams, GetParams, HistoryParams
from nm_lsp.engine.decisions.pages import Pages, decision_page, list_page
from nm_lsp.server.backend import HostPort
from nm_lsp.server.features.markup import cut

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

_N_LISTED = 20
_MESSAGE_CHARS = 1_500
_READER = Caller("lsp")


class PageFolder:
    """The pages of one folder. Every method blocks."""

    def __init__(self, host: HostPort) -> None:
        self._host = host
        self._pages = Pages(host.folder)

    def decision(self, identity: str) -> Path | None:
        """The page of one decision; None if there is no such decision."""
        return self._pages.write(f"{identity}.md", lambda: self._decision_text(identity))

    def governing(self, path: str) -> Path | None:
        """One page of all that governs a file of the folder."""
        name = "governing-" + path.replace("/", "-").replace("\\", "-")[-100:] + ".md"
        return self._pages.write(name, lambda: self._governing_text(path))

    def difference(self, identity: str) -> Path | None:
        """What changed since the decision was confirmed, as a unified diff."""
        return self._pages.write(f"{identity}.diff", lambda: self._difference_text(identity))

    def renew(self) -> None:
        self._pages.renew()

    def clear(self) -> None:
        self._pages.clear()

    def _decision_text(self, identity: str) -> str | None:
        with contextlib.suppress(NotFound):
            cancel = Cancellation()
            (detail,) = self._host.decisions.get(GetParams(ids=(identity,)), cancel, _READER).decisions
            return decision_page(detail, self._host.decisions.history(HistoryParams(id=identity), cancel, _READER))
        return None

    def _governing_text(self, path: str) -> str | None:
        ids = tuple(dict.fromkeys(one.decision.id for one in self._host.decisions.governing(path)))[:_N_LISTED]
        if not ids:
            return None
        found = self._host.decisions.get(GetParams(ids=ids), Cancellation(), _READER)
        return list_page(f"Decisions that govern {path}", found.decisions)

    def _difference_text(self, identity: str) -> str | None:
        with contextlib.suppress(NotFound):
            return (
                self._host.decisions.diff(DiffParams(id=identity), Cancellation(), _READER).text or "No difference.\n"
            )
        return None


async def show_page(server: NmServer, write: Callable[[], Path | None]) -> None:
    """Write a page and show it: opened by the editor where it opens documents, else as a message."""
    path = await server.backend.in_thread(write)
    if path is None:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, "There is no such decision."))
        return
    if server.client.shows_documents:
        with contextlib.suppress(TimeoutError, JsonRpcException):
            shown = await server.ask(
                types.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams(uri=uri_of_path(path), take_focus=True)
            )
            if shown.success:
                return
    text = await server.backend.in_thread(path.read_text, encoding="utf-8")
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, cut(text, _MESSAGE_CHARS)))
