"""The process's own standard streams as a connection.

Guarantees: nothing but frames ever reaches the real standard output (whatever prints, prints to standard error); no
child inherits the client's pipes; reading and writing never block the event loop; a closed standard error is harmless.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from nm_lsp.server.framing import FrameParser, FramingError, frame

log = logging.getLogger(__name__)

_READ_BYTES = 1 << 16


def claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for the protocol; what else uses them gets nothing and standard error."""
    _ensure_open(2)
    real_in, real_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if sys.platform != "win32":
        for descriptor in (real_in, real_out):
            # A client may hand us ends that it made non-blocking for itself.
            os.set_blocking(descriptor, True)
    if sys.stderr is None:  # the process was started without one
        sys.stderr = os.fdopen(2, "w", closefd=False)
    sys.stdout = sys.stderr
    return os.fdopen(real_in, "rb", buffering=0), os.fdopen(real_out, "wb", buffering=0)


def _ensure_open(fd: int) -> None:
    """Give a closed descriptor the null device, so that no file or pipe opened later takes its number."""
    try:
        os.fstat(fd)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != fd:
            os.dup2(null, fd)
            os.close(null)


class StreamReader:
    """Reads frames in a thread of its own and hands them to the loop, then says once that the stream has ended."""

    def __init__(
        self,
        stream: BinaryIO,
        loop: asyncio.AbstractEventLoop,
        on_message: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._loop = loop
        self._on_message = on_message
        self._on_end = on_end
        # A daemon: a thread inside a blocking read cannot be ended otherwise.
        self._thread = threading.Thread(target=self._run, name="nm-stdin", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        parser = FrameParser()
        try:
            while data := self._stream.read(_READ_BYTES):
                for body in parser.feed(data):
                    self._loop.call_soon_threadsafe(self._on_message, body)
        except FramingError as error:
            log.error("The client sent %s; closing.", error)
        except (OSError, ValueError):
            log.info("Standard input failed")
        except RuntimeError:  # the loop is closed: the process is on its way out
            return
        try:
            self._loop.call_soon_threadsafe(self._on_end)
        except RuntimeError:
            return


class StreamOutlet:
    """Writes frames in a thread of its own, in order. `on_broken` tells once that the client has gone away."""

    def __init__(self, stream: BinaryIO, on_broken: Callable[[], None]) -> None:
        self._stream = stream
        self._on_broken = on_broken
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="nm-stdout", daemon=True)
        self._thread.start()

    def send(self, body: bytes) -> None:
        self._queue.put(frame(body))

    def close(self) -> None:
        self._queue.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait until everything sent before `close` is written, at most `timeout_s`."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                # A raw stream may take only a part.
                view = memoryview(data)
                while view:
                    view = view[self._stream.write(view) or 0 :]
            except (OSError, ValueError):
                self._on_broken()
                return
