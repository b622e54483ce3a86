"""Frames over a pair of binary streams: 4 bytes of length, then a pickle. Both ends are processes of ours."""

from __future__ import annotations

import pickle
import struct
import threading
from typing import IO, Any

_LENGTH = struct.Struct("<I")


class Channel:
    """`send` may be called from any thread; `receive` from one."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        """Raises `OSError` or `ValueError` when the other end is gone."""
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._writer.write(_LENGTH.pack(len(body)) + body)
            self._writer.flush()

    def receive(self) -> Any:
        """The next message, or None at the end of the stream."""
        head = self._reader.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack(head)
        body = self._reader.read(length)
        if len(body) < length:
            return None
        # Only our own child or parent can write to this pipe.
        return pickle.loads(body)  # noqa: S301
