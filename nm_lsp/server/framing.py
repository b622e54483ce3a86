"""The base protocol: `Content-Length` headers and bodies. Bytes in, messages out; knows no file and no socket."""

from __future__ import annotations

MAX_HEADER_BYTES = 16_384
MAX_BODY_BYTES = 512 * 1024 * 1024


class FramingError(ValueError):
    """The stream holds something that is no frame. What follows cannot be trusted: close it."""


def frame(body: bytes) -> bytes:
    """`body` with its header; the length counts bytes."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class FrameParser:
    """Cuts a stream into bodies, however its bytes arrive. Header names in any case; other headers are skipped."""

    __slots__ = ("_buffer", "_needed")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that `data` completes, in order. Raises `FramingError`."""
        self._buffer += data
        bodies: list[bytes] = []
        while True:
            if self._needed is None and not self._read_header():
                return bodies
            needed = self._needed
            if needed is None or len(self._buffer) < needed:
                return bodies
            bodies.append(bytes(self._buffer[:needed]))
            del self._buffer[:needed]
            self._needed = None

    def _read_header(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
        if end < 0:
            if len(self._buffer) >= MAX_HEADER_BYTES:
                raise FramingError("a header without an end")
            return False
        header = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        for line in header.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                if not value.strip().isdigit() or int(value) > MAX_BODY_BYTES:
                    raise FramingError("a Content-Length that is no sensible number")
                self._needed = int(value)
                return True
        raise FramingError("a header without Content-Length")
