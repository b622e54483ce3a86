"""The second half of a redaction: what lies beside the table. Repeatable, so that a crash between is made good.

The table's transaction leaves a note; `finish` works it off: the text copy takes the redacted form of its lines, every
backup loses the same field, and the database gives up its free pages. Copies that nobody can open safely (damaged files
set aside) are named to the user instead.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nm_lsp.base.errors import NmError
from nm_lsp.decisions.model import DecisionId
from nm_lsp.storage import decision_rows, decision_search
from nm_lsp.storage.audit_log import AuditLog
from nm_lsp.storage.backups import Backups
from nm_lsp.storage.database import Database
from nm_lsp.storage.migrations import migrate

_NOTE = "redacting "
_ADD = "INSERT OR REPLACE INTO state (name, value) VALUES (?, ?)"
_NOTES = "SELECT name, value FROM state WHERE name LIKE 'redacting %'"
_DONE = "DELETE FROM state WHERE name = ?"


@dataclass(frozen=True, slots=True)
class Redaction:
    """What was done. `left` are files beside the store that may still hold the text, for the user to look at."""

    n_lines: int
    n_backups: int
    left: tuple[Path, ...]


class _Field(NamedTuple):
    decision: DecisionId
    name: str
    sequence: int


def note(connection: sqlite3.Connection, decision: DecisionId, field: str, sequence: int) -> None:
    """Remember, in the transaction of the redaction, that text copy and backups are still to follow."""
    connection.execute(_ADD, (f"{_NOTE}{sequence}", json.dumps([decision, field, sequence])))


def finish(database: Database, audit: AuditLog, backups: Backups) -> Redaction:
    """Work off the notes; without any, nothing is read or changed."""
    with database.reading() as connection:
        notes = {name: json.loads(value) for name, value in connection.execute(_NOTES).fetchall()}
    if not notes:
        return Redaction(0, 0, ())
    n_lines = audit.redact_text()
    n_backups = 0
    left = sorted(p for p in database.path.parent.glob(f"{database.path.name}.*") if not p.name.endswith(".lock"))
    for backup in backups.all():
        try:
            n_backups += _redact_backup(backup.path, backups, [_Field(*value) for value in notes.values()])
        except (sqlite3.Error, NmError, OSError):
            # Damaged or of an older make; the user is told, since only a person can decide to give it up.
            left.append(backup.path)
    with database.atomic() as connection:
        connection.executemany(_DONE, [(name,) for name in notes])
    if not database.shrink():
        left.append(Path(f"{database.path}-wal"))
    return Redaction(n_lines, n_backups, tuple(left))


def _redact_backup(path: Path, backups: Backups, fields: list[_Field]) -> bool:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        # Nothing but this program uses a backup, and nothing may lie beside it afterwards.
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute("BEGIN IMMEDIATE")
        migrate(connection, backups.schema)
        changed = False
        for field in fields:
            if decision_rows.redact_rows(connection, field.decision, field.name, before=field.sequence):
                changed = True
                decision_search.update(connection, field.decision, changed_behind=True)
        if changed:
            decision_search.forget_old_terms(connection)
        connection.execute("COMMIT")
        if changed:
            connection.execute("VACUUM")
        return changed
