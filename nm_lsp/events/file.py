"""`events.jsonl`: the bus of one process as lines that others read.

One JSON object a line: id, at, kind, data. Best effort, never a queue: what cannot be written is dropped and counted.
Guarantees: a publisher never waits for the disk; events of our own and those seen before are not told again; a line
that is cut, damaged or of another shape costs only itself; at `MAX_BYTES` the file is moved to `events.jsonl.1` and
begun anew, whoever notices first.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from collections import OrderedDict, deque
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from nm_lsp.events.bus import Event, EventBus
from nm_lsp.storage.files import open_to_append

log = logging.getLogger(__name__)

FILE: Final = "events.jsonl"
MAX_BYTES: Final = 10_000_000
MAX_WAITING: Final = 1_000
MAX_LINE: Final = 100_000
MAX_READ: Final = 4_000_000
"""A reader that fell further behind skips to the newest events."""
POLL_S: Final = 0.5
_REMEMBERED: Final = 5_000


class EventWriter:
    """Appends every event of `bus` to the file of `folder`, on a thread of its own. `n_dropped` counts losses."""

    def __init__(self, folder: Path, bus: EventBus, *, max_bytes: int = MAX_BYTES) -> None:
        self._path = folder / FILE
        self._bus = bus
        self._max_bytes = max_bytes
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self.n_dropped = 0
        self._unsubscribe = bus.subscribe(self._take)
        self._thread = threading.Thread(target=self._run, name="nm-events", daemon=True)
        self._thread.start()

    def _take(self, event: Event) -> None:
        if not event.id.startswith(self._bus.origin):
            return  # it came from the file
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:
                self.n_dropped += 1
                return
            self._waiting.append(event)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                events, self._waiting = list(self._waiting), deque()
                if not events:
                    return
            self.write(events)

    def write(self, events: list[Event]) -> None:
        """Append `events`; each is one write, so that lines of several processes do not mix."""
        lines = [line_of(event) for event in events]
        kept = [line for line in lines if len(line) <= MAX_LINE]
        self.n_dropped += len(lines) - len(kept)
        if not self._path.parent.is_dir():
            # The folder is made when something is stored; events alone are no reason to.
            self.n_dropped += len(kept)
            return
        try:
            self._roll()
            handle = open_to_append(self._path)
            try:
                for line in kept:
                    os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            self.n_dropped += len(kept)
            log.info("Events were not written: %s", error)

    def _roll(self) -> None:
        try:
            if self._path.stat().st_size < self._max_bytes:
                return
            with FileLock(f"{self._path}.lock", timeout=0):
                if self._path.stat().st_size >= self._max_bytes:
                    self._path.replace(self._path.with_name(FILE + ".1"))
        except (FileNotFoundError, Timeout):
            return

    def close(self) -> None:
        """Write what is waiting, if that is quick."""
        self._unsubscribe()
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(0.3)


class EventTail:
    """Reads what other processes append and tells it on `bus`. `poll` does one look; `start` does so on a thread."""

    def __init__(self, folder: Path, bus: EventBus) -> None:
        self._path = folder / FILE
        self._bus = bus
        self._at: tuple[int, int] | None = None
        self._rest = b""
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._ended = threading.Event()
        self.n_damaged = 0
        self._skip_to_end()

    def start(self) -> None:
        threading.Thread(target=self._run, name="nm-event-tail", daemon=True).start()

    def _run(self) -> None:
        while not self._ended.wait(POLL_S):
            self.poll()

    def _skip_to_end(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            return
        self._at = (status.st_ino, status.st_size)

    def poll(self) -> None:
        """Tell what was appended since the last look."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                inode, offset = self._at or (status.st_ino, 0)
                if inode != status.st_ino or offset > status.st_size:
                    offset, self._rest = 0, b""
                if status.st_size - offset > MAX_READ:
                    offset, self._rest = status.st_size, b""
                file.seek(offset)
                data = file.read(MAX_READ)
                self._at = (status.st_ino, offset + len(data))
        except OSError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        if not line.strip():
            return
        event = event_of(line)
        if event is None:
            self.n_damaged += 1
        elif not event.id.startswith(self._bus.origin) and event.id not in self._seen:
            self._seen[event.id] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            self._bus.emit(event)

    def close(self) -> None:
        self._ended.set()


def line_of(event: Event) -> bytes:
    body = {"id": event.id, "at": round(event.at, 3), "kind": event.kind, "data": event.data}
    return json.dumps(body, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def event_of(line: bytes) -> Event | None:
    """The event of a line; None for what is none of ours."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    identity, at, kind, data = (body.get(name) for name in ("id", "at", "kind", "data"))
    if not (isinstance(identity, str) and isinstance(kind, str) and isinstance(data, dict)):
        return None
    if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
        return None
    return Event(identity, float(at), kind, data)
