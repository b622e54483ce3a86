"""Words that depend on numbers, for every text a person reads."""

from __future__ import annotations


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `1,234 files`; `plural` where it is not the noun with an s."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
