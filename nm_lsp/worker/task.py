"""One folder in the child: who writes its index, and the work that brings the index up to date.

The work is one generator at a time: scan, parse, communities, merge; then vectors on a thread. A rescan that arrives
meanwhile is taken up by the next round.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from nm_lsp.base.errors import NmError, StoreProblem
from nm_lsp.graph.languages import language_of
from nm_lsp.storage.index_store import IndexStore
from nm_lsp.watch.folders import FolderWatch, watch_folder
from nm_lsp.worker.clusters import TopicsKeeper
from nm_lsp.worker.folder import FolderIndex, Options
from nm_lsp.worker.memory import release_memory, without_collection
from nm_lsp.worker.messages import (
    UNLISTED,
    Building,
    CancelBuild,
    Finished,
    OpenFolder,
    Prefer,
    Published,
    Rebuild,
    Rescan,
    Role,
    SegmentBuilt,
    Stage,
    Trouble,
)
from nm_lsp.worker.second import SecondDied, SecondProcess
from nm_lsp.worker.sources import Candidate
from nm_lsp.worker.vectors import VectorsDone, VectorWork

FIRST_CHUNK = 64
"""Files of the first generation of a build: open and newest ones, searchable within the first half second."""
MAX_CHUNK = 400
MIN_CHUNK_BYTES = 400_000
N_CHUNKS = 20
SECOND_FROM = 600
"""A build of this many files is worth a second process."""
QUIET_FILES = 20
LARGE = 200
"""Files of a round after which memory is given back."""
REPORT_S = 0.1
LOCK_S = 0.5
_LIMIT_HINT = "Open a smaller folder, leave folders out with index.excludes, or raise index.maxFiles."
_WATCH_HINT = "Raise fs.inotify.max_user_watches, or leave folders out with index.excludes."
LOOK_S = 20.0
"""How often the whole folder is looked at where it cannot be watched."""


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """From the watch to the child's loop."""

    key: int
    paths: frozenset[str]


Internal = SegmentBuilt | SecondDied | VectorsDone | FilesChanged
"""What the child says to itself."""


