"""Telling a damaged database from a foreign, locked or unreadable one, and setting it aside.

Guarantees: nothing is deleted or overwritten; what is set aside keeps its journal beside it under the names
SQLite expects, so that it can still be opened; two processes that find the same damage set it aside once.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import filelock

from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage.times import file_time

_MAGIC = b"SQLite format 3\x00"
_COMPANIONS = ("-wal", "-shm", "-journal")

_REASONS = {
    sqlite3.SQLITE_BUSY: ("locked", "is locked by another process"),
    sqlite3.SQLITE_LOCKED: ("locked", "is locked by another connection"),
    sqlite3.SQLITE_READONLY: ("read-only", "cannot be written"),
    sqlite3.SQLITE_PERM: ("read-only", "cannot be written"),
    sqlite3.SQLITE_CORRUPT: ("damaged", "is damaged"),
    sqlite3.SQLITE_NOTADB: ("damaged", "is damaged: it is not an SQLite file"),
    sqlite3.SQLITE_FULL: ("full", "cannot grow: the disk is full"),
    sqlite3.SQLITE_CANTOPEN: ("io", "cannot be opened"),
    sqlite3.SQLITE_IOERR: ("io", "cannot be read or written"),
    sqlite3.SQLITE_PROTOCOL: ("io", "cannot be locked on this file system"),
}
_HINTS = {
    "locked": "Nothing was written; try again when the other program has finished.",
    "read-only": "Nothing was written; check the permissions of the folder.",
    "full": "Nothing was written; free some space and try again.",
}


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where the driver itself complains."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def problem(error: sqlite3.Error, path: Path) -> StoreProblem:
    """The error for people that stands for one of SQLite's."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB:
        return index_problem(path)
    reason, words = _REASONS.get(primary_code(error), ("io", "gave an error"))
    return StoreProblem(f"{path} {words} ({error})", reason=reason, hint=_HINTS.get(reason))


def index_problem(path: Path) -> StoreProblem:
    """The full-text index is damaged: it is made of the other tables, and `decision_search.make_anew` repairs it."""
    return StoreProblem(f"{path}: the full-text index is damaged", reason="index")


def damage_seen_outside(path: Path, *, expect_content: bool) -> str | None:
    """Damage that shows without opening the file with SQLite, in words; None if there is none.

    `expect_content` says that the file held something before, so that an empty one is a loss, not a start.
    """
    if path.is_symlink():
        # SQLite would follow it, to a file that is another's or is to be made wherever the link says.
        raise StoreProblem(
            f"{path} is a link; nothing was read or written", reason="link", hint="Put the file itself there."
        )
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreProblem(f"{path} cannot be read: {error.strerror}", reason="io") from error
    if not stat.S_ISREG(status.st_mode):
        return "it is not a file"
    if status.st_size == 0:
        return "it is empty" if expect_content and not _has_content(Path(f"{path}-wal")) else None
    head = read_header(path)
    return None if head.startswith(_MAGIC) else "it is not an SQLite file"


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def read_header(path: Path) -> bytes:
    """The first 100 bytes; fewer where the file is shorter."""
    try:
        with path.open("rb") as file:
            return file.read(100)
    except OSError as error:
        reason = "read-only" if isinstance(error, PermissionError) else "io"
        raise StoreProblem(f"{path} cannot be read: {error.strerror}", reason=reason) from error


def application_id_in_header(path: Path) -> int:
    """As the file's first page has it; 0 where it is not set, or only in the write-ahead log as yet."""
    head = read_header(path)
    return int.from_bytes(head[68:72], "big") if len(head) == 100 and head.startswith(_MAGIC) else 0


def damage_seen_inside(connection: sqlite3.Connection) -> str | None:
    """What `quick_check` finds; None if all is well. Errors that are no damage (a lock, say) are raised."""
    try:
        lines = [row[0] for row in connection.execute("PRAGMA quick_check(20)").fetchall()]
    except sqlite3.DatabaseError as error:
        if primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return str(error)
        raise
    # The search index is made of the other tables and can be made again; a missing module is no damage.
    lines = [line for line in lines if "fts5" not in line.lower()]
    return None if lines in ([], ["ok"]) else "; ".join(lines[:3])


def set_aside(path: Path, now: float, still_damaged: Callable[[], bool], *, label: str = "corrupt") -> Path | None:
    """Rename `path` and its journals to `<name>.<label>-<UTC time>`; None if somebody else already did.

    `now` is Unix time. `still_damaged` is asked again under a lock between processes, because another one
    may have put a good file in place since the caller looked.
    """
    lock = filelock.FileLock(f"{path}.lock", timeout=10)
    try:
        with lock:
            if not path.exists() or not still_damaged():
                return None
            aside = _free_name(path, f"{label}-{file_time(now)}")
            # The journals first: were the file to go first, a crash here would leave a journal that SQLite
            # deletes when a new file of that name is created.
            for companion in _COMPANIONS:
                beside = Path(f"{path}{companion}")
                if beside.is_file():
                    beside.replace(f"{aside}{companion}")
            path.replace(aside)
            return aside
    except (OSError, filelock.Timeout) as error:
        raise StoreProblem(f"{path} is damaged and cannot be set aside: {error}", reason="damaged") from error


def _free_name(path: Path, suffix: str) -> Path:
    aside = path.with_name(f"{path.name}.{suffix}")
    n = 1
    while aside.exists():
        n += 1
        aside = path.with_name(f"{path.name}.{suffix}.{n}")
    return aside
