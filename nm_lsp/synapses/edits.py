"""What changed between two texts: lines, then the symbols they lie in. Pure; knows no file and no index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from nm_lsp.base.text import split_lines

MAX_COMPARED: Final = 4_000
"""Lines between the first and the last difference; beyond it all of them count as changed."""

LineRange = tuple[int, int]
"""First and last line, both included, from 0."""


@dataclass(frozen=True, slots=True)
class SymbolLines:
    """A symbol's id and the lines it covers, its own symbols' included."""

    id: str
    first: int
    last: int


def changed_lines(old: str, new: str) -> list[LineRange]:
    """The lines of `new` that differ from `old`, in order. Where lines were only removed, the line after them."""
    before, after = split_lines(old), split_lines(new)
    start = 0
    shorter = min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    left, right = before[start : len(before) - end], after[start : len(after) - end]
    if not left and not right:
        return []
    last_line = max(len(after) - 1, 0)
    if not right:
        at = min(start, last_line)
        return [(at, at)]
    if not left or max(len(left), len(right)) > MAX_COMPARED:
        return [(start, start + len(right) - 1)]
    found = []
    for kind, _, _, first, stop in SequenceMatcher(None, left, right).get_opcodes():
        if kind != "equal":
            low = min(start + first, last_line)
            found.append((low, max(low, start + stop - 1)))
    return found


def symbols_at(symbols: Sequence[SymbolLines], ranges: Sequence[LineRange]) -> list[str]:
    """The innermost symbols of the lines in `ranges`, in the order of the file, each once.

    `symbols` are in the order of their beginnings, an outer one before those inside it.
    """
    found: dict[str, None] = {}
    for low, high in ranges:
        touched = [symbol for symbol in symbols if symbol.first <= high and low <= symbol.last]
        for at, symbol in enumerate(touched):
            # The lines of a symbol that lie in the range and in no symbol inside it.
            left = set(range(max(low, symbol.first), min(high, symbol.last) + 1))
            for inner in touched[at + 1 :]:
                if inner.first > symbol.last:
                    break
                left.difference_update(range(inner.first, inner.last + 1))
            if left:
                found.setdefault(symbol.id)
    return list(found)


def is_layout(old: str, new: str) -> bool:
    """Whether nothing but blanks and line ends changed."""
    return "".join(old.split()) == "".join(new.split())
