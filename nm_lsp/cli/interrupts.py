"""Ctrl-C as a cancellation: the work ends where it may, not where it happens to be."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled


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


@contextmanager
def prompting() -> Iterator[None]:
    """Within it, Ctrl-C ends the waiting for a person's answer, as the end of the input does. Raises `Cancelled`."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except (KeyboardInterrupt, EOFError, typer.Abort):
        # What was typed ends without a line feed.
        typer.echo(err=True)
        raise Cancelled("nothing was changed") from None
    finally:
        signal.signal(signal.SIGINT, previous)
