"""Who may spend how much. Budgets are hard: no layer costs more than its allotment, nor the whole more than asked.

The default of 1,100 tokens is 100 for identity (L0), 300 for the summary (L1), 300 for modules (L2) and 400 for hits
(L3); another budget scales all of them, up to 100 / 500 / 500 / 500 and 1,500 in all. L2 and L3 want
200 + 300 · complexity of the question; what a simple question or a short layer leaves over goes to the hits, the more
of it the better they match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nm_lsp.search.token_count import TokenCount, cut_to

DEFAULT_BUDGET: Final = 1_100
MAX_BUDGET: Final = 1_500
MIN_BUDGET: Final = 50
"""Below it not even a heading and one hit fit."""

CAP_IDENTITY: Final = 100
CAP_LAYER: Final = 500
DEFAULT_WAKEUP: Final = CAP_IDENTITY + CAP_LAYER

_IDENTITY, _SUMMARY, _MODULES, _HITS = 100, 300, 300, 400


@dataclass(frozen=True, slots=True)
class Allotment:
    """Tokens for each layer; their sum never exceeds `total`."""

    total: int
    identity: int
    summary: int
    modules: int
    hits: int


def allot(budget: int, complexity: float) -> Allotment:
    """Split `budget` (1 to 1,500 tokens) for a question of `complexity` in [0, 1]."""
    total = max(0, min(budget, MAX_BUDGET))
    identity = min(CAP_IDENTITY, total * _IDENTITY // DEFAULT_BUDGET)
    summary = min(CAP_LAYER, total * _SUMMARY // DEFAULT_BUDGET)
    wanted = min(CAP_LAYER, int((200 + 300 * complexity) * total / DEFAULT_BUDGET))
    left = total - identity - summary
    modules = min(wanted, left * _MODULES // (_MODULES + _HITS))
    return Allotment(total, identity, summary, modules, min(wanted, left - modules))


def allot_wakeup(budget: int) -> Allotment:
    """Identity and summary alone."""
    total = max(0, min(budget, DEFAULT_WAKEUP))
    identity = min(CAP_IDENTITY, total // 4)
    return Allotment(total, identity, min(CAP_LAYER, total - identity), 0, 0)


def grown(allotment: Allotment, spent_before: int, quality: float) -> int:
    """What the hits may cost when the layers before them cost `spent_before`.

    `quality` in [0, 1] is how well they match: 0 leaves the hits their own share, 1 gives them all that is left over.
    """
    spare = max(0, allotment.total - spent_before - allotment.hits)
    return min(CAP_LAYER, max(0, allotment.total - spent_before), allotment.hits + int(spare * quality))


class Page:
    """Lines under a limit. A line that does not fit is refused whole; what was added stays within the limit.

    Each line is counted once, with its line end: a sum that is never less than the count of the whole.
    """

    __slots__ = ("_count", "_limit", "_lines", "_used")

    def __init__(self, limit: int, count: TokenCount) -> None:
        self._limit = limit
        self._count = count
        self._lines: list[str] = []
        self._used = 0

    @property
    def left(self) -> int:
        return self._limit - self._used

    @property
    def is_empty(self) -> bool:
        return not self._lines

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def add(self, *lines: str) -> bool:
        """Add all of `lines`, or none of them."""
        cost = sum(self._count(f"{line}\n") for line in lines)
        if cost > self.left:
            return False
        self._lines.extend(lines)
        self._used += cost
        return True

    def add_cut(self, line: str, prefix: str = "") -> bool:
        """Add what fits of `prefix + line`, cut at a word; False where not even a few words do."""
        whole = prefix + line
        if self.add(whole):
            return True
        room = self.left - self._count("…\n") - 1
        kept = cut_to(whole, room, self._count) if room > 4 else ""
        return len(kept) > len(prefix) + 8 and self.add(kept)


@dataclass(frozen=True, slots=True)
class LayerText:
    """One finished layer. `tokens` is what `text`, heading included, costs; `budget` what it was allowed.

    `notes` say for the trace what was chosen and what was left out.
    """

    name: str
    title: str
    text: str
    tokens: int
    budget: int
    notes: tuple[str, ...] = ()


def finish(name: str, title: str, page: Page, budget: int, count: TokenCount, notes: tuple[str, ...] = ()) -> LayerText:
    """A layer out of its page; one that holds no more than its heading says nothing and costs nothing."""
    text = page.text if "\n" in page.text else ""
    return LayerText(name, title, text, count(text), budget, notes)
