"""The rows of a matrix nearest to a vector, by cosine: exact search, and the choice between it and Annoy by size.

The matrix may come in several parts (float32, [n, dimensions], rows of length 1, memory-mapped or not); a row's number
counts through all parts. Same parts, same query: same answer, in the order of falling score and then rising row.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

ANNOY_THRESHOLD: Final = 50_000
"""Rows of one part from which an approximate index pays. Exact search takes some 6 ms there."""

SCORE_DECIMALS: Final = 6
"""Scores are rounded to this, so that equal vectors tie although sums run in another order at the end of a block."""

BLOCK_ROWS: Final = 16_384

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
RowMask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """`rows` (int64) and their `scores` (float32 cosine, rounded), best first; equal scores by row."""

    rows: Rows
    scores: Vectors


class NearestRows(Protocol):
    """Exact or approximate search over the same rows."""

    @property
    def n_rows(self) -> int: ...

    def search(self, query: Vectors, k: int, allowed: RowMask | None = None) -> Neighbours:
        """At most `k` rows nearest to `query` ([dimensions], length 1), of those that `allowed` (bool, [n_rows])
        leaves in: tombstones and filters. Fewer only if there are no more."""
        ...


class ExactRows:
    """Looks at every row. 12 ms for 100,000 rows of 384 numbers."""

    __slots__ = ("_parts", "n_rows")

    def __init__(self, parts: Sequence[Vectors]) -> None:
        self._parts = tuple(parts)
        self.n_rows = sum(len(part) for part in self._parts)

    def search(self, query: Vectors, k: int, allowed: RowMask | None = None) -> Neighbours:
        scores = np.empty(self.n_rows, dtype=np.float32)
        start = 0
        for block in _blocks(self._parts):
            np.matmul(block, query, out=scores[start : start + len(block)])
            start += len(block)
        if allowed is None:
            return best(np.arange(self.n_rows), scores, k)
        rows = np.flatnonzero(allowed)
        return best(rows, scores[rows], k)


def best(rows: Rows, scores: Vectors, k: int) -> Neighbours:
    """The `k` highest of `scores`, of which `rows` are the ascending row numbers; a tie goes to the lower row."""
    scores = np.round(scores, SCORE_DECIMALS)
    if k < 1:
        return Neighbours(rows[:0], scores[:0])
    if len(scores) > k:
        # partition may keep any of several equal scores at the border, so it only finds the border.
        border = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > border)
        equal = np.flatnonzero(scores == border)[: k - len(above)]
        kept = np.concatenate([above, equal])
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))
    return Neighbours(rows[order], scores[order])


def annoy_available() -> bool:
    """Whether the extra is installed. Does not import it."""
    return importlib.util.find_spec("annoy") is not None


def wants_annoy(n_rows: int) -> bool:
    """Whether a part of that many rows should get an Annoy file: it is large enough and the extra is installed."""
    return n_rows >= ANNOY_THRESHOLD and annoy_available()


def open_nearest(parts: Sequence[Vectors], annoy_file: Path | None = None, annoy_part: int = 0) -> NearestRows:
    """Search over `parts`. `annoy_file`, where given, was built of `parts[annoy_part]`; the other parts (rows added
    since) are searched exactly. Exact throughout where the file is missing, was built of something else, or cannot be
    loaded, and where the extra is not installed: then only time is lost."""
    if annoy_file is not None and annoy_available():
        # Imported late, since that module is built on this one.
        from nm_lsp.models.annoy_index import AnnoyRows, load_annoy

        index = load_annoy(annoy_file, parts[annoy_part])
        if index is not None:
            return AnnoyRows(index, parts, annoy_part)
    return ExactRows(parts)


def _blocks(parts: Sequence[Vectors]) -> Iterator[Vectors]:
    """Bounded, so that a part which is not laid out as the arithmetic needs it is never copied as a whole."""
    for part in parts:
        for start in range(0, len(part), BLOCK_ROWS):
            yield part[start : start + BLOCK_ROWS]