class FolderTask:
    """Not thread-safe: used by the child's loop alone."""

    def __init__(self, opened: OpenFolder, send: Callable[[object], None], post: Callable[[object], None]) -> None:
        self._opened = opened
        self._send = send
        self._post = post
        self._folder = Path(opened.folder)
        self._store = IndexStore(Path(opened.index))
        self._index: FolderIndex | None = None
        self._vectors = VectorWork(opened.key, Path(opened.vector_cache), opened.threads, post)
        self._topics = TopicsKeeper(time.monotonic)
        self._second: SecondProcess | None = None
        self._watch: FolderWatch | None = None
        self._directories: set[str] = set()
        self._preferred: tuple[str, ...] = ()
        self._work: Generator[bool, None, None] | None = None
        self._everywhere = True
        self._paths: set[str] = set()
        self._rebuild = False
        self._ticket = 0
        self._dealt_with = -1
        self._writes: bool | None = None
        self._next_lock = 0.0
        self._next_look = 0.0
        self._reported = 0.0
        self._said_limit = False
        self._failed: str | None = None
        self.is_waiting = False
        self._prepare()

    # -- the loop's side --------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._failed is None and (self._work is not None or (self._index is not None and self._has_orders))

    @property
    def _has_orders(self) -> bool:
        return self._everywhere or bool(self._paths)

    def step(self) -> None:
        """Do a little of what is to be done. An error ends the round, never the child."""
        if self._failed is not None:
            return
        try:
            if self._index is None:
                self._try_to_become_writer()
            if self._index is None:
                return
            self._look_now_and_then()
            if self._work is None and self._has_orders:
                self._work = self._round(self._index)
            if self._work is not None:
                self.is_waiting = next(self._work)
        except StopIteration:
            self._work, self.is_waiting = None, False
        except (NmError, OSError) as error:
            self._stop_round()
            message = error.message if isinstance(error, NmError) else f"{error.filename or 'a file'}: {error.strerror}"
            self._trouble("index-build", f"The index could not be brought up to date: {message}", None)
            self._send(Finished(self._opened.key, self._ticket, message))

    def obey(self, order: Rescan | Rebuild | CancelBuild | Prefer) -> None:
        match order:
            case Rescan(_, ticket, paths):
                self._ticket = max(self._ticket, ticket)
                self._try_again()
                self._note(paths)
                if self._writes is False or self._failed is not None:
                    self._send(Finished(self._opened.key, ticket, self._failed))
            case Rebuild(_, ticket, vectors):
                self._ticket = max(self._ticket, ticket)
                self._try_again()
                self._stop()
                self._rebuild, self._vectors.fresh = True, vectors
                self._note(None)
            case CancelBuild():
                if self._stop():
                    self._send(Finished(self._opened.key, self._ticket, "cancelled"))
            case Prefer(_, paths):
                self._preferred = paths

    def receive(self, message: Internal) -> None:
        match message:
            case SegmentBuilt() | SecondDied():
                if self._second is not None:
                    self._second.receive(message)
            case VectorsDone():
                if self._index is not None and message.key == self._opened.key:
                    self._take_vectors(self._index, message)
            case FilesChanged():
                if self._index is not None and message.key == self._opened.key:
                    self._note_changes(self._index, message.paths)

    def close(self) -> None:
        self._stop()
        if self._watch is not None:
            self._watch.close()
        if self._index is not None:
            self._index.close()
            self._lock.release()

    # -- orders -----------------------------------------------------------------------------------------------------

    def _note(self, paths: Iterable[str] | None) -> None:
        if paths is None:
            self._everywhere = True
        else:
            self._paths.update(paths)

    def _note_changes(self, index: FolderIndex, paths: Iterable[str]) -> None:
        """Of what the watch reports, what may concern the index."""
        for path in paths:
            name = path.rpartition("/")[2]
            if not path or name == ".gitignore":
                self._note(None)
            elif (
                index.knows(path)
                or path in self._directories
                or language_of(path) is not None
                or (self._folder / path).is_dir()
            ):
                self._note([path])

    def _look_now_and_then(self) -> None:
        """Where the system cannot tell of changes, look for them."""
        watch = self._watch
        if watch is None or not watch.limit_reached or self._work is not None:
            return
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_S
            self._note(None)

    def _cover_directories(self) -> None:
        watch = self._watch
        if watch is None:
            return
        watch.cover(self._directories)
        if watch.limit_reached and not self._said_limit:
            self._said_limit = True
            text = f"Not every folder can be watched, so changes on the disk are looked for every {LOOK_S:.0f} s."
            self._trouble("index-watch", text, _WATCH_HINT)

    def _stop(self) -> bool:
        """Stop what is going on; True where there was anything."""
        was_busy = self._work is not None or self._vectors.is_running
        self._stop_round()
        self._vectors.stop()
        return was_busy

    def _stop_round(self) -> None:
        if self._work is not None:
            # Closing a generator runs what it left open.
            self._work.close()
        self._work, self.is_waiting = None, False
        if self._second is not None:
            self._second.close()
            self._second = None

    def _try_to_become_writer(self) -> None:
        now = time.monotonic()
        if now < self._next_lock:
            return
        self._next_lock = now + LOCK_S
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            if self._writes is not False:
                self._writes = False
                self._send(Role(self._opened.key, writes=False))
                self._send(Finished(self._opened.key, self._ticket, None))
            return
        except OSError as error:
            self._give_up(f"{self._lock.lock_file} cannot be locked: {error.strerror}")
            return
        self._writes = True
        self._send(Role(self._opened.key, writes=True))
        opened = self._opened
        options = Options(opened.excludes, opened.max_file_bytes, opened.max_files, opened.git)
        self._index = FolderIndex(self._folder, self._store, options)
        self._watch = watch_folder(self._folder, lambda paths: self._post(FilesChanged(opened.key, paths)))
        self._publish(self._index)

    def _prepare(self) -> None:
        try:
            self._store.prepare(self._folder)
            self._lock = self._store.writer_lock()
        except StoreProblem as problem:
            self._give_up(problem.message)

    def _try_again(self) -> None:
        """The index's folder may have become usable since it was given up."""
        if self._failed is not None:
            self._failed, self._everywhere = None, True
            self._prepare()

    def _give_up(self, reason: str) -> None:
        self._failed = reason
        self._trouble("index-folder", reason, "Make the user's cache folder writable, or set XDG_CACHE_HOME.")
        self._send(Finished(self._opened.key, self._ticket, reason))

    # -- one round of work ------------------------------------------------------------------------------------------

    def _round(self, index: FolderIndex) -> Generator[bool, None, None]:
        """Yields True where it only waits for the second process."""
        ticket, paths = self._ticket, None if self._everywhere else tuple(sorted(self._paths))
        self._everywhere, self._paths = False, set()
        if self._rebuild:
            self._rebuild = False
            index.start_anew(vectors=self._vectors.fresh)
        self._report(Stage.SCANNING, 0, 0, quiet=index.manifest.complete, force=True)
        changes = index.scan(paths, self._preferred)
        if (problem := changes.git_problem) is not None:
            text = f"git cannot list the files, so the folder is walked: {problem.message}"
            self._trouble(UNLISTED, text, problem.hint)
        for refusal in changes.refused:
            if refusal.path == ".":
                self._trouble("index-limit", f"Not everything is indexed: {refusal.reason}.", _LIMIT_HINT)
        yield False
        changed = index.remove(changes.gone, changes.refused) or bool(changes.to_read)
        with without_collection():
            yield from self._parse(index, changes.to_read)
        index.note_success()
        if not index.manifest.complete:
            self._topics.update(index, changed=True)
            index.update(complete=True)
            changed = True
        self._publish(index)
        self._directories = index.directories()
        self._cover_directories()
        # Whoever waits for symbols and keyword search need not wait for merging and the list of missing vectors too.
        self._dealt_with = ticket
        self._report(Stage.JOINING, 0, 0, quiet=True, force=True)
        yield False
        yield from self._settle(index, changed=changed)
        if len(changes.to_read) >= LARGE:
            release_memory()
        self._report(Stage.EMBEDDING, 0, 0, quiet=True, force=True)
        if self._opened.with_vectors and self._vectors.start(index, self._preferred):
            vectors = self._vectors
            self._report(Stage.EMBEDDING, vectors.done, vectors.total, quiet=vectors.is_quiet, force=True)
        else:
            self._publish(index)
            self._send(Finished(self._opened.key, ticket, None))

    def _parse(self, index: FolderIndex, items: Sequence[Candidate]) -> Iterator[bool]:
        if not items:
            return
        chunks, total, done = deque(_chunks(items)), len(items), 0
        quiet = total <= QUIET_FILES and index.manifest.complete
        second = None
        if total >= SECOND_FROM and (os.cpu_count() or 1) > 1:
            second = self._second = SecondProcess(self._opened, self._post)
        self._report(Stage.PARSING, 0, total, quiet=quiet, force=True)
        while chunks or (second is not None and second.given is not None):
            if chunks:
                chunk = chunks.popleft()
                for n_done in index.read_chunk(chunk):
                    done += self._share(index, second, chunks)
                    self._report(Stage.PARSING, done + n_done, total, quiet=quiet)
                    yield False
                done += len(chunk)
                self._publish(index)
            else:
                done += self._share(index, second, chunks)
                yield True
            if second is not None and second.has_died:
                if second.given is not None:
                    chunks.append(second.given.chunk)
                index.note_fatal_files()
                second.close()
                second = self._second = None
        if second is not None:
            second.close()
            self._second = None

    def _share(self, index: FolderIndex, second: SecondProcess | None, chunks: deque[Sequence[Candidate]]) -> int:
        """Take what the second process has finished and give it the next chunk; returns how many files it had done."""
        if second is None or second.has_died:
            return 0
        n_done = 0
        if finished := second.take():
            given, built = finished
            index.adopt(built.name, built.skipped, given.at_ns)
            n_done = len(given.chunk)
            self._publish(index)
        if second.given is None and chunks:
            second.give(chunks.pop())
        return n_done

    def _settle(self, index: FolderIndex, *, changed: bool) -> Iterator[bool]:
        """What may wait until the answer is there: communities of a changed graph, merging, files nobody names."""
        if self._topics.update(index, changed=changed):
            self._publish(index)
            yield False
        for _ in index.merge():
            yield False
        index.store.collect(index.manifest)

    def _take_vectors(self, index: FolderIndex, block: VectorsDone) -> None:
        vectors = self._vectors
        try:
            ended = vectors.take(index, block)
        except StoreProblem as problem:
            vectors.stop()
            self._trouble("index-vectors", f"Vectors could not be stored: {problem.message}", None)
            ended = True
        self._publish(index)
        if block.error:
            self._trouble("model", block.error, "Run `nm-lsp model install`.")
        if not ended and vectors.is_running and block.run == vectors.run:
            self._report(Stage.EMBEDDING, vectors.done, vectors.total, quiet=vectors.is_quiet, force=True)
        if ended:
            # The model was loaded for it, however few they were.
            release_memory()
        if ended and self._work is None and not self._has_orders:
            self._send(Finished(self._opened.key, self._ticket, block.error))

    # -- saying so --------------------------------------------------------------------------------------------------

    def _publish(self, index: FolderIndex) -> None:
        self._send(Published(self._opened.key, index.manifest.generation))

    def _report(self, stage: Stage, done: int, total: int, *, quiet: bool, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self._reported >= REPORT_S:
            self._reported = now
            self._send(Building(self._opened.key, stage, done, total, quiet, self._dealt_with))

    def _trouble(self, code: str, message: str, hint: str | None) -> None:
        self._send(Trouble(self._opened.key, code, message, hint))


def _chunks(items: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    """The first few files, for an answer within half a second; then parts of like size in bytes."""
    yield items[:FIRST_CHUNK]
    rest = items[FIRST_CHUNK:]
    limit = max(MIN_CHUNK_BYTES, sum(item.size for item in rest) // N_CHUNKS)
    first, size = 0, 0
    for at, item in enumerate(rest):
        size += item.size
        if size >= limit or at - first >= MAX_CHUNK:
            yield rest[first : at + 1]
            first, size = at + 1, 0
    if first < len(rest):
        yield rest[first:]
