"""The audit chain as rows; every function works inside the caller's transaction.

The payloads of a decision's event are read from the event's own row, so that verifying the chain verifies the events.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from nm_lsp.audit.chain import GENESIS, Act, AuditRecord, Head, Payload, link, reveal
from nm_lsp.audit.text import Unreadable
from nm_lsp.storage.decision_rows import as_ascii, from_ascii, payloads_from_json

_HEAD = "SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1"
_ADD = """
INSERT INTO audit (sequence, time, actor, face, action, subject, event, before, after, previous, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SINCE = """
SELECT a.sequence, a.time, a.actor, a.face, a.action, a.subject, a.before, a.after, a.previous, a.hash,
    a.event, e.event, e.marks
FROM audit AS a LEFT JOIN events AS e ON e.sequence = a.event WHERE a.sequence > ? ORDER BY a.sequence
"""
_UNAUDITED = """
SELECT sequence, decision, kind FROM events WHERE sequence NOT IN (SELECT event FROM audit WHERE event IS NOT NULL)
"""
_HASH = "SELECT hash FROM audit WHERE sequence = ?"


def head(connection: sqlite3.Connection) -> Head:
    """The end of the chain in the table."""
    row = connection.execute(_HEAD).fetchone()
    return GENESIS if row is None else Head(row[0], row[1])


def append_act(connection: sqlite3.Connection, act: Act, time: str, event: int | None = None) -> AuditRecord:
    """Link `act` to the chain. `event` is the sequence number of the event that it is of, which holds its payloads."""
    record = link(head(connection), act, time)
    insert(connection, record, event)
    return record


def insert(connection: sqlite3.Connection, record: AuditRecord, event: int | None) -> None:
    """Add a record that is linked already."""
    act = record.act
    payloads = (None, None) if event is not None else (_json(act.before), _json(act.after))
    connection.execute(
        _ADD,
        (
            record.sequence,
            record.time,
            as_ascii(act.actor),
            act.face,
            act.action,
            as_ascii(act.subject),
            event,
            *payloads,
            record.previous,
            record.hash,
        ),
    )


def read(connection: sqlite3.Connection, after: int = 0) -> Iterator[AuditRecord | Unreadable]:
    """The records beyond sequence number `after`; a row whose payloads cannot be read is told as such."""
    for row in connection.execute(_SINCE, (after,)):
        sequence, time, actor, face, action, subject, before, after_, previous, hash_, number, event, marks = row
        payloads = _payloads(before, after_) if number is None else _event_payloads(event, marks)
        if isinstance(payloads, Unreadable):
            yield payloads
            continue
        try:
            act = Act(from_ascii(actor), face, action, from_ascii(subject), *payloads)
        except ValueError:
            yield Unreadable("its actor or subject was not written by this program")
            continue
        yield AuditRecord(sequence, time, act, previous, hash_)


def hash_at(connection: sqlite3.Connection, sequence: int) -> str | None:
    row = connection.execute(_HASH, (sequence,)).fetchone()
    return None if row is None else str(row[0])


def unaudited_events(connection: sqlite3.Connection) -> list[tuple[int, str | None, str]]:
    """Events (sequence, decision, kind) that no audit record is of: written by something else than this program."""
    return [(row[0], row[1], row[2]) for row in connection.execute(_UNAUDITED)]


def _payloads(before: str | None, after: str | None) -> tuple[Payload | None, Payload | None] | Unreadable:
    try:
        values = [None if text is None else json.loads(text) for text in (before, after)]
    except ValueError:
        return Unreadable("a payload is not JSON")
    if not all(value is None or isinstance(value, dict) for value in values):
        return Unreadable("a payload is not an object")
    return values[0], values[1]


def _event_payloads(event: str | None, marks: str | None) -> tuple[Payload, Payload] | Unreadable:
    try:
        after = json.loads(event or "null")
        before = after.pop("before")
        if marks is None:
            return before, after
        marked_before, marked_after = payloads_from_json(marks)
    except (ValueError, AttributeError, KeyError, TypeError):
        return Unreadable("its event cannot be read")
    if reveal(marked_before) != before or reveal(marked_after) != after:
        return Unreadable("its event differs from what its redaction left")
    return marked_before, marked_after


def _json(payload: Payload | None) -> str | None:
    if payload is None:
        return None
    return json.dumps(payload, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
