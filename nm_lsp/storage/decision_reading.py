"""Reading a decision store without opening it for writing: a few decisions by the paths they were anchored at.

Guarantees: nothing in the store's folder is written or created, locks in a shared-memory file that is there already
excepted; the answer is one state of the store, with what other processes have committed; a file that is foreign, newer
or damaged raises `StoreProblem`. Needs neither numpy nor the full-text index, so that it costs milliseconds.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from nm_lsp.base.errors import InvalidInput, StoreProblem
from nm_lsp.decisions.fold import DecisionRecord
from nm_lsp.decisions.model import DecisionId
from nm_lsp.storage import decision_rows
from nm_lsp.storage.decision_schema import SCHEMA

T = TypeVar("T")

_BUSY_S = 5.0
_ATTEMPTS = 5
_COMPANIONS = ("-wal", "-journal")
_MAX_VARIABLES = 30_000
_WIDE = "SELECT DISTINCT decision FROM anchors WHERE kind IN ('folder', 'glob')"
_NAMED = "SELECT DISTINCT decision FROM anchors WHERE path IN"
_NAMES = "SELECT DISTINCT path FROM anchors WHERE kind NOT IN ('folder', 'glob')"
_NEEDS_WRITING = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


class DecisionReader:
    """One state of a store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def named(self, paths: Iterable[str]) -> set[DecisionId]:
        """Decisions with an anchor that was ever named as one of `paths`, and all that govern folders or globs."""
        wanted = [decision_rows.as_ascii(path) for path in paths]
        found = self._connection.execute(_WIDE).fetchall()
        for at in range(0, len(wanted), _MAX_VARIABLES):
            some = wanted[at : at + _MAX_VARIABLES]
            marks = ",".join("?" * len(some))
            found += self._connection.execute(f"{_NAMED} ({marks})", some).fetchall()
        return {DecisionId(row[0]) for row in found}

    def names(self) -> set[str]:
        """The name of every file, symbol and submodule anchor, also those in confirmations."""
        return {decision_rows.from_ascii(row[0]) for row in self._connection.execute(_NAMES)}

    def records(self, ids: Iterable[DecisionId]) -> dict[DecisionId, DecisionRecord]:
        """The decisions named and all that they depend on, over any chain; unknown ids are left out."""
        found: dict[DecisionId, DecisionRecord] = {}
        waiting = list(ids)
        while waiting:
            identity = waiting.pop()
            record = None if identity in found else decision_rows.read_record(self._connection, identity)
            if record is not None:
                found[identity] = record
                waiting.extend(record.decision.depends_on)
        return found

    def rewrites(self) -> list[tuple[str, str]]:
        """The (old, new) pairs of rewritten commits, in order."""
        return [pair for event in decision_rows.read_rewrites(self._connection) for pair in event.pairs()]


def read_store(path: Path, ask: Callable[[DecisionReader], T]) -> T:
    """What `ask` makes of the store in the file `path`, which exists.

    `ask` is called again where the file changed meanwhile. Raises `StoreProblem` and what `ask` raises.
    """
    try:
        for _ in range(_ATTEMPTS):
            answer = _attempt(path, ask)
            if answer is not None:
                return answer[0]
    except InvalidInput as error:
        raise StoreProblem(f"{path} holds something that is no decision: {error}", reason="damaged") from error
    except OSError as error:
        raise StoreProblem(f"{path} cannot be read: {error.strerror}.", reason="io") from error
    except sqlite3.Error as error:
        # Imported here because it needs the module for locks, which costs more than the whole reading.
        from nm_lsp.storage import damage

        raise damage.problem(error, path) from error
    raise StoreProblem(f"{path} is being written all the time.", reason="locked", hint="Try again.")


def _attempt(path: Path, ask: Callable[[DecisionReader], T]) -> tuple[T] | None:
    """The answer, or None where the file changed while it was read without locks.

    A store in WAL mode that nobody has open has no log, and SQLite would make one to read it: so it is read as a file
    that does not change, and checked not to have. One with a log is read with the locks of the others. Where reading
    needs a recovery first (a process died, and its shared memory is gone), a copy is recovered instead.
    """
    log = Path(f"{path}-wal")
    before = _stat(path)
    in_wal_mode = _is_in_wal_mode(path)
    if in_wal_mode and not log.exists():
        answer = _asked(path, "mode=ro&immutable=1", ask)
        return (answer,) if _stat(path) == before and not log.exists() else None
    if not in_wal_mode or Path(f"{path}-shm").exists():
        try:
            return (_asked(path, "mode=ro", ask),)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _NEEDS_WRITING:
                raise
    with tempfile.TemporaryDirectory(prefix="nm-lsp-") as folder:
        copy = Path(folder, path.name)
        shutil.copyfile(path, copy)
        for suffix in _COMPANIONS:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        answer = _asked(copy, "mode=rw", ask)
        return (answer,) if _stat(path) == before else None


def _asked(path: Path, mode: str, ask: Callable[[DecisionReader], T]) -> T:
    uri = f"{path.absolute().as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != SCHEMA.application_id:
            raise StoreProblem(f"{path} is not a decision database of nm-lsp.", reason="foreign")
        if version > SCHEMA.version:
            raise StoreProblem(f"{path} was written by a newer nm-lsp.", reason="newer", hint="Update this one.")
        return ask(DecisionReader(connection))


def _is_in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(19)[18:] == b"\x02"


def _stat(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
