"""Symbols of a text with their lines and contents, as learning needs them: parsed here, remembered by text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from nm_lsp.base.recent import Recent
from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.model import NodeKind, Span
from nm_lsp.graph.syntax import Unparsable
from nm_lsp.synapses.edits import SymbolLines

MAX_CHARACTERS: Final = 2_000_000
_REMEMBERED: Final = 64
_WHOLE_FILE: Final = frozenset({NodeKind.MODULE, NodeKind.FILE})


@dataclass(frozen=True, slots=True)
class Shape:
    """`symbols` in the order of the file; `hashes`: id → hash of its text. Neither holds the file's own node."""

    symbols: tuple[SymbolLines, ...]
    hashes: dict[str, bytes]


EMPTY: Final = Shape((), {})


class Shapes:
    """Thread-safe. Ids begin with the path given."""

    def __init__(self) -> None:
        self._known: Recent[Shape] = Recent(_REMEMBERED)

    def of(self, path: str, text: str) -> Shape:
        """What has no grammar or does not parse has no symbols."""
        return self._known.get(path, _plain(text), make=lambda: _shape_of(path, text))


def _shape_of(path: str, text: str) -> Shape:
    if len(text) > MAX_CHARACTERS:
        return EMPTY
    try:
        nodes = [node for node in parse_file(path, text).nodes if node.kind not in _WHOLE_FILE]
    except Unparsable:
        return EMPTY
    symbols = (SymbolLines(str(node.id), node.span.start_line, _last_line(node.span)) for node in nodes)
    return Shape(tuple(symbols), {str(node.id): node.content_hash for node in nodes})


def _last_line(span: Span) -> int:
    return span.end_line - 1 if span.end_col == 0 and span.end_line > span.start_line else span.end_line


def text_key(text: str) -> bytes:
    """The same for texts that differ in line ends or a byte-order mark alone: a screen and its file on disk."""
    return hashlib.blake2b(_plain(text), digest_size=16).digest()


def _plain(text: str) -> bytes:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass")


def content_key(path: str, text: str) -> bytes:
    """A path with a content, for `Teaching.seen`."""
    return hashlib.blake2b(path.encode("utf-8", "surrogatepass") + b"\0" + text_key(text), digest_size=16).digest()
