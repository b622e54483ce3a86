"""Ctrl-C as a cancellation: the work ends where it may, not where it happens to be."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nm_lsp.base.cancellation import Cancellation


@contextmanager
def interruptible() -> Iterator[Cancellation]:
    """Within it, the first Ctrl-C sets the cancellation; the next one raises `KeyboardInterrupt` as usual."""
    cancel = Cancellation()
    # Read first: the signal may come before `signal.signal` has returned.
    previous = signal.getsignal(signal.SIGINT)

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        cancel.cancel()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, previous)
