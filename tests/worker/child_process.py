"""A child process at the other end of a pipe, and a way to wait for what it says."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import TypeVar

from nm_lsp.worker.client import WorkerClient

M = TypeVar("M")
PATIENCE_S = 30.0


class Child:
    """A worker and the messages it sent, in order."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.restarts = 0
        self.given_up: str | None = None
        self.seen: list[object] = []
        self.client = WorkerClient(self._messages.put, self._restarted, self._died)

    def _restarted(self) -> None:
        self.restarts += 1
        self._messages.put("restarted")

    def _died(self, reason: str) -> None:
        self.given_up = reason
        self._messages.put("given up")

    def wait(self, kind: type[M], test: Callable[[M], bool] = lambda _: True) -> M:
        """The next message of `kind` that passes `test`; fails after `PATIENCE_S`."""
        while True:
            message = self._messages.get(timeout=PATIENCE_S)
            self.seen.append(message)
            if isinstance(message, kind) and test(message):
                return message
