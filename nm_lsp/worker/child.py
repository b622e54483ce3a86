"""The child's loop: small requests first, then one step of each folder's work, for as long as there is any."""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from nm_lsp.search.segment import FileStamp, SegmentBuilder
from nm_lsp.storage.index_store import IndexStore, SkippedFile
from nm_lsp.worker.analysis import analyse_file, analyse_text, content_hash
from nm_lsp.worker.marks import ParseMark
from nm_lsp.worker.memory import without_collection
from nm_lsp.worker.messages import (
    Analyse,
    Analysed,
    BuildSegment,
    CancelBuild,
    CloseFolder,
    OpenFolder,
    Prefer,
    Rebuild,
    Rescan,
    SegmentBuilt,
    ToChild,
)
from nm_lsp.worker.second import SecondDied
from nm_lsp.worker.sources import Candidate, Unreadable
from nm_lsp.worker.task import FilesChanged, FolderTask
from nm_lsp.worker.vectors import VectorsDone

IDLE_S = 0.5
"""How often a child with nothing to do looks whether it may take over an index."""
WAITING_S = 0.02


class Child:
    """`inbox` also takes messages of this process to itself: from embedding threads and the second process's pipe."""

    def __init__(self, inbox: queue.SimpleQueue[object], send: Callable[[object], None]) -> None:
        self._inbox = inbox
        self._send = send
        self._tasks: dict[int, FolderTask] = {}

    def run(self) -> None:
        """Never returns; the process ends with its input."""
        while True:
            busy = [task for task in self._tasks.values() if task.is_busy]
            stepping = any(not task.is_waiting for task in busy)
            message = self._next(0.0 if stepping else WAITING_S if busy else IDLE_S)
            while message is not None:
                self._handle(message)
                message = self._next(0.0)
            for task in list(self._tasks.values()):
                task.step()

    def _next(self, timeout_s: float) -> object | None:
        try:
            return self._inbox.get(timeout=timeout_s) if timeout_s else self._inbox.get_nowait()
        except queue.Empty:
            return None

    def _handle(self, message: object) -> None:
        if isinstance(message, SegmentBuilt | SecondDied | VectorsDone | FilesChanged):
            for task in self._tasks.values():
                task.receive(message)
        else:
            self._obey(message)  # type: ignore[arg-type]

    def _obey(self, message: ToChild) -> None:
        match message:
            case OpenFolder():
                self._tasks[message.key] = FolderTask(message, self._send, self._inbox.put)
            case CloseFolder():
                if task := self._tasks.pop(message.key, None):
                    task.close()
            case Rescan() | Rebuild() | CancelBuild() | Prefer():
                if task := self._tasks.get(message.key):
                    task.obey(message)
            case Analyse():
                self._send(_analysed(message))
            case BuildSegment():
                with without_collection():
                    built = _segment_built(message)
                self._send(built)
            case _:
                assert_never(message)


def _analysed(message: Analyse) -> Analysed:
    data = message.text.encode("utf-8", "replace")
    builder = SegmentBuilder()
    try:
        builder.add(analyse_text(message.path, message.text, FileStamp(content_hash(data), len(data), 0)))
    except Unreadable as reason:
        return Analysed(message.ticket, None, str(reason))
    return Analysed(message.ticket, builder.columns(), None)


def _segment_built(message: BuildSegment) -> SegmentBuilt:
    folder, store = Path(message.folder), IndexStore(Path(message.index))
    builder, skipped = SegmentBuilder(), list[SkippedFile]()
    mark = ParseMark(store.folder)
    for path, size, mtime_ns in message.files:
        mark.enter(path)
        try:
            builder.add(analyse_file(folder, Candidate(path, size, mtime_ns), message.max_file_bytes))
        except Unreadable as reason:
            skipped.append(SkippedFile(path, str(reason), size, mtime_ns))
        mark.leave()
    mark.close()
    name = store.write_segment(builder.columns()) if builder.n_files else None
    return SegmentBuilt(message.ticket, name, tuple(skipped))
