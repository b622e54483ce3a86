"""The synapse store of one repository in this process: opened when needed, written by one thread, read by all.

Guarantees: nobody who hands something in waits for the disk; a store that is locked makes the queue wait, which is
bounded, and what falls out of it is counted; a repository where nothing was learned has no file; closing waits
`CLOSE_S` at most. What cannot be used says why in `problem`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import StoreProblem
from nm_lsp.engine.memory.activity import Activity
from nm_lsp.engine.store_folder import prepare
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.storage.synapses import SynapseStore

log = logging.getLogger(__name__)

MAX_QUEUED: Final = 500
CLOSE_S: Final = 0.3
RETRY_S: Final = 1.0
FILE: Final = "synapses.db"

Write = Callable[[SynapseStore], object]


class MemoryKeeper:
    """Thread-safe. `clock` is Unix time in seconds. Without `threaded`, `flush` alone writes (for tests)."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        refuse_unfit_place: Callable[[], None],
        *,
        threaded: bool = True,
        event_log: bool = False,
    ) -> None:
        """`refuse_unfit_place` raises `StoreProblem` where nothing may be kept in `folder`."""
        self.folder = folder
        self.clock = clock
        self._refuse_unfit_place = refuse_unfit_place
        self.activity = Activity(folder, clock, refuse_unfit_place, with_file=event_log)
        self.problem: StoreProblem | None = None
        self.set_aside: Path | None = None
        self.n_dropped = 0
        self.n_written = 0
        self._lock = threading.RLock()
        self._store: SynapseStore | None = None
        self._queue: deque[Write] = deque()
        self._counts: dict[str, int] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._threaded = threaded

    # -- reading ----------------------------------------------------------------------------------------------------

    def memory(self) -> StoredMemory | None:
        """What is stored; None where nothing is, or the store cannot be read (see `problem`)."""
        store = self.store(create=False)
        if store is None:
            return None
        try:
            return store.memory()
        except StoreProblem as problem:
            self._failed(problem)
            return None

    def store(self, *, create: bool) -> SynapseStore | None:
        """The open store; None where there is none yet, or it cannot be opened (see `problem`)."""
        with self._lock:
            try:
                self._refuse_unfit_place()
            except StoreProblem as problem:
                self.problem = problem
                self._close_store()
                return None
            if self._store is not None:
                return self._store
            path = self.folder / FILE
            if not create and not path.exists():
                return None
            try:
                prepare(self.folder)
                self._store = SynapseStore.open(path, self.clock())
            except StoreProblem as problem:
                self.problem = problem
                return None
            self.problem = None
            self.set_aside = self._store.set_aside or self.set_aside
            return self._store

    # -- writing ----------------------------------------------------------------------------------------------------

    def submit(self, write: Write) -> None:
        """Have `write` done soon, in the order handed in. A full queue loses its oldest, which is counted."""
        with self._changed:
            if len(self._queue) >= MAX_QUEUED:
                self._queue.popleft()
                self.n_dropped += 1
            self._queue.append(write)
            self._start()
            self._changed.notify()

    def count(self, counters: Mapping[str, int]) -> None:
        """Add to counters with the next write, so that asking a question writes nothing by itself."""
        with self._changed:
            for name, value in counters.items():
                self._counts[name] = self._counts.get(name, 0) + value

    def take_counts(self) -> dict[str, int]:
        """What was counted and not written yet, for a write that takes it along."""
        with self._changed:
            counts, self._counts = self._counts, {}
        return counts

    @property
    def pending_counts(self) -> dict[str, int]:
        with self._changed:
            return dict(self._counts)

    @property
    def n_queued(self) -> int:
        return len(self._queue)

    def flush(self) -> None:
        """Do what is queued now, on this thread. Raises `StoreProblem` where that is not possible."""
        while self._write_next():
            pass
        self._write_counts()

    def _start(self) -> None:
        if self._threaded and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="nm-synapses", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if self._closing:
                    return
            try:
                self._write_next()
            except (StoreProblem, OSError) as error:
                self._failed(error if isinstance(error, StoreProblem) else StoreProblem(str(error), reason="io"))
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, RETRY_S)

    def _write_next(self) -> bool:
        """Do the first in the queue; it stays there where the store is locked. Raises `StoreProblem`."""
        with self._writing:
            with self._changed:
                if not self._queue:
                    return False
                write = self._queue[0]
            store = self.store(create=True)
            if store is None:
                raise self.problem or StoreProblem(f"{self.folder / FILE} cannot be opened", reason="io")
            try:
                write(store)
            except StoreProblem:
                raise
            except Exception:
                # A write that its own content makes impossible must not stop those behind it.
                log.exception("A batch could not be learned")
            with self._changed:
                if self._queue and self._queue[0] is write:
                    self._queue.popleft()
            self.problem = None
            self.n_written += 1
        self._write_counts()
        return True

    def _write_counts(self) -> None:
        counts = self.take_counts()
        with self._changed:
            if self.n_dropped:
                counts["dropped"] = counts.get("dropped", 0) + self.n_dropped
                self.n_dropped = 0
        store = self.store(create=False) if counts else None
        if store is not None:
            try:
                store.count(counts, self.clock())
            except StoreProblem:
                self.count(counts)
                raise
        elif counts:
            self.count(counts)

    def _failed(self, problem: StoreProblem) -> None:
        self.problem = problem
        if problem.reason in {"damaged", "replaced"}:
            # The next write opens what lies there now, or sets it aside.
            with self._lock:
                self._close_store()

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def close(self) -> None:
        """Write what is queued if that is quick; end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        worker = threading.Thread(target=self._close, name="nm-synapses-close", daemon=True)
        worker.start()
        worker.join(CLOSE_S)
        self.activity.close()

    def _close(self) -> None:
        try:
            self.flush()
            if self._counts and self._store is None:
                self.store(create=True)
                self._write_counts()
        except StoreProblem as problem:
            log.info("What was learned last could not be written: %s", problem)
        with self._lock:
            self._close_store()


class MemoryKeepers:
    """The keepers of this process, one for each folder of a store. Thread-safe."""

    def __init__(self, clock: Callable[[], float], *, threaded: bool = True, event_log: bool = False) -> None:
        self.clock = clock
        self._event_log = event_log
        self._threaded = threaded
        self._lock = threading.Lock()
        self._keepers: dict[Path, MemoryKeeper] = {}

    def keeper(self, folder: Path, refuse_unfit_place: Callable[[], None]) -> MemoryKeeper:
        with self._lock:
            keeper = self._keepers.get(folder)
            if keeper is None:
                keeper = MemoryKeeper(
                    folder, self.clock, refuse_unfit_place, threaded=self._threaded, event_log=self._event_log
                )
                self._keepers[folder] = keeper
            return keeper

    def close(self) -> None:
        with self._lock:
            keepers, self._keepers = self._keepers, {}
        for keeper in keepers.values():
            keeper.close()
