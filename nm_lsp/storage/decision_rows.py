"""Events and the view of decisions as rows; every function works inside the caller's transaction.

Guarantees: `append_event` writes the event and the folded record together; what was read equals what was written. A
record that a disk has spoilt is folded again from its events; an event that is spoilt raises `StoreProblem` (damaged).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from nm_lsp.audit.acts import act_of, redacted_act
from nm_lsp.audit.chain import Act, Payload, redact_as
from nm_lsp.base.errors import InvalidInput, Refused, StoreProblem
from nm_lsp.decisions.events import Event, canonical, parse, redacted
from nm_lsp.decisions.fold import (
    DecisionRecord,
    apply,
    fold,
    record_from_plain,
    record_to_plain,
)
from nm_lsp.decisions.model import Anchor, AnchorKind, DecisionId, Plain

_HEAD = "SELECT coalesce(max(sequence), 0) FROM events"
_KNOWN = "SELECT 1 FROM events WHERE id = ?"
_ADD_EVENT = "INSERT INTO events (sequence, id, decision, kind, event, marks) VALUES (?, ?, ?, ?, ?, ?)"
_EVENTS_SINCE = "SELECT sequence, event FROM events WHERE sequence > ? ORDER BY sequence"
_EVENTS_OF = "SELECT sequence, event, marks FROM events WHERE decision = ? ORDER BY sequence"
_REWRITES = "SELECT event FROM events WHERE decision IS NULL ORDER BY sequence"
_RECORD = "SELECT record FROM decisions WHERE id = ?"
_RECORDS = "SELECT id, record FROM decisions ORDER BY number"
_PUT_RECORD = """
INSERT INTO decisions (id, revision, title, rationale, tags, alternatives, record) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, title = excluded.title, rationale = excluded.rationale,
    tags = excluded.tags, alternatives = excluded.alternatives, record = excluded.record
