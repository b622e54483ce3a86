"""The index of one folder, as its writer sees it: what is in it, what changed on disk, how the next generation is made.

Every step is a generator that yields often, so that the child can answer small requests in between. Everything that is
published is consistent: a reader never sees half a file.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nm_lsp.base.errors import GitUnavailable, StoreProblem
from nm_lsp.git.listing import folder_files
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.merge import merge_segments
from nm_lsp.search.segment import FileStamp, Segment, SegmentBuilder
from nm_lsp.storage.index_store import IndexStore, Manifest, SegmentEntry, SkippedFile
from nm_lsp.worker.analysis import ANALYZER, analyse_file, content_hash
from nm_lsp.worker.marks import ParseMark, clear_suspects, fatal_files
from nm_lsp.worker.sources import Candidate, Refusal, Unreadable, candidates, read_bytes, walk

RACY_NS = 2_000_000_000
"""A file touched this shortly before it was read may have changed since without a new time stamp."""
MAX_SMALL_SEGMENTS = 8
MAX_MERGED_DOCS = 100_000
"""Symbols that one merge takes at most: it holds all their rows in memory, several times."""
FATAL = "parsing it ended the indexing process"


@dataclass(frozen=True, slots=True)
class Options:
    excludes: tuple[str, ...]
    max_file_bytes: int
    max_files: int
    git: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where the live rows of a file are."""

    segment: str
    file: int
    stamp: FileStamp


@dataclass(frozen=True, slots=True)
class Changes:
    """What a scan found: files to read (open and newest first), files that are gone, refusals. `git_problem` is why the
    folder was walked although git should have listed it."""

    to_read: tuple[Candidate, ...]
    gone: tuple[str, ...]
    refused: tuple[Refusal, ...]
    git_problem: GitUnavailable | None


