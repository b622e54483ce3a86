"""What happens in the brains of one repository, told within this process and, through the event file, to others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from nm_lsp.base.errors import StoreProblem
from nm_lsp.events.bus import Event, EventBus
from nm_lsp.events.file import EventTail, EventWriter


class Activity:
    """Thread-safe. `folder` is that of the store; the file is written only where that folder exists and is fit."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        refuse_unfit_place: Callable[[], None],
        *,
        with_file: bool,
    ) -> None:
        self._folder = folder
        self._refuse_unfit_place = refuse_unfit_place
        self._with_file = with_file
        self._lock = threading.Lock()
        self._writer: EventWriter | None = None
        self._tail: EventTail | None = None
        self.bus = EventBus(clock)

    @property
    def n_dropped(self) -> int:
        return self._writer.n_dropped if self._writer is not None else 0

    def publish(self, kind: str, make: Callable[[], dict[str, object]]) -> None:
        """Tell of an event; `make` gives its content, and is called only if somebody listens."""
        if self._with_file and self._writer is None and self._folder.is_dir() and self._is_fit():
            with self._lock:
                if self._writer is None:
                    self._writer = EventWriter(self._folder, self.bus)
        self.bus.publish(kind, make)

    def _is_fit(self) -> bool:
        try:
            self._refuse_unfit_place()
        except StoreProblem:
            return False
        return True

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """`listener` hears of what happens here and in other processes, until what is returned is called."""
        if self._with_file:
            with self._lock:
                if self._tail is None:
                    self._tail = EventTail(self._folder, self.bus)
                    self._tail.start()
        return self.bus.subscribe(listener)

    def close(self) -> None:
        with self._lock:
            if self._tail is not None:
                self._tail.close()
            if self._writer is not None:
                self._writer.close()
