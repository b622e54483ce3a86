"""Opening one SQLite file that several processes share, and its transactions.

Guarantees: a file that is not ours (by `application_id`) or is from a newer program is refused before anything
is written; damage is found by `quick_check` when the file is opened and is never repaired by deleting; the
write-ahead log is proven by a real write, with the rollback journal where it does not work (network drives,
some containers); every write is one `BEGIN IMMEDIATE` transaction that is whole or absent whenever the process
dies; a lock of another process is waited for up to `busy_ms` and then reported.

A `Database` may be used from any thread: writers and readers take turns on one connection each. It must not
know what the tables are for.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nm_lsp.base.errors import InternalError, StoreProblem
from nm_lsp.storage import damage
from nm_lsp.storage.migrations import Schema, migrate, version_by_content

Failpoint = Callable[[str], None]
"""Called with the name of the step about to be taken; a test stops the process there."""

BackupBefore = Callable[[sqlite3.Connection], None]
"""Called with the open file before a migration changes it; an error leaves the file as it was."""

_WAL_REFUSED = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_PERM,
}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_OLDEST_SQLITE = (3, 37, 0)  # the first with STRICT tables


def no_failpoint(step: str) -> None:
    """The failpoint of every process that is not under test."""


@dataclass(frozen=True, slots=True)
class Options:
    """`synchronous` FULL survives a power cut with the last commit, NORMAL without it, OFF is for caches.

    `reading_only` opens a file that is up to date without the proof that it can be written.
    """

    synchronous: Literal["OFF", "NORMAL", "FULL"] = "FULL"
    busy_ms: int = 5_000
    check_integrity: bool = True
    reading_only: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """How the file was opened. `created`: it did not exist. `migrated`: versions before and after."""

    journal: str
    created: bool
    migrated: tuple[int, int]


class Database:
    """One open file. `opened` tells what opening it took."""

    def __init__(
        self,
        path: Path,
        schema: Schema,
        writer: sqlite3.Connection,
        opened: Opened,
        options: Options,
        failpoint: Failpoint,
    ) -> None:
        self.path = path
        self.schema = schema
        self.opened = opened
        self._options = options
        self._failpoint = failpoint
        self._writer = writer
        self._write_lock = threading.RLock()
        # Opened now, not when first needed: by then the name may lead to another file.
        self._reader = _connect(path, options)
        self._reader.execute("PRAGMA query_only = ON")
        self._read_lock = threading.RLock()
        self._identity = _identity(path)

    @contextlib.contextmanager
    def atomic(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of the block's statements, or none of them.

        Raises `StoreProblem`: locked after `busy_ms`, full, read-only, damaged; replaced if the file was removed or
        replaced since it was opened, in which case nothing was written.
        """
        with self._write_lock:
            self._refuse_nesting()
            try:
                _patiently(lambda: self._writer.execute("BEGIN IMMEDIATE"), self._options.busy_ms)
                if self.replaced():
                    raise StoreProblem(f"{self.path} was removed or replaced while it was open", reason="replaced")
                self._failpoint("begun")
                yield self._writer
                self._failpoint("before-commit")
                self._commit()
            except sqlite3.Error as error:
                raise damage.problem(error, self.path) from error
            finally:
                # Also for an error of the block itself. SQLite has ended the transaction itself where the disk is full.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            self._failpoint("committed")

    def _commit(self) -> None:
        try:
            _patiently(lambda: self._writer.execute("COMMIT"), self._options.busy_ms)
        except sqlite3.IntegrityError as error:
            # No constraint of ours waits for the commit; a full-text index that cannot be written answers so.
            raise damage.index_problem(self.path) from error

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view for the block's reads, which must not outlive it. In WAL mode no writer delays it."""
        with self._read_lock:
            try:
                self._reader.execute("BEGIN")
                yield self._reader
            except sqlite3.Error as error:
                raise damage.problem(error, self.path) from error
            finally:
                if self._reader.in_transaction:
                    self._reader.execute("ROLLBACK")

    def stamp(self) -> tuple[int, int, int]:
        """Moves when anybody, this process too, has written to the file or put another in its place."""
        with self._read_lock:
            try:
                data_version = self._reader.execute("PRAGMA data_version").fetchone()[0]
            except sqlite3.Error as error:
                raise damage.problem(error, self.path) from error
        return (*(_identity(self.path) or (0, 0)), data_version)

    def replaced(self) -> bool:
        """Whether the path no longer leads to the file that was opened (removed by `git clean`, restored, …)."""
        return _identity(self.path) != self._identity

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy the whole file by SQLite's backup API, as this connection sees it, also if its name is gone.

        No reader waits for it while the name still leads to the file.
        """
        try:
            with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(self._beside()) as beside:
                if not self.replaced():
                    beside.backup(target)
                    return
            with self._read_lock:
                self._reader.backup(target)
        except sqlite3.Error as error:
            raise damage.problem(error, self.path) from error

    def _beside(self) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, timeout=self._options.busy_ms / 1000, isolation_level=None)

    def shrink(self) -> bool:
        """Give the space of deleted rows back to the disk, log included. Rewrites the file; the content stays.

        False where another process is reading so long that the log still holds old pages.
        """
        with self._write_lock:
            try:
                _patiently(lambda: self._writer.execute("VACUUM"), self._options.busy_ms)
                is_busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.Error as error:
                raise damage.problem(error, self.path) from error
        return not is_busy

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()

    def _refuse_nesting(self) -> None:
        if self._writer.in_transaction:
            raise InternalError("a write transaction is already open on this thread")


def open_database(
    path: Path,
    schema: Schema,
    options: Options | None = None,
    *,
    expect_content: bool = False,
    before_migration: BackupBefore | None = None,
    failpoint: Failpoint = no_failpoint,
) -> Database:
    """Open or create the file and bring its schema up to date.

    `expect_content`: it is known to have held something, so an empty file is damage. Raises `StoreProblem` with
    reason damaged (nothing was moved: see `set_damaged_aside`), foreign, newer, schema, locked, full, and
    read-only or io, where another folder may do.
    """
    options = options or Options()
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreProblem(
            f"this Python has SQLite {sqlite3.sqlite_version}; 3.37 or newer is needed",
            hint="Use another build of Python.",
        )
    _make_folder(path)
    seen = damage.damage_seen_outside(path, expect_content=expect_content)
    if seen is not None:
        raise StoreProblem(f"{path} is damaged: {seen}", reason="damaged")
    created = not path.exists()
    if not created and damage.application_id_in_header(path) not in {0, schema.application_id}:
        raise _foreign(path, schema)
    try:
        try:
            connection, migrated = _open(path, schema, options, before_migration, failpoint, wal=_may_use_wal(path))
        except sqlite3.OperationalError as error:
            if damage.primary_code(error) not in _WAL_REFUSED:
                raise
            connection, migrated = _open(path, schema, options, before_migration, failpoint, wal=False)
        journal = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    except sqlite3.Error as error:
        raise damage.problem(error, path) from error
    return Database(path, schema, connection, Opened(journal, created, migrated), options, failpoint)


def open_anew_if_damaged(
    path: Path, schema: Schema, options: Options, now: float, *, failpoint: Failpoint = no_failpoint
) -> tuple[Database, Path | None]:
    """For what can be rebuilt: a damaged file is set aside and an empty one opened. Returns where the old one is."""
    try:
        return open_database(path, schema, options, failpoint=failpoint), None
    except StoreProblem as error:
        if error.reason not in {"damaged", "schema"}:
            raise
    aside = set_damaged_aside(path, schema, now)
    return open_database(path, schema, options, failpoint=failpoint), aside


def set_damaged_aside(path: Path, schema: Schema, now: float, *, expect_content: bool = False) -> Path | None:
    """Rename a damaged file to `<name>.corrupt-<time>`; None if it is sound by now."""

    def still_damaged() -> bool:
        try:
            open_database(path, schema, expect_content=expect_content).close()
        except StoreProblem as error:
            return error.reason in {"damaged", "schema"}
        return False

    return damage.set_aside(path, now, still_damaged)


def _open(
    path: Path,
    schema: Schema,
    options: Options,
    before_migration: BackupBefore | None,
    failpoint: Failpoint,
    *,
    wal: bool,
) -> tuple[sqlite3.Connection, tuple[int, int]]:
    connection = _connect(path, options, without_wal=not wal)
    try:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        if found not in {0, schema.application_id} or (found == 0 and _has_tables(connection)):
            raise _foreign(path, schema)
        if options.check_integrity:
            damaged = damage.damage_seen_inside(connection)
            if damaged is not None:
                raise StoreProblem(f"{path} is damaged: {damaged}", reason="damaged")
        version = version_by_content(connection, schema)
        if wal:
            _switch_to_wal(connection, options.busy_ms)
        marker = connection.execute("PRAGMA user_version").fetchone()[0]
        if (version, marker, found) == (schema.version, schema.version, schema.application_id):
            if not options.reading_only:
                _prove_writing(connection, schema, options.busy_ms)
            return connection, (version, version)
        if 0 < version < schema.version and before_migration is not None:
            before_migration(connection)
        _patiently(lambda: connection.execute("BEGIN IMMEDIATE"), options.busy_ms)
        migrated = migrate(connection, schema)
        failpoint("migrated")
        _patiently(lambda: connection.execute("COMMIT"), options.busy_ms)
        return connection, migrated
    except BaseException:
        # Closing rolls back.
        connection.close()
        raise


def _prove_writing(connection: sqlite3.Connection, schema: Schema, busy_ms: int) -> None:
    """Write for real: with a folder in the way of `-shm`, the pragma still answers "wal" and only a write fails.

    Where another process is writing just now, that is proof enough; opening does not wait for it.
    """
    connection.execute("PRAGMA busy_timeout = 50")
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {int(schema.version)}")
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if damage.primary_code(error) not in _BUSY:
            raise
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(busy_ms)}")


def _connect(path: Path, options: Options, *, without_wal: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=options.busy_ms / 1000, isolation_level=None, check_same_thread=False)
    try:
        if without_wal:
            # In exclusive mode SQLite reads a file left in WAL mode without the shared memory that fails here.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            _patiently(lambda: connection.execute("PRAGMA journal_mode = DELETE"), options.busy_ms)
            connection.execute("PRAGMA locking_mode = NORMAL")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        connection.execute(f"PRAGMA synchronous = {options.synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        # The schema of a file that a repository brought along may call nothing but harmless functions.
        connection.execute("PRAGMA trusted_schema = OFF")
        # What `redact` takes out must not stay in free pages.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection, busy_ms: int) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    with contextlib.suppress(sqlite3.OperationalError):
        # Another process that uses the file with a rollback journal keeps it so for all; no reason to fail.
        _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone(), min(busy_ms, 500))


def _may_use_wal(path: Path) -> bool:
    shared_memory = Path(f"{path}-shm")
    if shared_memory.exists() and not shared_memory.is_file():
        return False
    if not path.exists() or path.stat().st_size == 0:
        return True
    # Byte 18 is 1 for a rollback journal: either the file system refused WAL once, or the file is a restored
    # backup. A file of its own tells which.
    return damage.read_header(path)[18:19] != b"\x01" or _wal_works_beside(path)


def _wal_works_beside(path: Path) -> bool:
    probe = path.with_name(f"{path.name}.probe-{os.getpid()}-{threading.get_ident()}")
    try:
        with contextlib.closing(sqlite3.connect(probe, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE probe (n INTEGER) STRICT")
            return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")
    except sqlite3.Error:
        return False
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{probe}{suffix}").unlink(missing_ok=True)


def _patiently(step: Callable[[], object], busy_ms: int) -> None:
    """Take a step that another process may hold up. SQLite waits by itself in most cases, but answers "busy" at
    once where it sees a deadlock, recovers a log or changes the journal; those are tried again."""
    until = time.monotonic() + busy_ms / 1000
    pause_s = 0.002
    while True:
        try:
            step()
            return
        except sqlite3.OperationalError as error:
            if damage.primary_code(error) not in _BUSY or time.monotonic() + pause_s >= until:
                raise
        # Spread out, so that two processes do not meet again; nothing secret hangs on it.
        time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311
        pause_s = min(pause_s * 2, 0.2)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None


def _foreign(path: Path, schema: Schema) -> StoreProblem:
    return StoreProblem(
        f"{path} is not a {schema.name} database of nm-lsp; nothing was written to it",
        reason="foreign",
        hint=f"Move that file away: `mv {shlex.quote(str(path))} {shlex.quote(f'{path}.aside')}`",
    )


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreProblem(f"{path.parent} cannot be created: {error.strerror}", reason="read-only") from error
    if not os.access(path.parent, os.W_OK) or (path.is_file() and not os.access(path, os.W_OK)):
        raise StoreProblem(f"{path} cannot be written", reason="read-only")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
