"""Comparing code for the rules of staleness, with the grammars at hand."""

from __future__ import annotations

from functools import lru_cache

from nm_lsp.graph import same_code
from nm_lsp.graph.languages import language_of

_HEAD = 2_000
_REMEMBERED = 20_000


class Grammars:
    """A `CodeComparison`. Answers are remembered: they depend on the texts alone."""

    def same_file(self, path: str, seen: bytes, now: bytes) -> bool:
        return _same_file(_language(path, now), seen, now)

    def symbol_text(self, path: str, name: str, text: bytes) -> bytes | None:
        return _symbol_text(_language(path, text), name, text)

    def same_symbol(self, path: str, seen: bytes, now: bytes) -> bool:
        return _same_symbol(_language(path, now), seen, now)


def _language(path: str, text: bytes) -> str | None:
    return language_of(path, text[:_HEAD].decode("utf-8", "replace"))


@lru_cache(maxsize=_REMEMBERED)
def _same_file(language: str | None, seen: bytes, now: bytes) -> bool:
    return same_code.same_code(seen, now, language)


@lru_cache(maxsize=_REMEMBERED)
def _same_symbol(language: str | None, seen: bytes, now: bytes) -> bool:
    return same_code.same_symbol(seen, now, language)


@lru_cache(maxsize=1_000)
def _symbol_text(language: str | None, name: str, text: bytes) -> bytes | None:
    return same_code.symbol_text(text, language, name)
