"""The audit of one store: chain in the table, text copy beside it, verification of all of it.

Guarantees: a record and the change it is of are one transaction (the caller's); the text copy gets each record once and
in order, whoever crashes; nothing here rewrites the text but `rewrite_text`, `rotate` and `redact`, which are audited.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.audit import verify as chain_check
from nm_lsp.audit.chain import Act, AuditRecord, Head, Payload, redacted_leaves
from nm_lsp.audit.text import Unreadable, archive_name, format_line
from nm_lsp.audit.verify import Fault, Finding, Verdict
from nm_lsp.base.errors import InvalidInput, Refused, StoreProblem
from nm_lsp.decisions.fold import fold_all
from nm_lsp.storage import audit_rows, decision_rows
from nm_lsp.storage.audit_text import AuditText, DroppedRecords, replace_file
from nm_lsp.storage.database import Database
from nm_lsp.storage.times import file_time, utc_text

_GET = "SELECT value FROM state WHERE name = ?"
_SET = "INSERT OR REPLACE INTO state (name, value) VALUES (?, ?)"
_WRITTEN = "text written"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What `audit verify` found. `n_dropped`: acts whose record could not be written. `n_waiting`: records that the
    text copy does not have yet."""

    verdict: Verdict
    n_dropped: int
    n_waiting: int

    @property
    def sound(self) -> bool:
        return self.verdict.sound and self.n_dropped == 0 and self.n_waiting == 0


@dataclass(frozen=True, slots=True)
class Archived:
    """A closed text file: its name, and the last record in it."""

    name: str
    end: Head


