"""What happened since the last batch closed, as notes: the side of learning that runs on the event loop.

Every method is O(1) in the size of the text. A batch closes after `QUIET_S` without a note, `LONGEST_S` after its
first at the latest. One note per path, whoever reports a change how often. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

QUIET_S: Final = 2.0
LONGEST_S: Final = 30.0
MAX_NOTED: Final = 2_000
"""Paths of one batch that are remembered by name; a batch with more than 20 is bulk anyway."""


@dataclass(frozen=True, slots=True)
class ScreenNote:
    """An open document that changed: its text before the first change and after the last, and when that first was.

    `saved`: the client has saved it since it changed. `regressed`: its version went back or stood still.
    """

    before: str
    after: str
    at: float
    version: int | None
    saved: bool = False
    regressed: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """One closed batch, folder-relative. `disk`: files whose content on disk may have changed, and since when."""

    started: float
    closed: float
    screen: Mapping[str, ScreenNote] = field(default_factory=dict)
    disk: Mapping[str, float] = field(default_factory=dict)
    opened: Mapping[str, float] = field(default_factory=dict)
    n_paths: int = 0


class Funnel:
    """`clock` is Unix time in seconds. `woken` is called, from any thread, when a batch begins."""

    def __init__(self, clock: Callable[[], float], woken: Callable[[], None]) -> None:
        self._clock = clock
        self._woken = woken
        self._lock = threading.Lock()
        self._screen: dict[str, ScreenNote] = {}
        self._disk: dict[str, float] = {}
        self._opened: dict[str, float] = {}
        self._started: float | None = None
        self._last = 0.0
        self._n_dropped = 0

    def changed(self, path: str, before: str, after: str, version: int | None, before_version: int | None) -> None:
        """An open document has another text."""
        with self._lock:
            now = self._begin(path, self._screen)
            if now is None:
                return
            known = self._screen.get(path)
            went_back = version is not None and before_version is not None and version <= before_version
            if known is None:
                self._screen[path] = ScreenNote(before, after, now, version, regressed=went_back)
            else:
                self._screen[path] = replace(
                    known, after=after, version=version, saved=False, regressed=known.regressed or went_back
                )

    def saved(self, path: str) -> None:
        with self._lock:
            known = self._screen.get(path)
            if known is not None:
                self._screen[path] = replace(known, saved=True)

    def on_disk(self, paths: Sequence[str]) -> None:
        """Files whose content on disk may have changed."""
        with self._lock:
            for path in paths:
                now = self._begin(path, self._disk)
                if now is not None:
                    self._disk.setdefault(path, now)

    def opened(self, path: str) -> None:
        with self._lock:
            now = self._begin(path, self._opened)
            if now is not None:
                self._opened.setdefault(path, now)

    def due_in(self, now: float) -> float | None:
        """Seconds until the open batch closes; None without one. A clock that went back closes it at once."""
        with self._lock:
            if self._started is None:
                return None
            if now < self._last:
                return 0.0
            return max(0.0, min(self._last + QUIET_S, self._started + LONGEST_S) - now)

    def take(self, now: float, *, all_of_it: bool = False) -> Notes | None:
        """The open batch, if it is due (or with `all_of_it` in any case)."""
        due = self.due_in(now)
        if due is None or (due > 0 and not all_of_it):
            return None
        with self._lock:
            if self._started is None:
                return None
            n_paths = len({*self._screen, *self._disk}) + self._n_dropped
            notes = Notes(self._started, now, self._screen, self._disk, self._opened, n_paths)
            self._screen, self._disk, self._opened, self._started, self._n_dropped = {}, {}, {}, None, 0
            return notes

    def _begin(self, path: str, notes: Mapping[str, object]) -> float | None:
        """The time of a note about to be made, or None where the batch is too large to remember it by name."""
        now = self._clock()
        self._last = now
        if self._started is None:
            self._started = now
            self._woken()
        if path not in notes and len(notes) >= MAX_NOTED:
            self._n_dropped += 1
            return None
        return now
