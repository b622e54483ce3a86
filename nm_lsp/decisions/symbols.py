"""Whether a blob holds a symbol as it was seen.

Guarantees: every pair is compared once; bytes that are not here give None and are asked for again the next time.

Must not know: commits, anchors' places.
"""

from __future__ import annotations

from collections.abc import Callable

from nm_lsp.decisions.model import Content, Sighting, unpack_text
from nm_lsp.decisions.ports import CodeComparison


class SymbolReader:
    """Compares symbols in blobs, each pair once."""

    __slots__ = ("_blob", "_code", "_known")

    def __init__(self, blob: Callable[[Content], bytes | None], code: CodeComparison) -> None:
        self._blob = blob
        self._code = code
        self._known: dict[tuple[str, str | None, str | None, Content, str], bool | None] = {}

    def with_blobs(self, blob: Callable[[Content], bytes | None]) -> SymbolReader:
        """The same comparison over other bytes."""
        return SymbolReader(blob, self._code)

    def holds(self, sighting: Sighting, path: str, content: Content) -> bool | None:
        """Whether the file `content` at `path` holds the symbol as it was seen; None if its bytes are not here."""
        if not _is_file(content):
            return False
        name = sighting.anchor.symbol
        assert name is not None
        key = (name, sighting.packed_text, sighting.files[0].fp, content, path.rpartition("/")[2])
        if key not in self._known:
            answer = self._compare(sighting, name, path, content)
            if answer is None:
                return None  # Not kept: the bytes may arrive.
            self._known[key] = answer
        return self._known[key]

    def _compare(self, sighting: Sighting, name: str, path: str, content: Content) -> bool | None:
        now = self._blob(content)
        if now is None:
            return None
        text = self._code.symbol_text(path, name, now)
        if sighting.packed_text is not None:
            if text is None:
                return False
            if self._code.same_symbol(path, unpack_text(sighting.packed_text), text):
                return True
        # Another version of the grammar may let a symbol begin elsewhere than it did when the text was kept.
        seen = self._seen_in_file(sighting, name)
        if seen is None:
            return None if sighting.packed_text is None else False
        return text is not None and self._code.same_symbol(path, seen, text)

    def _seen_in_file(self, sighting: Sighting, name: str) -> bytes | None:
        seen = sighting.files[0]
        bytes_seen = self._blob(seen.fp) if seen.fp is not None else None
        return None if bytes_seen is None else self._code.symbol_text(seen.path, name, bytes_seen)


def _is_file(content: Content) -> bool:
    return ":" not in content
