"""A store that is gone or damaged: seeing it, setting the damaged file aside, putting back what is left.

Three things can bring decisions back: a backup, the text copy of the audit chain (which holds every event), and the
file that a running process still has open. Guarantees: a lost store is never silently begun anew; nothing that a backup
or the text copy holds is dropped.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import filelock

from nm_lsp.audit.acts import event_of
from nm_lsp.audit.chain import AuditRecord, hash_of, redacted_leaves
from nm_lsp.audit.text import Unreadable
from nm_lsp.base.errors import NmError, StoreProblem
from nm_lsp.base.wording import counted
from nm_lsp.decisions.events import EventKind
from nm_lsp.storage import audit_rows, damage, decision_redaction, decision_rows, decision_search
from nm_lsp.storage.audit_text import AuditText
from nm_lsp.storage.backups import Backup, Backups
from nm_lsp.storage.database import Database, Failpoint, Options, open_database, set_damaged_aside
from nm_lsp.storage.decision_schema import SCHEMA
from nm_lsp.storage.times import file_time

DATABASE = "memory.db"


@dataclass(frozen=True, slots=True)
class Loss:
    """What was lost and what can bring it back. `set_aside` is where the damaged file is now; `backup` the newest good
    one; `n_text_records` how many records the text copy holds."""

    path: Path
    why: str
    set_aside: Path | None
    backup: Backup | None
    n_text_records: int


class StoreLost(StoreProblem):
    """There was a store, and it cannot be used: restore it, or begin a new one on purpose."""

    def __init__(self, loss: Loss) -> None:
        where = f"; it is kept as {loss.set_aside.name}" if loss.set_aside else ""
        offer = [f"the backup {loss.backup.path.name}"] if loss.backup else []
        offer += [f"{counted(loss.n_text_records, 'record')} of audit.jsonl"] if loss.n_text_records else []
        left = f"brings it back from {' and '.join(offer)}" if offer else "begins an empty one; no backup was found"
        hint = f"Nothing is recorded until then: `nm-lsp decisions recover` {left}."
        super().__init__(f"{loss.path}: {loss.why}{where}.", reason="lost", hint=hint)
        self.loss = loss


@dataclass(frozen=True, slots=True)
class Recovery:
    """`n_replayed` records came from the text copy; `stopped` says why its rest could not be used, if so."""

    backup: Path | None
    replaced: Path | None
    n_replayed: int
    stopped: str | None


def refuse_if_lost(folder: Path, backups: Backups) -> None:
    """Raise `StoreLost` where there is no file but there was one."""
    path = folder / DATABASE
    if not path.exists() and (AuditText(folder).exists() or backups.all()):
        raise StoreLost(_loss(folder, backups, "it is missing", None))


def open_or_report_loss(folder: Path, backups: Backups, options: Options, now: float, failpoint: Failpoint) -> Database:
    """Open the file; set a damaged one aside and raise `StoreLost`."""
    path = folder / DATABASE
    expect_content = bool(backups.all()) or AuditText(folder).exists()

    def attempt() -> Database:
        return open_database(
            path,
            SCHEMA,
            options,
            expect_content=expect_content,
            before_migration=lambda connection: _back_up_first(backups, connection, now),
            failpoint=failpoint,
        )

    try:
        return attempt()
    except StoreProblem as error:
        if error.reason != "damaged" or options.reading_only:
            raise
        aside = set_damaged_aside(path, SCHEMA, now, expect_content=expect_content)
        if aside is None and path.exists():
            # Another process has put a sound file there since.
            return attempt()
        raise StoreLost(_loss(folder, backups, error.message.removeprefix(f"{path} "), aside)) from error


def _back_up_first(backups: Backups, connection: sqlite3.Connection, now: float) -> None:
    backups.make(connection.backup, now, "migration")


def _loss(folder: Path, backups: Backups, why: str, aside: Path | None) -> Loss:
    n_records = sum(isinstance(line, AuditRecord) for line in AuditText(folder).read())
    return Loss(folder / DATABASE, why, aside, backups.newest_good(), n_records)


def begin_anew(folder: Path, now: float) -> list[str]:
    """Put an empty store in the place of what is left of the old one; returns the names the old files have now."""
    path = folder / DATABASE
    aside = damage.set_aside(path, now, lambda: True, label="replaced") if path.exists() else None
    names = AuditText(folder).set_aside(file_time(now))
    put_empty(path)
    return [*([aside.name] if aside else []), *names]


def put_empty(path: Path) -> None:
    """Create an empty store under a name of its own first: a file without content would pass for a damaged one."""
    temporary = path.with_name(f".{path.name}.new-{os.getpid()}")
    open_database(temporary, SCHEMA).close()
    if path.exists():
        temporary.unlink()
    else:
        temporary.replace(path)


def replay(connection: sqlite3.Connection, lines: list[AuditRecord | Unreadable]) -> tuple[int, str | None]:
    """Add the records of the text copy that follow the table's chain, with their events, in the caller's transaction.

    Returns how many, and why it stopped before the end, if it did.
    """
    head = audit_rows.head(connection)
    n_replayed = 0
    for number, record in enumerate(lines, 1):
        if isinstance(record, Unreadable):
            if number <= head.sequence:
                continue
            return n_replayed, f"line {number} is no record: {record.why}"
        if record.sequence < head.sequence or record.head == head:
            continue
        if record.sequence != head.sequence + 1 or record.previous != head.hash or hash_of(record) != record.hash:
            return n_replayed, f"record {record.sequence} on line {number} does not follow record {head.sequence}"
        try:
            _replay_one(connection, record)
        except NmError as error:
            return n_replayed, f"record {record.sequence} on line {number} cannot be used: {error.message}"
        head = record.head
        n_replayed += 1
    last = lines[-1] if lines else None
    if isinstance(last, AuditRecord) and audit_rows.hash_at(connection, last.sequence) != last.hash:
        return n_replayed, f"record {last.sequence} of the text copy is not the one in the table: the two have parted"
    return n_replayed, None


def _replay_one(connection: sqlite3.Connection, record: AuditRecord) -> None:
    event = event_of(record)
    if event is None:
        audit_rows.insert(connection, record, None)
        return
    marks = record.act if redacted_leaves(record) else None
    sequence, _ = decision_rows.append_event(connection, event, marks, merged=True)
    if event.kind is EventKind.REDACTED and event.decision is not None:
        # The backup may be older than the redaction, and so may other backups.
        field = str(event.after["field"])
        decision_rows.redact_rows(connection, event.decision, field, before=sequence)
        decision_search.update(connection, event.decision, changed_behind=True)
        decision_search.forget_old_terms(connection)
        decision_redaction.note(connection, event.decision, field, sequence)
    audit_rows.insert(connection, record, sequence)


def rescue(database: Database, folder: Path, backups: Backups, now: float) -> bool:
    """Give the file that `database` holds open its name back, if nothing else bears it; True if that was done.

    Where the repository itself is gone (its root is two folders above), a backup is made and `StoreProblem` raised, as
    where the file cannot be put back.
    """
    path = database.path
    if not folder.parent.parent.is_dir():
        backups.make(database.copy_to, now, "removed")
        raise StoreProblem(f"{path} is gone, and its repository with it; a backup was made", reason="replaced")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{path}.lock", timeout=10):
            if path.exists():
                return False
            temporary = path.with_name(f".{path.name}.rescued")
            temporary.unlink(missing_ok=True)
            try:
                with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as target:
                    database.copy_to(target)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
    except sqlite3.Error as error:
        raise damage.problem(error, path) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreProblem(f"{path} is gone and cannot be put back: {why}", reason="io") from error
    return True
