"""Which pairs a batch strengthens: bounded, so that a batch costs O(n) edges however many symbols it has.

A batch of `MAX_SYMBOLS` symbols in `MAX_FILES` files writes at most `MAX_PAIRS` + `MAX_ASSOCIATIONS` edges and
`MAX_STEPS` transitions, with its own nodes under 300 rows. Files go together as wholes too, once a batch whatever the
number of symbols, so that the edge of two files counts how often they changed together. Then come symbols across files:
that two symbols of one file belong together needs no learning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

MAX_SYMBOLS: Final = 50
MAX_FILES: Final = 20
"""A batch of more is bulk (a checkout, a formatter, a rename everywhere): counted, teaches nothing."""

MAX_PAIRS: Final = 160
MAX_FILE_PAIRS: Final = 80
MAX_ASSOCIATIONS: Final = 40
MAX_FILE_ASSOCIATIONS: Final = 20
MAX_STEPS: Final = 20

WINDOW_S: Final = 600.0
"""How far back an association reaches."""
FADE_S: Final = 300.0
"""The strength of an association falls to 1/e in this time."""

Pair = tuple[str, str]
"""Two node ids, the lesser first."""


def pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def path_of(identity: str) -> str:
    """The file of a node id."""
    return identity.partition("::")[0]


def is_bulk(n_symbols: int, n_files: int) -> bool:
    return n_symbols > MAX_SYMBOLS or n_files > MAX_FILES


def pairs_of(symbols: Sequence[str]) -> list[Pair]:
    """At most `MAX_PAIRS` pairs: first of the files, `MAX_FILE_PAIRS` at most, then of distinct symbols across files,
    then of those within files, each by rising distance in the order of the batch."""
    distinct = list(dict.fromkeys(symbols))
    found = dict.fromkeys(islice((pair(a, b) for a, b in _by_distance(files_of(distinct))), MAX_FILE_PAIRS))
    for across in (True, False):
        for a, b in _by_distance(distinct):
            if len(found) >= MAX_PAIRS:
                return list(found)
            if (path_of(a) != path_of(b)) is across:
                found.setdefault(pair(a, b))
    return list(found)


def files_of(symbols: Iterable[str]) -> list[str]:
    """The files of `symbols`, each once, in their order."""
    return list(dict.fromkeys(map(path_of, symbols)))


def _by_distance(items: Sequence[str]) -> Iterator[tuple[str, str]]:
    for distance in range(1, len(items)):
        for at in range(len(items) - distance):
            yield items[at], items[at + distance]


def association_strength(elapsed_s: float) -> float:
    """e^(−Δt / 5 min) within the window, 0 outside it or for a clock that went back."""
    return math.exp(-elapsed_s / FADE_S) if 0 <= elapsed_s <= WINDOW_S else 0.0


@dataclass(frozen=True, slots=True)
class Touch:
    """A symbol that was edited, opened or used, and when."""

    symbol: str
    at: float


class RecentTouches:
    """What was touched in the last ten minutes in one namespace, and which pairs were joined in that time.

    Not thread-safe. A pair is joined once in a window, so that typing on in one symbol does not deepen one association
    with each batch.
    """

    def __init__(self) -> None:
        self._touched: dict[str, float] = {}
        self._files: dict[str, float] = {}
        self._joined: dict[Pair, float] = {}
        self._last: Touch | None = None

    def associations(self, symbols: Sequence[str], now: float) -> dict[Pair, float]:
        """Pair → strength of each of `symbols`, and of their files, with what was touched before, latest first; at most
        `MAX_ASSOCIATIONS`, of them `MAX_FILE_ASSOCIATIONS` between files."""
        self._forget(now)
        found: dict[Pair, float] = {}
        self._join(found, files_of(symbols), self._files, now, MAX_FILE_ASSOCIATIONS)
        self._join(found, symbols, self._touched, now, MAX_ASSOCIATIONS)
        return found

    def _join(
        self, found: dict[Pair, float], nodes: Sequence[str], touched: Mapping[str, float], now: float, limit: int
    ) -> None:
        mine = set(nodes)
        earlier = sorted(
            ((at, other) for other, at in touched.items() if other not in mine), key=lambda row: (-row[0], row[1])
        )
        for at, other in earlier:
            strength = association_strength(now - at)
            for node in nodes:
                if len(found) >= limit:
                    return
                both = pair(node, other)
                if strength > 0 and both not in self._joined:
                    found.setdefault(both, strength)

    def steps(self, symbols: Sequence[str], now: float, limit: int = MAX_STEPS) -> list[tuple[str, str]]:
        """The transitions between consecutive distinct symbols, from the last one touched before on."""
        previous = self._last.symbol if self._last and 0 <= now - self._last.at <= WINDOW_S else None
        found = []
        for symbol in symbols:
            if previous is not None and previous != symbol:
                found.append((previous, symbol))
            previous = symbol
        return found[:limit]

    def remember(self, symbols: Sequence[str], joined: Iterable[Pair], now: float) -> None:
        """Note a batch that was taught."""
        for symbol in symbols:
            self._touched[symbol] = self._files[path_of(symbol)] = now
        for both in joined:
            self._joined[both] = now
        if symbols:
            self._last = Touch(symbols[-1], now)

    def latest(self, now: float, n: int) -> list[Touch]:
        """The `n` symbols touched last, latest first."""
        self._forget(now)
        rows = sorted(self._touched.items(), key=lambda row: (-row[1], row[0]))
        return [Touch(symbol, at) for symbol, at in rows[:n]]

    def rename(self, renames: Mapping[str, str]) -> None:
        """Nodes are called otherwise from now on; a file stands for all in it."""

        def name(node: str) -> str:
            path, mark, rest = node.partition("::")
            return renames.get(node, renames.get(path, path) + mark + rest)

        self._touched = {name(symbol): at for symbol, at in self._touched.items()}
        self._files = {name(path): at for path, at in self._files.items()}
        self._joined = {pair(name(a), name(b)): at for (a, b), at in self._joined.items()}
        if self._last is not None:
            self._last = Touch(name(self._last.symbol), self._last.at)

    def _forget(self, now: float) -> None:
        self._touched = {symbol: at for symbol, at in self._touched.items() if 0 <= now - at <= WINDOW_S}
        self._files = {path: at for path, at in self._files.items() if 0 <= now - at <= WINDOW_S}
        self._joined = {both: at for both, at in self._joined.items() if 0 <= now - at <= WINDOW_S}
