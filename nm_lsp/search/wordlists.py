"""Word lists are written as text, because a hundred quoted words hide what they say."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text, separated by blanks."""
    return frozenset(text.split())
