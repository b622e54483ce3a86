"""A second process for a large build: it turns chunks of files into segments while the first does the same.

It is another `nm_lsp.worker`, started by the child and ended with it, since its input ends then.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nm_lsp.worker.client import WorkerClient
from nm_lsp.worker.messages import BuildSegment, OpenFolder, SegmentBuilt
from nm_lsp.worker.sources import Candidate


@dataclass(frozen=True, slots=True)
class SecondDied:
    """To the child's loop: the second process ended while it had a chunk."""


@dataclass(frozen=True, slots=True)
class Given:
    """A chunk that the second process works on."""

    ticket: int
    chunk: Sequence[Candidate]
    at_ns: int


class SecondProcess:
    """At most one chunk is with it at a time."""

    _tickets = itertools.count(1)

    def __init__(self, opened: OpenFolder, post: Callable[[object], None]) -> None:
        self._opened = opened
        self._built: dict[int, SegmentBuilt] = {}
        self._client = WorkerClient(post, lambda: post(SecondDied()), lambda _: post(SecondDied()))
        self.has_died = False
        self.given: Given | None = None

    def give(self, chunk: Sequence[Candidate]) -> None:
        opened = self._opened
        self.given = Given(next(self._tickets), chunk, time.time_ns())
        files = tuple((item.path, item.size, item.mtime_ns) for item in chunk)
        message = BuildSegment(self.given.ticket, opened.folder, opened.index, files, opened.max_file_bytes)
        if not self._client.send(message):
            self.has_died = True

    def receive(self, message: SegmentBuilt | SecondDied) -> None:
        if isinstance(message, SegmentBuilt):
            self._built[message.ticket] = message
        else:
            self.has_died = True

    def take(self) -> tuple[Given, SegmentBuilt] | None:
        """The finished chunk, if it is finished; another may be given then."""
        if self.given is None or self.given.ticket not in self._built:
            return None
        given, self.given = self.given, None
        return given, self._built.pop(given.ticket)

    def close(self) -> None:
        self._client.close(0.0)
