"""What a text costs an agent: max(word pieces, characters / 4), or characters / 3 where there is no tokenizer."""

from __future__ import annotations

from collections.abc import Callable


def token_counter(word_pieces: Callable[[str], int | None]) -> Callable[[str], int]:
    def count(text: str) -> int:
        pieces = word_pieces(text)
        return -(-len(text) // 3) if pieces is None else max(pieces, -(-len(text) // 4))

    return count
