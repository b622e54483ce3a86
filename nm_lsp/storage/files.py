"""Writing files into folders that others write too: whole or not at all, and never through a link that somebody left.

A repository can bring links along. Guarantees: what a link points to is never opened for writing; a reader sees the old
file or the new one. Every function raises `OSError`.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# Windows would turn line feeds into two characters.
_BINARY = getattr(os, "O_BINARY", 0)


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Put `content` in the place of `path` at once; a link is replaced, not followed.

    `durable`: its content is forced to disk first.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # The mode is what the user's mask leaves of it.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY, 0o666)
        try:
            write_all(descriptor, content)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def create_file(path: Path, content: bytes) -> bool:
    """Write a file where there is none; False where something bears the name, be it a link that leads nowhere."""
    if os.path.lexists(path):
        return False
    replace_file(path, content)
    return True


def open_to_append(path: Path) -> int:
    """A descriptor that appends to `path`, which is created if need be. A link is an error."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK | _BINARY, 0o644)


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