class AuditLog:
    """The audit of the database in `folder`."""

    def __init__(self, database: Database, folder: Path, failpoint: Callable[[str], None]) -> None:
        self._database = database
        self._failpoint = failpoint
        self.text = AuditText(folder)
        self.dropped = DroppedRecords(folder)

    def use(self, database: Database) -> None:
        """Go on with another open file of the same store."""
        self._database = database

    def append_or_count(self, acts: Iterable[Act], now: float) -> bool:
        """Record acts that happened already; what the database does not take is counted in `audit.dropped`."""
        acts = list(acts)
        time = utc_text(now)
        try:
            with self._database.atomic() as connection:
                for act in acts:
                    audit_rows.append_act(connection, act, time)
        except StoreProblem as error:
            for act in acts:
                self.dropped.note(time, act.action, act.subject, error.message)
            return False
        self.follow()
        return True

    def follow(self) -> bool:
        """Bring the text copy up to the table; False where it cannot be written or does not belong to the table.

        Then the records wait in the table, and `verify` says so.
        """
        try:
            with self._database.reading() as connection:
                if self._written(connection) == audit_rows.head(connection).sequence:
                    return True
            with self._database.atomic() as connection:
                return self._follow(connection)
        except StoreProblem:
            return False

    def _follow(self, connection: sqlite3.Connection) -> bool:
        records = self._waiting(connection)
        if records is None:
            return False
        if records:
            self.text.append(records, self.text.tail().torn, self._failpoint)
            self._failpoint("text-written")
            connection.execute(_SET, (_WRITTEN, str(records[-1].sequence)))
        return True

    def _waiting(self, connection: sqlite3.Connection) -> list[AuditRecord] | None:
        """The records the text lacks; None if its end is not part of the table's chain."""
        written = self._written(connection)
        tail = self.text.tail().record
        if isinstance(tail, AuditRecord) and tail.sequence > written:
            if audit_rows.hash_at(connection, tail.sequence) != tail.hash:
                return None
            written = tail.sequence
        return [record for record in audit_rows.read(connection, written) if isinstance(record, AuditRecord)]

    def _written(self, connection: sqlite3.Connection) -> int:
        row = connection.execute(_GET, (_WRITTEN,)).fetchone()
        return 0 if row is None else int(row[0])

    def begin_text_anew(self) -> None:
        """Let the next `follow` write the whole chain: for a store whose text copy is gone for a known reason."""
        with self._database.atomic() as connection:
            connection.execute(_SET, (_WRITTEN, "0"))

    def head(self) -> Head:
        with self._database.reading() as connection:
            return audit_rows.head(connection)

    def records(self, after: int = 0) -> list[AuditRecord]:
        """The readable records beyond sequence number `after`."""
        with self._database.reading() as connection:
            return [record for record in audit_rows.read(connection, after) if isinstance(record, AuditRecord)]

    def is_text_ahead(self) -> bool:
        """Whether the text copy goes on where the table ends, as after the restoring of an older file."""
        tail = self.text.tail().record
        return isinstance(tail, AuditRecord) and tail.sequence > self.head().sequence

    def verify(self, anchors: Iterable[Head] = ()) -> AuditReport:
        """Check table, text copy, their agreement, anchors, and that events and view are what the chain says."""
        with self._database.reading() as connection:
            table = list(audit_rows.read(connection))
            extra = [*_unaudited(connection, len(table)), *_view_faults(connection)]
            written = self._written(connection)
        text: list[AuditRecord | Unreadable] = []
        is_readable = True
        try:
            text = self.text.read()
        except StoreProblem as problem:
            is_readable = False
            extra.append(Finding(Fault.UNREADABLE, "text", 0, problem.message))
        n_waiting = _n_waiting(table, text, written)
        # Records that were never given to the text are waiting, not cut from it; of a text that cannot be read nobody
        # knows what it lacks.
        n_expected = len(table) - n_waiting if is_readable else 0
        expected = table[:n_expected]
        verdict = chain_check.verify(table, [*text, *table[len(expected) :]], anchors)
        verdict = Verdict((*verdict.findings, *extra), verdict.n_records, verdict.head, verdict.redacted)
        return AuditReport(verdict, self.dropped.count(), n_waiting)

    def lost(self) -> tuple[int, int]:
        """How many acts have no record, and how many records the text copy lacks; told without reading the chain."""
        try:
            tail = self.text.tail().record
        except StoreProblem:
            tail = None
        in_text = tail.sequence if isinstance(tail, AuditRecord) else 0
        with self._database.reading() as connection:
            end, written = audit_rows.head(connection).sequence, self._written(connection)
        return self.dropped.count(), max(0, end - max(in_text, written))

    def rotate(self, actor: str, face: str, now: float) -> Archived:
        """Close the current text file under an archive's name and go on in a new one.

        Raises Refused where there is nothing to close, or the text does not agree with the table.
        """
        with self._database.atomic() as connection:
            # Under the same lock as the renaming, so that the archive ends with the record its name says.
            if not self._follow(connection):
                raise Refused("The text copy does not agree with the table; see `nm-lsp audit verify`.")
            first = self.text.first()
            if first is None:
                raise Refused("There is nothing to rotate: the text copy is empty.")
            end = audit_rows.head(connection)
            name = archive_name(first.sequence, end.sequence)
            after: Payload = {"archive": name, "sequence": end.sequence, "hash": end.hash}
            audit_rows.append_act(connection, Act(actor, face, "audit.rotated", "", None, after), utc_text(now))
            self.text.archive(name)
            self._failpoint("archived")
        self.follow()
        return Archived(name, end)

    def rewrite_text(self, actor: str, face: str, now: float) -> list[str]:
        """Set the text copy aside and write it anew from the table; returns the names of the old files.

        How many records were dropped becomes part of the chain, and the list of them is set aside too.
        """
        with self._database.atomic() as connection:
            names = self.text.set_aside(file_time(now))
            after: Payload = {"setAside": list(names)}
            n_dropped = self.dropped.count()
            if n_dropped:
                # The records are lost; that so many are becomes a record itself.
                after = {**after, "dropped": n_dropped}
                names += self.dropped.set_aside(file_time(now))
            act = Act(actor, face, "audit.text-rewritten", "", None, after)
            audit_rows.append_act(connection, act, utc_text(now))
            records = [row for row in audit_rows.read(connection) if isinstance(row, AuditRecord)]
            replace_file(self.text.path, b"".join(format_line(record) for record in records))
            connection.execute(_SET, (_WRITTEN, str(records[-1].sequence)))
        return names

    def redact_text(self) -> int:
        """Put the redacted form of records in place of their lines; returns the number of lines changed."""
        with self._database.atomic() as connection:
            redacted = [
                row for row in audit_rows.read(connection) if isinstance(row, AuditRecord) and redacted_leaves(row)
            ]
            return self.text.replace_lines(redacted)


def _n_waiting(table: list[AuditRecord | Unreadable], text: list[AuditRecord | Unreadable], written: int) -> int:
    in_text = max((line.sequence for line in text if isinstance(line, AuditRecord)), default=0)
    end = max((row.sequence for row in table if isinstance(row, AuditRecord)), default=0)
    return max(0, end - max(in_text, written))


def _unaudited(connection: sqlite3.Connection, n_records: int) -> list[Finding]:
    return [
        Finding(Fault.FOREIGN, "table", n_records + 1, f"event {sequence} ({kind} {decision}) has no audit record")
        for sequence, decision, kind in audit_rows.unaudited_events(connection)
    ]


def _view_faults(connection: sqlite3.Connection) -> list[Finding]:
    """Where the current view is not the fold of the events."""
    try:
        folded = fold_all(event for _, event in decision_rows.read_events(connection)).records
        view = {record.id: record for record in decision_rows.read_records(connection, as_stored=True)}
    except (InvalidInput, Refused, StoreProblem) as error:
        return [Finding(Fault.ALTERED, "view", 0, f"the decisions cannot be read from their events: {error.message}")]
    different = sorted(
        identity for identity in folded.keys() | view.keys() if folded.get(identity) != view.get(identity)
    )
    return [Finding(Fault.ALTERED, "view", 0, f"{identity} does not read as its events say") for identity in different]