class FolderIndex:
    """Only the process that holds the store's writer lock makes one."""

    def __init__(self, folder: Path, store: IndexStore, options: Options) -> None:
        self.folder = folder
        self.store = store
        self.options = options
        self.manifest = store.manifest() or Manifest(ANALYZER)
        self._live: dict[str, Place] = {}
        self._skipped: dict[str, SkippedFile] = {}
        self._touched: dict[str, int] = {}
        if self.manifest.analyzer != ANALYZER:
            self.manifest = replace(Manifest(ANALYZER), generation=self.manifest.generation)
        self._load()
        self._mark = ParseMark(store.folder)

    def _load(self) -> None:
        """Fill the tables from the manifest. What a disk has damaged is left out: a segment's files are read anew, the
        rest is computed anew."""
        manifest = self.manifest
        good = []
        self._touched = touched = dict(manifest.touched)
        for entry in manifest.segments:
            if not self._is_sound(entry.name, self.store.segment):
                continue
            good.append(entry)
            segment, dead = self.store.segment(entry.name), set(entry.dead)
            for row, path in enumerate(segment.paths.all()):
                if row not in dead:
                    stamp = segment.stamp(row)
                    if path in touched:
                        stamp = replace(stamp, mtime_ns=touched[path])
                    self._live[path] = Place(entry.name, row, stamp)
        vectors = tuple(name for name in manifest.vectors if self._is_sound(name, self.store.vectors))
        annoy, topics = manifest.annoy, manifest.topics
        if annoy is not None and (vectors[:1] != manifest.vectors[:1] or not self.store.is_intact(annoy)):
            annoy = None
        if topics is not None and not self.store.is_intact(topics):
            topics = None
        self._skipped = {item.path: item for item in manifest.skipped}
        self.note_fatal_files()
        self.manifest = replace(manifest, segments=tuple(good), vectors=vectors, annoy=annoy, topics=topics)

    def _is_sound(self, name: str, opened: Callable[[str], object]) -> bool:
        if not self.store.is_intact(name):
            return False
        try:
            opened(name)
        except StoreProblem:
            return False
        return True

    def _stamp(self, path: str) -> tuple[int, int]:
        try:
            status = os.lstat(self.folder / path)
        except OSError:
            return 0, 0
        return status.st_size, status.st_mtime_ns

    def close(self) -> None:
        self._mark.close()

    def corpus(self) -> Corpus:
        return Corpus(self.store.parts(self.manifest), self.store.topics(self.manifest.topics))

    def knows(self, path: str) -> bool:
        """Whether `path` is a file that is indexed or was looked at and skipped."""
        return path in self._live or path in self._skipped

    def directories(self) -> set[str]:
        """The directories that hold indexed files, and all above them up to the folder itself ("")."""
        found = {""}
        for path in self._live:
            directory = path.rpartition("/")[0]
            while directory not in found:
                found.add(directory)
                directory = directory.rpartition("/")[0]
        return found

    def note_fatal_files(self) -> None:
        """Skip from now on what processes that died were parsing."""
        for path in fatal_files(self.store.folder):
            self._skipped[path] = SkippedFile(path, FATAL, *self._stamp(path))

    # -- scanning ---------------------------------------------------------------------------------------------------

    def scan(self, paths: Sequence[str] | None, preferred: Iterable[str]) -> Changes:
        """Compare the disk with the index, everywhere or at `paths` (files or folders) only."""
        refused: list[Refusal] = []
        listing, git_problem = self._listing(paths, refused)
        seen: set[str] = set()
        to_read: list[Candidate] = []
        options = self.options
        for item in candidates(self.folder, listing, options.excludes, options.max_files):
            if isinstance(item, Refusal):
                refused.append(item)
            else:
                seen.add(item.path)
                if self._may_have_changed(item):
                    to_read.append(item)
        scope = _Scope(paths)
        gone = [path for path in self._live if path not in seen and scope.covers(path)]
        gone += [path for path in self._skipped if path not in seen and path not in self._live and scope.covers(path)]
        first = set(preferred)
        to_read.sort(key=lambda item: (item.path not in first, -item.mtime_ns, item.path))
        return Changes(tuple(to_read), tuple(gone), tuple(refused), git_problem)

    def _listing(
        self, paths: Sequence[str] | None, refused: list[Refusal]
    ) -> tuple[Iterable[str], GitUnavailable | None]:
        if paths is not None and all(path in self._live for path in paths):
            return paths, None
        problem = None
        try:
            listed = folder_files(self.folder, paths, executable=self.options.git)
        except GitUnavailable as error:
            listed, problem = None, error
        if listed is not None:
            return listed, None
        return walk(self.folder, refused.append), problem

    def _may_have_changed(self, item: Candidate) -> bool:
        place = self._live.get(item.path)
        if place is not None:
            stamp = place.stamp
            if stamp.size != item.size:
                return True
            if stamp.mtime_ns == item.mtime_ns and item.mtime_ns <= self.manifest.read_ns - RACY_NS:
                return False
            if self._differs(item, stamp):
                return True
            self._note_touched(item, place)
            return False
        skipped = self._skipped.get(item.path)
        return skipped is None or (skipped.size, skipped.mtime_ns) != (item.size, item.mtime_ns)

    def _note_touched(self, item: Candidate, place: Place) -> None:
        """The file has a new time stamp and its old bytes: its rows stand, and it need not be read again."""
        if item.mtime_ns != place.stamp.mtime_ns:
            self._live[item.path] = replace(place, stamp=replace(place.stamp, mtime_ns=item.mtime_ns))
            self._touched[item.path] = item.mtime_ns

    def _differs(self, item: Candidate, stamp: FileStamp) -> bool:
        try:
            return content_hash(read_bytes(self.folder, item.path, self.options.max_file_bytes)) != stamp.content_hash
        except Unreadable:
            return True

    # -- building ---------------------------------------------------------------------------------------------------

    def read_chunk(self, items: Sequence[Candidate]) -> Iterator[int]:
        """Parse `items` into one new segment and publish it. Yields how many files are done."""
        builder = SegmentBuilder()
        skipped: list[SkippedFile] = []
        started = time.time_ns()
        for n_done, item in enumerate(items, 1):
            refused = self._skipped.get(item.path)
            if refused is not None and refused.reason == FATAL and refused.mtime_ns == item.mtime_ns:
                yield n_done
                continue
            self._mark.enter(item.path)
            try:
                file = analyse_file(self.folder, item, self.options.max_file_bytes)
            except Unreadable as reason:
                skipped.append(SkippedFile(item.path, str(reason), item.size, item.mtime_ns))
            else:
                builder.add(file)
            self._mark.leave()
            yield n_done
        name = self.store.write_segment(builder.columns()) if builder.n_files else None
        self.adopt(name, skipped, started)

    def adopt(self, name: str | None, skipped: Iterable[SkippedFile], read_ns: int) -> None:
        """Make a written segment part of the index; its files replace older rows of the same path."""
        dead: dict[str, set[int]] = {}
        entries = list(self.manifest.segments)
        if name is not None:
            segment = self.store.segment(name)
            for row, path in enumerate(segment.paths.all()):
                self._bury(path, dead)
                self._live[path] = Place(name, row, segment.stamp(row))
                self._skipped.pop(path, None)
            entries.append(SegmentEntry(name))
        for item in skipped:
            self._bury(item.path, dead)
            self._skipped[item.path] = item
        if name is not None or dead or skipped:
            self._publish(entries, dead, read_ns)

    def remove(self, paths: Iterable[str], refused: Iterable[Refusal]) -> bool:
        """Take files out of the index and note refusals; True where anything was published."""
        dead: dict[str, set[int]] = {}
        before = dict(self._skipped)
        for path in paths:
            self._bury(path, dead)
            self._skipped.pop(path, None)
        for refusal in refused:
            self._bury(refusal.path, dead)
            self._skipped[refusal.path] = SkippedFile(refusal.path, refusal.reason, refusal.size, refusal.mtime_ns)
        if not dead and before == self._skipped and dict(self.manifest.touched) == self._touched:
            return False
        self._publish(list(self.manifest.segments), dead, self.manifest.read_ns)
        return True

    def _bury(self, path: str, dead: dict[str, set[int]]) -> None:
        self._touched.pop(path, None)
        place = self._live.pop(path, None)
        if place is not None:
            dead.setdefault(place.segment, set()).add(place.file)

    def _publish(self, entries: Sequence[SegmentEntry], dead: dict[str, set[int]], read_ns: int) -> None:
        kept = []
        for entry in entries:
            buried = dead.get(entry.name)
            rows = tuple(sorted({*entry.dead, *buried})) if buried else entry.dead
            if len(rows) < self.store.segment(entry.name).n_files:
                kept.append(replace(entry, dead=rows))
        self.update(segments=tuple(kept), skipped=tuple(self._skipped.values()), read_ns=read_ns)

    def note_success(self) -> None:
        """A round of parsing ended well."""
        clear_suspects(self.store.folder)

    def update(self, **changes: object) -> None:
        """Publish the manifest with these fields changed."""
        touched = tuple(sorted(self._touched.items()))
        self.manifest = self.store.publish(replace(self.manifest, touched=touched, **changes))  # type: ignore[arg-type]
        self.store.forget_except(self.manifest)

    def start_anew(self, *, vectors: bool) -> None:
        """Forget every row, so that the next scan reads everything; readers keep the last generation until then."""
        self._live.clear()
        self._skipped.clear()
        self._touched.clear()
        kept = () if vectors else self.manifest.vectors
        self.manifest = replace(
            Manifest(ANALYZER), generation=self.manifest.generation, vectors=kept, model=self.manifest.model
        )

    # -- merging ----------------------------------------------------------------------------------------------------

    def merge(self) -> Iterator[None]:
        """Join small segments, so that a search opens few; a large one only when half of it is dead."""
        while group := self._to_merge():
            yield from self._join(group)

    def _join(self, group: Sequence[SegmentEntry]) -> Iterator[None]:
        parts = []
        for entry in group:
            segment = self.store.segment(entry.name)
            live = np.ones(segment.n_files, np.bool_)
            live[list(entry.dead)] = False
            parts.append((segment, live))
        yield
        merged = merge_segments(parts, lambda: None)
        yield
        name = self.store.write_segment(merged.columns)
        segment = self.store.segment(name)
        for row, path in enumerate(segment.paths.all()):
            # A stamp that a touch made newer than the row's stays the one to compare with.
            self._live[path] = Place(name, row, self._live[path].stamp)
        merged_names = {entry.name for entry in group}
        rest = [entry for entry in self.manifest.segments if entry.name not in merged_names]
        self.update(segments=(*rest, SegmentEntry(name)))

    def _to_merge(self) -> list[SegmentEntry]:
        entries = self.manifest.segments
        sizes = {entry.name: self._live_docs(self.store.segment(entry.name), entry) for entry in entries}
        # Two of these are never too many for one merge.
        growing = [entry for entry in entries if sizes[entry.name] * 2 < MAX_MERGED_DOCS]
        largest = max((sizes[entry.name] for entry in growing), default=0)
        small = [entry for entry in growing if sizes[entry.name] * 4 < largest]
        group = next((group for group in (small, growing) if len(group) > MAX_SMALL_SEGMENTS), None)
        if group is None:
            group = [entry for entry in entries if sizes[entry.name] * 2 < self.store.segment(entry.name).n_docs]
        group = sorted(group, key=lambda entry: sizes[entry.name])
        totals = itertools.accumulate(sizes[entry.name] for entry in group)
        n_taken = sum(1 for total in totals if total <= MAX_MERGED_DOCS)
        return group[: max(n_taken, 1)]

    @staticmethod
    def _live_docs(segment: Segment, entry: SegmentEntry) -> int:
        first = segment.first_doc
        return segment.n_docs - sum(int(first[row + 1] - first[row]) for row in entry.dead)


class _Scope:
    """Whether a path is one of those asked about or below one of them."""

    def __init__(self, paths: Sequence[str] | None) -> None:
        self._paths = None if paths is None else {path.rstrip("/") for path in paths}

    def covers(self, path: str) -> bool:
        if self._paths is None:
            return True
        while path:
            if path in self._paths:
                return True
            path = path.rpartition("/")[0]
        return False