"""
_FORGET_ANCHORS = "DELETE FROM anchors WHERE decision = ?"
_ADD_ANCHOR = "INSERT OR IGNORE INTO anchors (decision, path, kind, symbol) VALUES (?, ?, ?, ?)"
_ANCHORS = "SELECT decision, kind, path, symbol FROM anchors ORDER BY decision, path, kind, symbol"
_REDACT_EVENT = "UPDATE events SET event = ?, marks = ? WHERE sequence = ?"
_DROP_EMBEDDING = "DELETE FROM embeddings WHERE decision = ?"


def revision(connection: sqlite3.Connection) -> int:
    """The sequence number of the newest event; 0 for none."""
    return int(connection.execute(_HEAD).fetchone()[0])


def append_event(
    connection: sqlite3.Connection, event: Event, marks: Act | None = None, *, merged: bool = False
) -> tuple[int, DecisionRecord | None]:
    """Add the event and fold it into the view. Returns its sequence number and the record as it now reads.

    `marks` is the event's act with marks, for an event that was redacted before it came here. Raises `Refused`
    where the event cannot follow those before it; `merged` as in `fold.apply`.
    """
    if is_known(connection, event):
        raise Refused(f"the event {event.id} is recorded already.")
    record: DecisionRecord | None = None
    if event.decision is not None:
        record = apply(read_record(connection, event.decision), event, merged=merged)
    sequence = revision(connection) + 1
    marks_text = None if marks is None else _marks_json(marks)
    connection.execute(
        _ADD_EVENT,
        (sequence, event.id, event.decision, event.kind.value, canonical(event).decode("ascii"), marks_text),
    )
    if record is not None:
        write_record(connection, record)
    return sequence, record


def is_known(connection: sqlite3.Connection, event: Event) -> bool:
    """Whether an event of that id was appended."""
    return connection.execute(_KNOWN, (event.id,)).fetchone() is not None


def read_events(connection: sqlite3.Connection, after: int = 0) -> list[tuple[int, Event]]:
    """The events beyond sequence number `after` with their numbers, in order."""
    return [(sequence, _event(text)) for sequence, text in connection.execute(_EVENTS_SINCE, (after,))]


def read_rewrites(connection: sqlite3.Connection) -> list[Event]:
    """The events that belong to no decision: lists of rewritten commits."""
    return [_event(text) for (text,) in connection.execute(_REWRITES)]


def read_history(connection: sqlite3.Connection, decision: DecisionId) -> list[tuple[int, Event]]:
    return [(sequence, _event(text)) for sequence, text, _ in connection.execute(_EVENTS_OF, (decision,))]


def _event(text: str) -> Event:
    try:
        return parse(text)
    except InvalidInput as error:
        raise _spoilt(error) from error


def _spoilt(error: Exception) -> StoreProblem:
    return StoreProblem(
        f"the store holds something that is no event of a decision: {error}",
        reason="damaged",
        hint="In its folder, `mv memory.db memory.db.damaged && nm-lsp decisions recover` brings back what is sound.",
    )


def read_record(connection: sqlite3.Connection, decision: DecisionId) -> DecisionRecord | None:
    row = connection.execute(_RECORD, (decision,)).fetchone()
    return None if row is None else _record(connection, decision, row[0])


def read_records(connection: sqlite3.Connection, *, as_stored: bool = False) -> Iterator[DecisionRecord]:
    """Every record, in the order of recording. With `as_stored` a spoilt one raises `InvalidInput`."""
    for identity, text in connection.execute(_RECORDS):
        yield record_from_json(text) if as_stored else _record(connection, DecisionId(identity), text)


def _record(connection: sqlite3.Connection, decision: DecisionId, text: str) -> DecisionRecord:
    try:
        return record_from_json(text)
    except InvalidInput:
        events = [event for _, event in read_history(connection, decision)]
    try:
        return fold(events, merged=True)
    except (InvalidInput, Refused) as error:
        raise _spoilt(error) from error


def write_record(connection: sqlite3.Connection, record: DecisionRecord) -> None:
    decision = record.decision
    texts = (decision.title, decision.rationale, "\n".join(decision.tags), "\n".join(decision.alternatives))
    # A text that is no UTF-8 (a lone surrogate out of an import) can stand only in the ASCII of `record`.
    columns = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    connection.execute(_PUT_RECORD, (record.id, record.revision, *columns, record_to_json(record)))
    connection.execute(_FORGET_ANCHORS, (record.id,))
    # Also the names in confirmations: a restore names the anchors as they were called then.
    named = [*decision.anchors, *(sighting.anchor for given in record.confirmations for sighting in given.seen)]
    rows = [(record.id, as_ascii(a.path), a.kind.value, a.symbol or "") for a in named]
    connection.executemany(_ADD_ANCHOR, rows)


def read_anchors(connection: sqlite3.Connection) -> list[tuple[DecisionId, Anchor]]:
    """Every anchor of every decision by each name it was given, also in confirmations, without reading decisions."""
    return [
        (DecisionId(decision), Anchor(AnchorKind(kind), from_ascii(path), symbol or None))
        for decision, kind, path, symbol in connection.execute(_ANCHORS)
    ]


def as_ascii(text: str) -> str:
    """A path, name or subject as the tables have it: other characters and the backslash escaped as in JSON."""
    # A path or a configured name that is no UTF-8 has lone surrogates, which SQLite does not take.
    return json.dumps(text)[1:-1]


def from_ascii(text: str) -> str:
    """The inverse of `as_ascii`. Raises `ValueError` for some texts that it never makes."""
    return cast("str", json.loads(f'"{text}"')) if "\\" in text else text


@dataclass(frozen=True, slots=True)
class RedactedRow:
    """An event of which something was taken out: its number, and its act with marks."""

    sequence: int
    act: Act


def redact_rows(connection: sqlite3.Connection, decision: DecisionId, field: str, *, before: int) -> list[RedactedRow]:
    """Take `field` out of the decision's events with sequence numbers below `before` (that of the redaction itself),
    its view and its embeddings. Repeating it changes nothing.

    Returns the events that held something. The full-text index is the caller's.
    """
    changed: list[RedactedRow] = []
    events: list[Event] = []
    for sequence, text, marks in connection.execute(_EVENTS_OF, (decision,)).fetchall():
        old = parse(text)
        new = redacted(old, field) if sequence < before else old
        events.append(new)
        if new == old:
            continue
        act = redacted_act(old, new)
        if marks is not None:
            marked_before, marked_after = payloads_from_json(marks)
            assert act.before is not None
            assert act.after is not None
            plain = act_of(new)
            act = Act(
                act.actor,
                act.face,
                act.action,
                act.subject,
                redact_as(marked_before, cast("Payload", plain.before)),
                redact_as(marked_after, cast("Payload", plain.after)),
            )
        connection.execute(_REDACT_EVENT, (canonical(new).decode("ascii"), _marks_json(act), sequence))
        changed.append(RedactedRow(sequence, act))
    if changed:
        write_record(connection, fold(events, merged=True))
        connection.execute(_DROP_EMBEDDING, (decision,))
    return changed


def _marks_json(act: Act) -> str:
    return json.dumps([act.before, act.after], separators=(",", ":"), sort_keys=True)


def payloads_from_json(marks: str) -> tuple[Payload, Payload]:
    """`before` and `after` with their marks, as `events.marks` holds them."""
    before, after = json.loads(marks)
    return before, after


def record_to_json(record: DecisionRecord) -> str:
    """A record as one line of ASCII JSON."""
    return json.dumps(record_to_plain(record), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def record_from_json(text: str) -> DecisionRecord:
    """The record in `text`. Raises `InvalidInput` if it is not one of ours."""
    try:
        plain: Plain = json.loads(text)
    except ValueError as error:
        raise InvalidInput("record", f"is not a decision record: {error!r}") from error
    return record_from_plain(plain)
