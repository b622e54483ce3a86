"""`SYNAPSE_MEMORY.md`: what was learned, as Markdown for people and agents.

Stable: the same memory gives the same text, rows are sorted, and numbers are coarse (weights to one decimal, no times),
so that a day's use changes few lines. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FIRST_LINE: Final = "<!-- Written by nm-lsp from what use of this repository has taught; edits are overwritten. -->"
N_PAIRS: Final = 40
N_HUBS: Final = 15
N_STEPS: Final = 20


@dataclass(frozen=True, slots=True)
class LearnedPair:
    a: str
    b: str
    weight: float
    lasting: bool


@dataclass(frozen=True, slots=True)
class LearnedStep:
    a: str
    b: str
    count: float


def memory_page(namespace: str, pairs: Sequence[LearnedPair], steps: Sequence[LearnedStep]) -> str:
    """The page of one namespace. Weights are those at the last learning."""
    lines = [FIRST_LINE, "", "# What goes together here", ""]
    if not pairs and not steps:
        return "\n".join([*lines, "Nothing has been learned yet.", ""])
    lines += [f"Learned from edits and commits ({namespace}). Weights run from 0 to 1; ★ marks what lasts.", ""]
    ranked = sorted(pairs, key=lambda pair: (-round(pair.weight, 1), *sorted((pair.a, pair.b))))
    of_files = [pair for pair in ranked if "::" not in pair.a + pair.b]
    of_symbols = [pair for pair in ranked if "::" in pair.a + pair.b]
    for title, kind, rows in (("Files", "file", of_files), ("Symbols", "symbol", of_symbols)):
        if rows:
            lines += [f"## {title}", "", f"| weight | | {kind} | goes with |", "| ---: | --- | --- | --- |"]
            lines += [_row(pair) for pair in rows[:N_PAIRS]] + [""]
    if ranked:
        degrees = Counter(end for pair in pairs for end in (pair.a, pair.b))
        hubs = sorted(((n, name) for name, n in degrees.items() if n >= 3), key=lambda row: (-row[0], row[1]))
        if hubs:
            lines += ["## Hubs", "", "| partners | file or symbol |", "| ---: | --- |"]
            lines += [f"| {n} | {_code(name)} |" for n, name in hubs[:N_HUBS]] + [""]
    if steps:
        lines += ["## What usually follows", "", "| times | after | comes |", "| ---: | --- | --- |"]
        ordered = sorted(steps, key=lambda step: (-round(step.count), step.a, step.b))
        lines += [f"| {round(step.count)} | {_code(step.a)} | {_code(step.b)} |" for step in ordered[:N_STEPS]] + [""]
    n_lasting = sum(pair.lasting for pair in pairs)
    in_all = f"Pairs: {len(pairs)}, of them lasting: {n_lasting}. Transitions taken more than once: {len(steps)}."
    lines += ["## In all", "", in_all, ""]
    return "\n".join(lines)


def _row(pair: LearnedPair) -> str:
    a, b = sorted((pair.a, pair.b))
    return f"| {pair.weight:.1f} | {'★' if pair.lasting else ''} | {_code(a)} | {_code(b)} |"


def _code(name: str) -> str:
    plain = "".join(char if char.isprintable() else "\ufffd" for char in name).replace("`", "ʼ").replace("|", "\\|")
    return f"`{plain}`"
