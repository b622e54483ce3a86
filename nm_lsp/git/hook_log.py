"""What our git hooks noted (`hook_script` has the format), read by the engine.

Guarantees: a line that is not finished yet is read by the next call; lines that are not ours are passed over; a file
that was rolled is read to its end. Reading the same file twice gives the same lines twice: whoever stores them drops
what is stored already.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_lsp.git.hook_script import HOOKS, LOG_FOLDER

ROLL_BYTES: Final = 1_000_000
_LOG: Final = "hooks.log"
_ROLLED: Final = "hooks.log.1"
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


@dataclass(frozen=True, slots=True)
class Offset:
    """Up to where a log was read: `inode` tells the file from the one that took its place."""

    inode: int
    position: int


START: Final = Offset(0, 0)


@dataclass(frozen=True, slots=True)
class HookLine:
    """One run of a hook. `time_s` is Unix time, None where the shell did not know it; `tree` the linked work tree's
    name, None for the main one; `words` the hook's arguments, for post-rewrite its command, the old and the new commit.
    """

    time_s: int | None
    hook: str
    tree: str | None
    commit: str | None
    ref: str | None
    words: tuple[str, ...]

    def pair(self) -> tuple[str, str] | None:
        """(old, new) of a rewritten commit."""
        if self.hook != "post-rewrite" or len(self.words) < 3:
            return None
        old, new = self.words[1:3]
        return (old, new) if _COMMIT.match(old) and _COMMIT.match(new) and old != new else None


def log_folder(common_dir: Path) -> Path:
    """Where the hooks of the repository write; they do nothing while it is missing."""
    return common_dir / LOG_FOLDER


def log_file(common_dir: Path) -> Path:
    """The file the hooks append to; it need not exist."""
    return log_folder(common_dir) / _LOG


def read_log(common_dir: Path, since: Offset = START) -> tuple[list[HookLine], Offset]:
    """The finished lines noted after `since`, oldest first, and where they end. Nothing there: no lines, `since`."""
    lines: list[HookLine] = []
    offset = since
    with contextlib.ExitStack() as opened:
        files = []
        for name in (_ROLLED, _LOG):
            with contextlib.suppress(OSError):
                files.append(opened.enter_context((log_folder(common_dir) / name).open("rb")))
        inodes = [os.fstat(file.fileno()).st_ino for file in files]
        # What lies before the file that the offset speaks of was read to its end before that one was begun.
        first = inodes.index(since.inode) if since.inode in inodes else 0
        for file, inode in zip(files[first:], inodes[first:], strict=True):
            at = since.position if inode == since.inode else 0
            # A file that shrank was emptied by somebody, and what it holds now is new.
            file.seek(at if at <= os.fstat(file.fileno()).st_size else 0)
            at = file.tell()
            text = file.read()
            end = text.rfind(b"\n") + 1
            offset = Offset(inode, at + end)
            lines += [line for row in text[:end].split(b"\n") if (line := _parsed(row)) is not None]
    return lines, offset


def roll_if_large(common_dir: Path, offset: Offset, limit: int = ROLL_BYTES) -> bool:
    """Rename a log of more than `limit` bytes that was read up to `offset`; the one before it goes. True if it was.

    A hook that has the file open writes its line into the renamed one, where `read_log` still finds it.
    """
    path = log_folder(common_dir) / _LOG
    with contextlib.suppress(OSError):
        status = path.stat()
        if status.st_ino == offset.inode and limit < status.st_size <= offset.position:
            path.replace(path.with_name(_ROLLED))
            return True
    return False


def forget_log(common_dir: Path) -> None:
    """Remove the log and its folder. Files that are not ours stay."""
    folder = log_folder(common_dir)
    for name in (_LOG, _ROLLED):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _parsed(row: bytes) -> HookLine | None:
    words = row.decode("utf-8", "surrogateescape").split(" ")
    if len(words) < 6 or words[0] != "1" or words[2] not in HOOKS or not words[1].isdecimal():
        return None
    time_s, hook, tree, commit, ref = int(words[1]), words[2], words[3], words[4], words[5]
    return HookLine(
        time_s or None,
        hook,
        None if tree == "-" else tree,
        commit if _COMMIT.match(commit) else None,
        None if ref == "-" else ref,
        tuple(word for word in words[6:] if word),
    )
