"""Publish and subscribe within one process.

Guarantees: without a subscriber publishing costs one comparison, and the content of the event is not made; a
subscriber that fails is left out of that event and counted, and harms nobody else. Thread-safe.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """`id` is unique among all processes; `at` is Unix time in seconds; `data` is plain JSON data."""

    id: str
    at: float
    kind: str
    data: dict[str, object]


Listener = Callable[[Event], None]


class EventBus:
    """`clock` is Unix time in seconds. Listeners are called on the publisher's thread and must return at once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()
        self._numbers = itertools.count(1)
        self.origin = secrets.token_hex(6)
        self.n_failed = 0

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """`listener` hears of every event from now on, until what is returned is called."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
        return lambda: self._unsubscribe(listener)

    def _unsubscribe(self, listener: Listener) -> None:
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def publish(self, kind: str, make: Callable[[], dict[str, object]]) -> None:
        """Tell of an event; `make` gives its content and is called only if somebody listens."""
        if self._listeners:
            self.emit(Event(f"{self.origin}-{next(self._numbers)}", self._clock(), kind, make()))

    def emit(self, event: Event) -> None:
        """Tell of an event as it is, of another process say."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # the supervisor of all listeners: one must not silence the others
                self.n_failed += 1
                log.exception("A listener of events failed")
