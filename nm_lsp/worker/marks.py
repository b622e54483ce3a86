"""Who killed the parser: each process notes the file it is about to parse where the note survives its death.

A native parser that crashes takes its process with it. The next one finds the note, skips that file with the reason,
and goes on. A note costs one write to a memory-mapped page.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path

_SIZE = 8192
_MAX_PATH = _SIZE - 2


class ParseMark:
    """The note of this process. `enter` before a parse, `leave` after it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"parsing-{os.getpid()}.mark"
        self._file.write_bytes(bytes(_SIZE))
        with self._file.open("r+b") as handle:
            self._page = mmap.mmap(handle.fileno(), _SIZE)

    def enter(self, path: str) -> None:
        raw = path.encode("utf-8", "surrogatepass")[:_MAX_PATH]
        self._page[2 : 2 + len(raw)] = raw
        self._page[:2] = len(raw).to_bytes(2, "little")

    def leave(self) -> None:
        self._page[:2] = b"\0\0"

    def close(self) -> None:
        self._page.close()
        with contextlib.suppress(OSError):
            self._file.unlink()


def fatal_files(folder: Path) -> list[str]:
    """Paths that processes which are gone were parsing. Only for the holder of the writer lock; clears the notes."""
    found = []
    for mark in folder.glob("parsing-*.mark"):
        if mark.name == f"parsing-{os.getpid()}.mark":
            continue
        try:
            raw = mark.read_bytes()
            mark.unlink()
        except OSError:
            continue
        length = int.from_bytes(raw[:2], "little")
        if length:
            found.append(raw[2 : 2 + length].decode("utf-8", "surrogatepass"))
    return found
