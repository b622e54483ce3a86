"""The vectors of one folder's index: which are missing, the thread that makes them, the files that hold them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, ModelProblem
from nm_lsp.models.annoy_index import build_annoy
from nm_lsp.models.nearest import wants_annoy
from nm_lsp.models.weights import ModelFiles, model_status
from nm_lsp.worker import embedding
from nm_lsp.worker.folder import FolderIndex

QUIET_TEXTS = 200
MAX_FILES = 4
"""More vector files than this are joined once all vectors are there."""


@dataclass(frozen=True, slots=True)
class VectorsDone:
    """From the thread to the child's loop: a block (`keys`, `matrix`), or the end (both None) with what went wrong."""

    key: int
    run: int
    keys: NDArray[np.uint64] | None
    matrix: NDArray[np.float32] | None
    error: str | None = None


class VectorWork:
    """Used by the child's loop alone; the thread only posts `VectorsDone`."""

    def __init__(self, key: int, cache: Path, threads: int, post: Callable[[object], None]) -> None:
        self._key = key
        self._cache = cache
        self._threads = threads
        self._post = post
        self._late: deque[embedding.Pending] = deque()
        self._under_way = np.zeros(0, np.uint64)
        self.run = 0
        self._cancel: Cancellation | None = None
        self.fresh = False
        """Compute every vector again instead of taking those in the shared cache, at the next start."""
        self.done = 0
        self.total = 0

    @property
    def is_running(self) -> bool:
        return self._cancel is not None

    @property
    def is_quiet(self) -> bool:
        return self.total - self.done <= QUIET_TEXTS

    def start(self, index: FolderIndex, preferred: Sequence[str]) -> bool:
        """Begin with what is missing; False where nothing is, or where there is no model.

        A few new texts join the run that is under way, as its next: begun anew for each saved file, it would spend its
        time on finding out what is missing.
        """
        files = model_status().files
        if files is None:
            self.stop()
            return False
        if index.manifest.model != files.model_id or self.fresh:
            self.stop()
            index.update(model=files.model_id, vectors=(), annoy=None)
        known = [index.store.vectors(name).keys for name in index.manifest.vectors]
        have = np.concatenate(known) if known else np.zeros(0, np.uint64)
        corpus = index.corpus()
        wanted = embedding.wanted_keys(corpus)
        missing = wanted[~np.isin(wanted, have)]
        self.done, self.total = len(wanted) - len(missing), len(wanted)
        if self.is_running:
            new = missing[~np.isin(missing, self._under_way)]
            if len(new) <= QUIET_TEXTS:
                expected = np.union1d(have, self._under_way)
                self._late.extend(embedding.pending_texts(corpus, expected, preferred))
                self._under_way = np.union1d(self._under_way, new)
                return True
        self.stop()
        if not len(missing):
            self._tidy(index, wanted)
            return False
        self.run += 1
        self._cancel = cancel = Cancellation()
        late: deque[embedding.Pending] = deque()
        self._late = late
        self._under_way = missing

        def pending() -> list[embedding.Pending]:
            return embedding.pending_texts(corpus, have, preferred)

        threading.Thread(
            target=self._embed,
            args=(pending, late, files, self.run, self.fresh, cancel),
            name="nm-embedding",
            daemon=True,
        ).start()
        self.fresh = False
        return True

    def stop(self) -> None:
        """The thread ends at its next batch; what it has handed on stays."""
        if self._cancel is not None:
            self._cancel.cancel()
            self._cancel = None

    def take(self, index: FolderIndex, block: VectorsDone) -> bool:
        """Put a block into the index; True when that was the last one of the present run."""
        if block.keys is not None and block.matrix is not None:
            name = index.store.write_vectors(block.keys, block.matrix)
            index.update(vectors=(*index.manifest.vectors, name))
            self.done += len(block.keys)
            return False
        if block.run != self.run or self._cancel is None:
            return False
        self._cancel = None
        if self._late and block.error is None and self.start(index, ()):
            # They came when the thread had looked for the last time.
            return False
        self._tidy(index, embedding.wanted_keys(index.corpus()))
        return True

    def _embed(
        self,
        pending: Callable[[], list[embedding.Pending]],
        late: deque[embedding.Pending],
        files: ModelFiles,
        run: int,
        fresh: bool,
        cancel: Cancellation,
    ) -> None:
        error = None
        try:
            # Writing out thousands of texts takes a second, which the next saved file should not wait for.
            embedding.embed_pending(
                pending(),
                late,
                files,
                self._cache,
                threads=self._threads,
                fresh=fresh,
                hand_on=lambda keys, matrix: self._post(VectorsDone(self._key, run, keys, matrix)),
                cancel=cancel,
            )
        except Cancelled:
            pass
        except ModelProblem as problem:
            error = problem.message
        self._post(VectorsDone(self._key, run, None, None, error))

    @staticmethod
    def _tidy(index: FolderIndex, wanted: NDArray[np.uint64]) -> None:
        """Few files instead of many, without rewriting a large one for every edit; and an index of neighbours of the
        first file where it has so many rows that it pays."""
        parts = [index.store.vectors(name) for name in index.manifest.vectors]
        n_rows = sum(len(part.keys) for part in parts)
        largest = max((len(part.keys) for part in parts), default=0)
        joined = [part for part in parts if len(part.keys) * 4 < largest]
        if n_rows > 2 * max(len(wanted), 1) or (len(parts) > MAX_FILES and len(joined) <= MAX_FILES):
            joined = parts
        if len(joined) > MAX_FILES or (joined and joined is parts):
            keys, rows = np.unique(np.concatenate([part.keys for part in joined]), return_index=True)
            kept = np.isin(keys, wanted)
            matrix = np.concatenate([part.matrix for part in joined])[rows[kept]]
            name = index.store.write_vectors(keys[kept], matrix)
            # The neighbours belong to the first file, so large ones keep their places.
            rest = tuple(part.name for part in parts if part not in joined)
            index.update(vectors=(*rest, name), annoy=index.manifest.annoy if rest else None)
            parts = [index.store.vectors(name) for name in index.manifest.vectors]
        if parts and index.manifest.annoy is None and wants_annoy(len(parts[0].keys)):
            built = index.store.folder / "annoy.new"
            build_annoy(parts[0].matrix, built)
            index.update(annoy=index.store.take_annoy(built))
