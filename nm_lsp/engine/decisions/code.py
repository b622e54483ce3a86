"""Comparing code for the rules of staleness, with the grammars at hand."""

from __future__ import annotations

from nm_lsp.base.recent import Recent
from nm_lsp.graph import same_code
from nm_lsp.graph.languages import language_of

_HEAD = 2_000
_same_files: Recent[bool] = Recent(20_000)
_same_symbols: Recent[bool] = Recent(20_000)
_symbol_texts: Recent[bytes | None] = Recent(1_000, 4_000_000)


class Grammars:
    """A `CodeComparison`. Answers are remembered: they depend on the texts alone."""

    def same_file(self, path: str, seen: bytes, now: bytes) -> bool:
        language = _language(path, now)
        return _same_files.get(language, seen, now, make=lambda: same_code.same_code(seen, now, language))

    def symbol_text(self, path: str, name: str, text: bytes) -> bytes | None:
        language = _language(path, text)
        return _symbol_texts.get(
            f"{language} {name}",
            text,
            make=lambda: same_code.symbol_text(text, language, name),
            weight=lambda found: len(found or b""),
        )

    def same_symbol(self, path: str, seen: bytes, now: bytes) -> bool:
        language = _language(path, now)
        return _same_symbols.get(language, seen, now, make=lambda: same_code.same_symbol(seen, now, language))


def _language(path: str, text: bytes) -> str | None:
    return language_of(path, text[:_HEAD].decode("utf-8", "replace"))


def shown(symbol_text: bytes) -> str:
    """A text that `symbol_text` gave, for people."""
    return symbol_text.replace(same_code.BETWEEN_HOMONYMS, b"\n").decode("utf-8", "replace")
