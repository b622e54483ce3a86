"""The newest generation of one index on disk, and the screen's texts laid over it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from nm_lsp.base.errors import StoreProblem
from nm_lsp.engine.overlay import Overlay
from nm_lsp.engine.snapshot import Snapshot, open_snapshot
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import Segment
from nm_lsp.storage.index_store import IndexStore, Manifest

_OPEN_RETRIES = 5


class Generations:
    """Thread-safe. `taken_up` is told of each new generation, in their order."""

    def __init__(self, store: IndexStore, overlay: Overlay, taken_up: Callable[[Snapshot], None]) -> None:
        self._store = store
        self._overlay = overlay
        self._taken_up = taken_up
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._newest: Snapshot | None = None
        self._laid_over: _LaidOver | None = None

    @property
    def newest(self) -> Snapshot | None:
        """What was taken up last; None where there was nothing yet."""
        return self._newest

    @property
    def on_disk(self) -> Snapshot:
        """As `newest`, an empty one where there is none."""
        return self._newest or _NOTHING

    def refresh(self) -> bool:
        """Take up the newest generation, if there is one: True then. Costs one `stat` if there is none."""
        stamp = self._store.manifest_stamp()
        if stamp == self._stamp:
            return False
        with self._lock:
            if stamp == self._stamp:
                return False
            snapshot = self._open()
            if snapshot is None:
                return False
            self._stamp, self._newest = stamp, snapshot
            self._store.forget_except(snapshot.manifest)
            self._taken_up(snapshot)
        return True

    def _open(self) -> Snapshot | None:
        """The newest snapshot; a writer may delete a file between our reading its name and opening it."""
        for _ in range(_OPEN_RETRIES):
            manifest = self._store.manifest()
            if manifest is None:
                return None
            try:
                return open_snapshot(self._store, manifest, {})
            except StoreProblem:
                continue
        return None

    def with_screen(self) -> tuple[Snapshot, bool]:
        """The newest generation with all open documents over it, and whether all of them are analysed."""
        base = self.on_disk
        segments, is_complete = self._overlay.segments(lambda path: _indexed_hash(base, path))
        if not segments:
            return base, is_complete
        identity = tuple(sorted((path, id(segment)) for path, segment in segments.items()))
        held = self._laid_over
        if held is None or held.base is not base or held.identity != identity:
            laid = open_snapshot(self._store, base.manifest, segments)
            # Holding the segments keeps their ids from being used again.
            held = self._laid_over = _LaidOver(base, identity, tuple(segments.values()), laid)
        return held.snapshot, is_complete


@dataclass(frozen=True, slots=True, eq=False)
class _LaidOver:
    base: Snapshot
    identity: tuple[tuple[str, int], ...]
    segments: tuple[Segment | None, ...]
    snapshot: Snapshot


_NOTHING = Snapshot(Manifest(""), Corpus(()), None, frozenset())


def _indexed_hash(base: Snapshot, path: str) -> bytes | None:
    """The hash of the bytes that the index holds of `path`; None where it holds none."""
    for segment, entry in zip(base.corpus.segments, base.manifest.segments, strict=False):
        row = segment.row_of(path)
        if row is not None and row not in entry.dead:
            return segment.stamp(row).content_hash
    return None
