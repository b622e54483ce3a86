"""Who killed the parser: each process notes the file it is about to parse where the note survives its death.

A native parser that crashes takes its process with it. The next one finds the note, tries that file once more, skips it
with the reason if that ends the process again, and goes on. A note costs one write to a memory-mapped page.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from pathlib import Path

_SUSPECTS = "suspects.json"
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
    """Paths in the middle of which two processes ended. Only for the holder of the writer lock; takes the notes away.

    The first time it may have been a `kill` from outside, so the file is only suspected and tried once more.
    """
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
    if not found:
        return []
    suspects = _suspects(folder)
    with contextlib.suppress(OSError):
        (folder / _SUSPECTS).write_text(json.dumps(sorted(suspects.union(found))), "ascii")
    return [path for path in found if path in suspects]


def clear_suspects(folder: Path) -> None:
    """Everything was parsed and nobody died."""
    with contextlib.suppress(OSError):
        (folder / _SUSPECTS).unlink()


def _suspects(folder: Path) -> set[str]:
    try:
        return set(json.loads((folder / _SUSPECTS).read_text("ascii")))
    except (OSError, ValueError, TypeError):
        return set()
