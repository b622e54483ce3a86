"""The symbols of single files, for what is shown at them: where a symbol's name is, and which one is around a line.

Read from the text on the screen, else from the disk, independently of the index: marks must not wait for it. What was
parsed is remembered as long as the text stays the same. Blocks for a parse or a read; never on an event loop.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.graph.languages import CODE_LANGUAGES, DOCUMENT_LANGUAGES, language_of
from nm_lsp.graph.model import NodeKind, Span
from nm_lsp.graph.same_code import nodes_of
from nm_lsp.worker.sources import Unreadable, decode, read_bytes

MAX_BYTES = 2_000_000
"""Larger files have no outline: their marks sit on the first line."""
_REMEMBERED = 300
_HEAD = 2_000
_WITH_SYMBOLS = frozenset({*CODE_LANGUAGES, *DOCUMENT_LANGUAGES})
_NO_DEFINITIONS = frozenset({NodeKind.MODULE, NodeKind.FILE})


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol as anchors name it (`qualified_name`, `#2` for a homonym). `doc` and `rationale` are its comments'."""

    qualified_name: str
    kind: str
    span: Span
    name_span: Span
    doc: str
    rationale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """In the order of the file. `doc` is the file's own."""

    symbols: tuple[Symbol, ...]
    doc: str

    def named(self, qualified_name: str) -> Symbol | None:
        return next((symbol for symbol in self.symbols if symbol.qualified_name == qualified_name), None)

    def around(self, line: int) -> Symbol | None:
        """The innermost symbol whose lines hold `line`."""
        found: Symbol | None = None
        for symbol in self.symbols:
            is_inside = symbol.span.start_line <= line <= symbol.span.end_line
            if is_inside and (found is None or symbol.span.start_byte >= found.span.start_byte):
                found = symbol
        return found


EMPTY = Outline((), "")

_Stamp = tuple[int, int] | str


class Outlines:
    """Thread-safe. `screen` gives the text of an open document by folder-relative path, None where it is not open."""

    def __init__(self, folder: Path, screen: Callable[[str], str | None]) -> None:
        self._folder = folder
        self._screen = screen
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[_Stamp, Outline]] = OrderedDict()

    def spans(self, path: str, qualified_name: str) -> tuple[Span, Span] | None:
        """A symbol's span and its name's; None where the file has no such symbol."""
        symbol = self.outline(path).named(qualified_name)
        return (symbol.span, symbol.name_span) if symbol is not None else None

    def outline(self, path: str) -> Outline:
        """The symbols of a folder-relative path; none where it cannot be read or parsed."""
        text = self._screen(path)
        stamp: _Stamp | None = text if text is not None else self._stamp(path)
        if stamp is None:
            return EMPTY
        with self._lock:
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                self._known.move_to_end(path)
                return known[1]
        outline = _outline_of(path, text if text is not None else self.text(path) or "")
        with self._lock:
            self._known[path] = (stamp, outline)
            self._known.move_to_end(path)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return outline

    def text(self, path: str) -> str | None:
        """The text of a file, on the screen first; None where there is none that can be read."""
        text = self._screen(path)
        if text is not None:
            return text
        try:
            return decode(read_bytes(self._folder, path, MAX_BYTES))
        except (Unreadable, OSError):
            return None

    def _stamp(self, path: str) -> tuple[int, int] | None:
        try:
            status = (self._folder / path).stat()
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_size


def _outline_of(path: str, text: str) -> Outline:
    if len(text) > MAX_BYTES:
        return EMPTY
    text = text.removeprefix("\ufeff")
    language = language_of(path, text[:_HEAD])
    if language is None or language not in _WITH_SYMBOLS:
        return EMPTY
    # A look at a commit has often parsed the same bytes just before.
    nodes = nodes_of(text.encode("utf-8", "replace"), language)
    if not nodes:
        return EMPTY
    # The id counts homonyms; the qualified name alone does not.
    symbols = tuple(
        Symbol(node.id.partition("::")[2], node.kind.value, node.span, node.name_span, node.doc, node.rationale)
        for node in nodes
        if node.kind not in _NO_DEFINITIONS
    )
    return Outline(symbols, nodes[0].doc)
