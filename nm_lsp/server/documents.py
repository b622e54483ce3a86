"""Open documents: their text as the client has it, fed to the engine's overlay.

Guarantees: the text follows the client's messages in the order of arrival, whatever the versions say; a change, save or
close of a document that is not open is ignored; opening twice replaces; several spellings of one URI are one document;
every scheme but `file`, and whatever belongs to git, is ignored as a whole. Nothing here touches the disk.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from nm_lsp.base.text import Position, PositionEncoding, TextBuffer, without_surrogates
from nm_lsp.base.uris import path_of_uri
from nm_lsp.engine.documents import Document
from nm_lsp.server.backend import Backend, HostPort
from nm_lsp.server.roots import Root, Roots

log = logging.getLogger(__name__)

_FOREIGN_FOLDERS = frozenset({".git", ".neuralmind"})


@dataclass(eq=False, slots=True)
class OpenDocument:
    """`root` and `path` (relative to it) are None outside every folder; `shown` is what the engine was told last."""

    abs_path: str
    uris: dict[str, None]
    language_id: str
    version: int | None
    buffer: TextBuffer
    root: Root | None = None
    path: str | None = None
    host: HostPort | None = None
    shown: Document | None = None

    @property
    def uri(self) -> str:
        """The spelling the client opened last."""
        return next(reversed(self.uris))


@dataclass(eq=False, slots=True)
class Documents:
    """The documents of one connection. Called on the event loop; `uri_of` and `text_of` from any thread.

    `listener` hears of every document that was opened, changed, saved or closed, and whether it was opened or closed.
    """

    backend: Backend
    roots: Roots
    encoding: PositionEncoding = PositionEncoding.UTF16
    listener: Callable[[OpenDocument, bool], None] | None = None
    _open: dict[str, OpenDocument] = field(default_factory=dict)

    def get(self, uri: str) -> OpenDocument | None:
        path = path_of_uri(uri)
        return None if path is None else self._open.get(path)

    # -- messages -----------------------------------------------------------------------------------------------

    def did_open(self, params: Any) -> None:
        item = _dict(params, "textDocument")
        uri, text = item.get("uri"), item.get("text")
        if not isinstance(uri, str) or not isinstance(text, str):
            log.warning("Ignoring a didOpen without uri and text")
            return
        abs_path = path_of_uri(uri)
        if abs_path is None:
            return
        document = self._open.get(abs_path)
        if document is None:
            language_id = item.get("languageId")
            document = OpenDocument(
                abs_path, {uri: None}, language_id if isinstance(language_id, str) else "", None, TextBuffer(text)
            )
            self._open[abs_path] = document
            self._place(document)
        else:
            document.buffer.replace_all(text)
            document.uris.pop(uri, None)
            document.uris[uri] = None
        document.version = _version(item)
        self._show(document)
        self._tell(document, came_or_went=True)

    def did_change(self, params: Any) -> None:
        item = _dict(params, "textDocument")
        document = self._of(item)
        if document is None:
            return
        changes = params.get("contentChanges")
        for change in changes if isinstance(changes, list) else ():
            self._apply(document, change)
        document.version = _version(item)
        self._show(document)
        self._tell(document)

    def did_save(self, params: Any) -> None:
        document = self._of(_dict(params, "textDocument"))
        if document is not None and document.host is not None and document.path is not None:
            document.host.save_document(document.path)
            self._tell(document)

    def did_close(self, params: Any) -> None:
        item = _dict(params, "textDocument")
        document = self._of(item)
        if document is None:
            return
        known = document.uris
        # A client that closes under a spelling it never opened means the only one there is.
        known.pop(item["uri"] if item["uri"] in known else document.uri)
        if not known:
            del self._open[document.abs_path]
            self._hide(document)
        self._tell(document, came_or_went=True)

    # -- folders ------------------------------------------------------------------------------------------------

    def folders_changed(self) -> None:
        """Give every document to the folder that owns it now."""
        for document in self._open.values():
            before = document.root
            owner = self.roots.owner(document.abs_path)
            if (owner[0] if owner else None) is before:
                continue
            self._hide(document)
            self._place(document)
            self._show(document)

    def folder_ready(self, root: Root, host: HostPort) -> None:
        """Show the engine what was opened before it had the folder."""
        self.folders_changed()
        for document in self._open.values():
            if document.root is root and document.host is not host:
                self._show(document)

    def clear(self) -> None:
        for document in self._open.values():
            self._hide(document)
        self._open.clear()

    # -- for answers --------------------------------------------------------------------------------------------

    def uri_of(self, root: Root, path: str) -> str | None:
        """The client's own URI of an open file."""
        document = self._at(root, path)
        return document.uri if document else None

    def text_of(self, root: Root, path: str) -> str | None:
        """The text of an open file as the engine saw it last."""
        document = self._at(root, path)
        return document.shown.text if document and document.shown else None

    def of_root(self, root: Root) -> list[OpenDocument]:
        return [document for document in self._open.values() if document.root is root]

    def _at(self, root: Root, path: str) -> OpenDocument | None:
        for folder in (root.path, root.real):
            if folder is not None:
                document = self._open.get(path_join(folder, path))
                if document is not None and document.root is root and document.uris:
                    return document
        return None

    def _tell(self, document: OpenDocument, *, came_or_went: bool = False) -> None:
        if self.listener is not None:
            self.listener(document, came_or_went)

    # -- inside -------------------------------------------------------------------------------------------------

    def _of(self, item: dict[str, Any]) -> OpenDocument | None:
        uri = item.get("uri")
        return self.get(uri) if isinstance(uri, str) else None

    def _place(self, document: OpenDocument) -> None:
        owner = self.roots.owner(document.abs_path)
        document.root, document.path = owner or (None, None)

    def _show(self, document: OpenDocument) -> None:
        if document.root is None or not document.path or not _FOREIGN_FOLDERS.isdisjoint(_parts(document.path)):
            return
        host = document.root.ready_host()
        text = without_surrogates(document.buffer.text)
        document.shown = Document(document.path, text, document.version, document.language_id)
        if host is not None:
            document.host = host
            self.backend.show_document(host, document, document.shown)

    def _hide(self, document: OpenDocument) -> None:
        if document.host is not None and document.path is not None:
            self.backend.hide_document(document.host, document, document.path)
        document.host = None

    def _apply(self, document: OpenDocument, change: Any) -> None:
        text = change.get("text") if isinstance(change, dict) else None
        if not isinstance(text, str):
            log.warning("Ignoring a change without text of %s", document.uri)
            return
        where = change.get("range")
        if where is None:
            document.buffer.replace_all(text)
            return
        start, end = _position(where, "start"), _position(where, "end")
        if start is None or end is None:
            log.warning("Ignoring a change with a malformed range of %s", document.uri)
            return
        document.buffer.replace(start, end, text, self.encoding)


def path_join(folder: str, path: str) -> str:
    separator = "\\" if "\\" in folder else "/"
    return folder.rstrip(separator) + separator + path.replace("/", separator)


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).parts


def _dict(params: Any, name: str) -> dict[str, Any]:
    value = params.get(name) if isinstance(params, dict) else None
    return value if isinstance(value, dict) else {}


def _version(item: dict[str, Any]) -> int | None:
    version = item.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _position(where: Any, name: str) -> Position | None:
    item = _dict(where, name)
    line, column = item.get("line"), item.get("character")
    # Some clients know no integers; what JSON calls 1e999 is no number to anybody.
    if not isinstance(line, int | float) or not isinstance(column, int | float):
        return None
    return Position(int(line), int(column)) if math.isfinite(line) and math.isfinite(column) else None
