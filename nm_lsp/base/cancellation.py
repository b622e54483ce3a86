"""Cooperative cancellation, shared by requests, the index build and scans."""

from __future__ import annotations

import threading

from nm_lsp.base.errors import Cancelled


class Cancellation:
    """A flag set by one thread and polled by another. `check()` is cheap enough for inner loops."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise `Cancelled` once `cancel()` has been called."""
        if self._event.is_set():
            raise Cancelled("the request was cancelled")
