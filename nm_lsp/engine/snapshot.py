"""What a request reads: one generation of the index with the buffers on the screen laid over it. Immutable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nm_lsp.models.nearest import NearestRows, open_nearest
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import Segment, short_keys
from nm_lsp.storage.index_store import IndexStore, Manifest


class VectorRowsOfDocs:
    """Which row of the vector files belongs to which doc of a corpus."""

    def __init__(self, corpus: Corpus, keys: Sequence[NDArray[np.uint64]], nearest: NearestRows) -> None:
        """`keys`: the ascending keys of each vector file, in the order of the rows of `nearest`."""
        self._nearest = nearest
        parts = [short_keys(segment.key) for segment in corpus.segments]
        wanted = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
        self._row: NDArray[np.int64] = np.full(corpus.n_docs, -1, np.int64)
        base = 0
        for part in keys:
            if len(part):
                at = np.minimum(np.searchsorted(part, wanted), len(part) - 1)
                hit = (part[at] == wanted) & (wanted != 0) & corpus.live
                self._row[hit] = at[hit] + base
            base += len(part)
        self.unseen: NDArray[np.bool_] = corpus.live & (wanted != 0) & (self._row < 0)
        """Docs that are to have a vector and have none yet."""
        embedded = wanted[corpus.live & (wanted != 0)]
        self.n_wanted = len(np.unique(embedded))
        self.n_done = len(np.unique(self._row[self._row >= 0]))
        self._docs = np.flatnonzero(self._row >= 0)
        order = np.argsort(self._row[self._docs], kind="stable")
        self._docs_by_row = self._docs[order]
        self._rows_sorted = self._row[self._docs_by_row]

    def search(
        self, query: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The docs nearest to `query` and their cosines, best first; at least the docs of the `k` nearest rows.

        `allowed` (bool, [n_docs]) leaves docs out. Docs with the same text share a row and come together.
        """
        docs = self._docs if allowed is None else self._docs[allowed[self._docs]]
        mask = np.zeros(self._nearest.n_rows, np.bool_)
        mask[self._row[docs]] = True
        found = self._nearest.search(query, k, mask)
        hits: list[int] = []
        scores: list[float] = []
        for row, score in zip(found.rows.tolist(), found.scores.tolist(), strict=True):
            first, last = np.searchsorted(self._rows_sorted, [row, row + 1]).tolist()
            for doc in self._docs_by_row[first:last].tolist():
                if allowed is None or allowed[doc]:
                    hits.append(doc)
                    scores.append(score)
        return np.array(hits, np.int32), np.array(scores, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """`vectors` is None where the index holds none. `overlay` names the paths whose screen text is searched."""

    manifest: Manifest
    corpus: Corpus
    vectors: VectorRowsOfDocs | None
    overlay: frozenset[str]


def open_snapshot(store: IndexStore, manifest: Manifest, overlay: Mapping[str, Segment | None]) -> Snapshot:
    """Raises `StoreProblem` where a file of the manifest is gone or damaged.

    `overlay`: per path the segment of its screen text, or None where that text has no symbols and only hides the
    disk's.
    """
    parts = store.parts(manifest)
    if overlay:
        hidden = ([row for path in overlay if (row := segment.row_of(path)) is not None] for segment, _ in parts)
        parts = [(segment, dead.union(rows)) for (segment, dead), rows in zip(parts, hidden, strict=True)]
    parts += [(segment, frozenset()) for segment in overlay.values() if segment is not None]
    corpus = Corpus(parts, store.topics(manifest.topics))
    return Snapshot(manifest, corpus, _vectors(store, manifest, corpus), frozenset(overlay))


def _vectors(store: IndexStore, manifest: Manifest, corpus: Corpus) -> VectorRowsOfDocs | None:
    files = [store.vectors(name) for name in manifest.vectors]
    if not files and manifest.model is None:
        return None
    annoy = store.folder / manifest.annoy if manifest.annoy else None
    nearest = open_nearest([file.matrix for file in files], annoy)
    return VectorRowsOfDocs(corpus, [file.keys for file in files], nearest)
