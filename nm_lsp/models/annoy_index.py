"""Approximate search for large matrices: an Annoy file over one part, exact re-ranking, exact search of the rest.

The file is memory-mapped, so that several processes share it. It takes no additions and no deletions: rows added since
its build lie in other parts and are searched exactly, and removed rows are masked out. annoy is an optional extra: this
module can be imported without it, `build_annoy` and `load_annoy` cannot be called (`nearest.annoy_available` tells).

Limit: Annoy trusts its file. A file of the wrong size or number of rows is recognised, one damaged inside is not.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.models.nearest import ExactRows, Neighbours, RowMask, Rows, Vectors, best

TREES: Final = 50
SEED: Final = 20_240_229
SEARCH_FACTOR: Final = 4
"""search_k = 4 · k · trees: recall@20 of 0.98 and more, at under a millisecond for 100,000 rows."""

EXACT_BELOW: Final = 5_000
"""When a mask leaves fewer rows than this and the first search misses them, all of them are compared."""

METRIC: Final = "angular"
ADD_BLOCK: Final = 1024


def build_annoy(matrix: Vectors, path: Path, cancel: Cancellation | None = None) -> None:
    """Write the index of `matrix` to `path`: built on disk under another name, then renamed. The same file for the same
    matrix.

    One thread, to leave the other cores free. `cancel` is polled while rows are added; the building of the trees that
    follows cannot be stopped. Raises `Cancelled`, or `OSError` if the disk is full.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    index = _new_index(matrix.shape[1])
    try:
        index.set_seed(SEED)
        index.on_disk_build(str(draft))
        for start in range(0, len(matrix), ADD_BLOCK):
            if cancel is not None:
                cancel.check()
            for offset, row in enumerate(matrix[start : start + ADD_BLOCK].tolist()):
                index.add_item(start + offset, row)
        index.build(TREES, n_jobs=1)
        index.unload()
        draft.replace(path)
    finally:
        index.unload()
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def load_annoy(path: Path, matrix: Vectors) -> Any | None:
    """The mapped index, or None if the file is missing, damaged or not of as many rows as `matrix`."""
    index = _new_index(matrix.shape[1])
    try:
        index.load(str(path))
    except OSError:
        return None
    return index if index.get_n_items() == len(matrix) and index.get_n_trees() == TREES else None


class AnnoyRows:
    """Satisfies `nearest.NearestRows`. Thread-safe."""

    __slots__ = ("_base", "_index", "_part", "_side", "_side_rows", "n_rows")

    def __init__(self, index: Any, parts: Sequence[Vectors], annoy_part: int = 0) -> None:
        """`index` is of `parts[annoy_part]`."""
        lengths = [len(part) for part in parts]
        self._index = index
        self._part = parts[annoy_part]
        self._base = sum(lengths[:annoy_part])
        self._side = ExactRows([part for number, part in enumerate(parts) if number != annoy_part])
        self.n_rows = sum(lengths)
        self._side_rows = np.delete(
            np.arange(self.n_rows, dtype=np.int64), slice(self._base, self._base + len(self._part))
        )

    def search(self, query: Vectors, k: int, allowed: RowMask | None = None) -> Neighbours:
        part_allowed = None if allowed is None else allowed[self._base : self._base + len(self._part)]
        side_allowed = None if allowed is None else allowed[self._side_rows]
        candidates = self._candidates(query, k, part_allowed)
        scores = np.asarray(self._part[candidates], dtype=np.float32) @ query
        side = self._side.search(query, k, side_allowed)
        rows = np.concatenate([candidates + self._base, self._side_rows[side.rows]])
        order = np.argsort(rows)
        return best(rows[order], np.concatenate([scores, side.scores])[order], k)

    def _candidates(self, query: Vectors, k: int, allowed: RowMask | None) -> Rows:
        """Rows of the part, at least `k` allowed ones if there are so many: the search widens until it has them."""
        vector = query.tolist()
        # More than wanted are re-ranked: rounding can reorder what Annoy found nearly equal, and some may be masked.
        width = k
        while True:
            wanted = min(2 * width, len(self._part))
            found = self._index.get_nns_by_vector(vector, wanted, SEARCH_FACTOR * width * TREES)
            rows = np.asarray(found, dtype=np.int64)
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= k or wanted == len(self._part):
                return rows
            if allowed is not None and np.count_nonzero(allowed) <= EXACT_BELOW:
                return np.flatnonzero(allowed)
            width *= 4


def _new_index(dimensions: int) -> Any:
    # Imported late, since the package is an optional extra.
    from annoy import AnnoyIndex

    return AnnoyIndex(dimensions, METRIC)
