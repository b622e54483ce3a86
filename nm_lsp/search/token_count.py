"""What a text costs an agent: the one definition of a token, used for hits and for context budgets.

A token is max(word pieces, characters / 4), rounded up; characters / 3 where no tokenizer is at hand. Both are upper
estimates for the tokenizers of today's models on code and English.
"""

from __future__ import annotations

from collections.abc import Callable

TokenCount = Callable[[str], int]
"""Tokens of a text. Never less for a longer text, 0 for an empty one."""


def estimated_tokens(text: str) -> int:
    """Without a tokenizer."""
    return (len(text) + 2) // 3


def counted_tokens(word_pieces: Callable[[str], int]) -> TokenCount:
    """With one: `word_pieces` counts the pieces of a text without special tokens."""

    def count(text: str) -> int:
        return max(word_pieces(text), (len(text) + 3) // 4) if text else 0

    return count


def cut_to(text: str, limit: int, count: TokenCount) -> str:
    """The longest start of `text` that ends at a word and costs at most `limit`, with "…" where more follows."""
    if limit <= 0:
        return ""
    # No token is longer than 4 characters on average, so what lies beyond can never fit.
    window = text[: limit * 4]
    if len(window) == len(text) and count(text) <= limit:
        return text
    low, high = 0, len(window)
    while low < high:
        middle = (low + high + 1) // 2
        if count(window[:middle].rstrip() + "…") <= limit:
            low = middle
        else:
            high = middle - 1
    kept = window[:low]
    if low < len(text) and not text[low].isspace() and " " in kept:
        kept = kept.rsplit(" ", 1)[0]
    kept = kept.rstrip()
    return kept + "…" if kept else ""
