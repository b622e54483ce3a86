"""An editor that changes a text at random and says so as the protocol does, in a unit of columns of its choice."""

from __future__ import annotations

import random
from typing import Any

WIDTHS = {
    "utf-8": lambda text: len(text.encode()),
    "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf-32": len,
}
_NEW = ("", "a", "😀", "é\n", "\n\n", "x😀y\nz")


def span(first: tuple[int, int], last: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": first[0], "character": first[1]},
        "end": {"line": last[0], "character": last[1]},
    }


class RandomEditor:
    """`text` is what the document holds by now."""

    def __init__(self, encoding: str, seed: int = 11) -> None:
        self._rng = random.Random(seed)
        self._width = WIDTHS[encoding]
        self._lines = [f"line {number} 😀 é {'x' * (number % 7)}" for number in range(200)]

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def message(self) -> list[dict[str, Any]]:
        """One to three changes, each of the text after the one before."""
        return [self._edit() for _ in range(self._rng.randint(1, 3))]

    def _edit(self) -> dict[str, Any]:
        rng, lines, width = self._rng, self._lines, self._width
        first, last = (
            sorted(rng.sample(range(len(lines)), 2)) if rng.random() < 0.3 else [rng.randrange(len(lines))] * 2
        )
        last = min(last, first + 3)
        start, end = rng.randint(0, len(lines[first])), rng.randint(0, len(lines[last]))
        if first == last:
            start, end = sorted((start, end))
        new = rng.choice(_NEW)
        change = {"range": span((first, width(lines[first][:start])), (last, width(lines[last][:end]))), "text": new}
        lines[first : last + 1] = (lines[first][:start] + new + lines[last][end:]).split("\n")
        return change
