"""Events of another clone beside ours: what is new, what both sides changed, and what cannot be taken in.

Guarantees: pure; events are known by their ids, so that merging twice changes nothing and neither side loses one.
Where both sides changed the same field, the later change stands on both sides, and it is said. Who says that a decision
no longer holds, not knowing of a confirmation beside it, is heard: it stays invalidated until somebody reinstates it.
An entry that cannot be taken in says why and leaves the others alone.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nm_lsp.base.errors import InvalidInput, NmError
from nm_lsp.decisions.events import Event, EventKind, canonical
from nm_lsp.decisions.fold import (
    DecisionRecord,
    Standing,
    apply,
    dependency_problems,
    fold,
    refuse_superseding_cycle,
)
from nm_lsp.decisions.model import Confirmation, DecisionId, Plain
from nm_lsp.decisions.validation import (
    MAX_AUTHOR,
    MAX_REASON,
    MAX_WORD,
    checked_fields,
    checked_line,
    checked_prose,
)
from nm_lsp.engine.decisions.markdown_format import Block

MAX_EVENT: Final = 4_000_000
"""Bytes of one event; a confirmation of many files is the largest."""
MAX_SYMBOL_TEXT: Final = 10_000_000
_LOST: Final = frozenset({EventKind.INVALIDATED, EventKind.SUPERSEDED})

MakeEvent = Callable[..., Event]
"""(kind, decision, before=…, after=…, reason=…) → an event of ours."""


@dataclass(slots=True)
class Merge:
    """`events` are to be appended in this order, `redactions` are to be carried out after it."""

    events: list[Event] = field(default_factory=list)
    redactions: list[Event] = field(default_factory=list)
    imported: list[DecisionId] = field(default_factory=list)
    merged: list[DecisionId] = field(default_factory=list)
    unchanged: int = 0
    problems: list[str] = field(default_factory=list)


def merge(
    found: Iterable[tuple[str, Block]],
    records: Mapping[DecisionId, DecisionRecord],
    history: Mapping[DecisionId, Sequence[Event]],
    make: MakeEvent,
) -> Merge:
    """What taking in `found` (name of the source, events) adds to the decisions that are here."""
    result = Merge()
    owners = {event.id: identity for identity, events in history.items() for event in events}
    after: dict[DecisionId, DecisionRecord] = {}
    for name, events in _by_decision(found, result.problems):
        identity = events[0].decision
        assert identity is not None
        try:
            if identity in after:
                raise InvalidInput("source", f"{identity} stands here twice; the first was taken.")
            for event in events:
                check(event)
                if owners.setdefault(event.id, identity) != identity:
                    raise InvalidInput("event.id", "belongs to another decision.")
            record = _merge_one(events, records.get(identity), list(history.get(identity, ())), make, result)
        except NmError as error:
            result.problems.append(f"{name}: {error.message}")
            continue
        if record is not None:
            after[identity] = record
    result.problems += cycles({**records, **after}, after)
    return result


def cycles(records: Mapping[DecisionId, DecisionRecord], touched: Iterable[DecisionId]) -> list[str]:
    """What is wrong with the dependencies and replacements of `touched`; harmless, but somebody should know."""
    chosen = {i: records[i] for i in touched}
    problems = dependency_problems(records) if any(r.decision.depends_on for r in chosen.values()) else {}
    found = [f"{identity} {problems[identity]}" for identity in chosen if identity in problems]
    for identity, record in chosen.items():
        if record.superseded_by is not None:
            try:
                refuse_superseding_cycle(records, identity, record.superseded_by)
            except NmError as error:
                found.append(f"{identity}: {error.message}")
    return found


def _by_decision(found: Iterable[tuple[str, Block]], problems: list[str]) -> list[tuple[str, list[Event]]]:
    """The usable blocks; two files of one decision, as a merge of branches may leave them, become one."""
    groups: dict[DecisionId | None, tuple[str, dict[str, Event]]] = {}
    for name, block in found:
        if block.problem is not None:
            problems.append(f"{name}: {block.problem}")
            continue
        if block.is_conflicted:
            problems.append(f"{name}: holds conflict markers; the events of both sides were taken, export it anew")
        identity = block.events[0].decision
        if identity is None:
            problems.append(f"{name}: holds events that belong to no decision")
            continue
        events = groups.setdefault(identity, (name, {}))[1]
        others = [event for event in block.events if events.setdefault(event.id, event) != event]
        problems += [f"{name}: the event {e.id[:40]} is another in a second file; the first was taken" for e in others]
    return [(name, list(events.values())) for name, events in groups.values()]


def _merge_one(
    theirs: list[Event],
    record: DecisionRecord | None,
    ours: list[Event],
    make: MakeEvent,
    result: Merge,
) -> DecisionRecord | None:
    """The decision after taking in `theirs`; None where nothing is new. Raises `InvalidInput` or `Refused`."""
    identity = theirs[0].decision
    assert identity is not None
    known = {event.id: event for event in ours}
    new = [event for event in theirs if event.id not in known]
    if record is not None:
        if theirs[0].id not in known:
            raise InvalidInput("source", f"{identity} is another decision here, recorded by another event.")
        _refuse_altered(theirs, known)
    if not new:
        result.unchanged += 1
        return None
    if record is None:
        result.events += new
        result.imported.append(identity)
        return fold(new, merged=True)
    redactions = [event for event in new if event.kind is EventKind.REDACTED]
    added = [event for event in new if event.kind is not EventKind.REDACTED]
    after = record
    for event in added:
        after = apply(after, event, merged=True)
    ids = {event.id for event in theirs}
    settled = _settle(record, after, [event for event in ours if event.id not in ids], added, make, result.problems)
    for event in settled:
        after = apply(after, event, merged=True)
    result.events += [*added, *settled]
    result.redactions += redactions
    result.merged.append(identity)
    return after


def _refuse_altered(theirs: Iterable[Event], known: Mapping[str, Event]) -> None:
    """An event never changes but by a redaction, on either side."""
    redacted = any(event.kind is EventKind.REDACTED for event in (*theirs, *known.values()))
    for event in theirs:
        mine = known.get(event.id)
        if mine is not None and mine != event and not redacted:
            raise InvalidInput("event", f"{event.id[:40]} is not as it was written here; nothing of it was taken.")


def _settle(
    before: DecisionRecord,
    after: DecisionRecord,
    ours: Sequence[Event],
    theirs: Sequence[Event],
    make: MakeEvent,
    problems: list[str],
) -> list[Event]:
    """What both sides changed since they parted: said, and settled the same way on both."""
    settled = []
    our_last, their_last = _last_changes(ours), _last_changes(theirs)
    for name in our_last.keys() & their_last.keys():
        mine, other = our_last[name], their_last[name]
        if mine.after[name] == other.after[name]:
            continue
        problems.append(f"{after.id}: both sides changed {name}; the later change stands, the other is in the history")
        if (mine.time, mine.id) > (other.time, other.id):
            values = {name: mine.after[name]}
            if name == "anchors":
                values["confirmation"] = mine.after["confirmation"]
            reason = f"Both sides changed {name}; the later change stands."
            old = {name: other.after[name]}
            settled.append(make(EventKind.AMENDED, after.id, before=old, after=values, reason=reason))
    lost = [event for event in ours if event.kind in _LOST]
    if before.standing is Standing.INVALIDATED and after.standing is Standing.ACTIVE and lost:
        problems.append(f"{after.id}: invalidated here and reinstated there; it stays invalidated until reinstated")
        replacement: dict[str, Plain] = {"supersededBy": before.superseded_by} if before.superseded_by else {}
        reason = before.invalidation.reason if before.invalidation is not None else "invalidated on one side"
        settled.append(make(EventKind.INVALIDATED, after.id, after=replacement, reason=reason))
    elif before.standing is Standing.ACTIVE and after.standing is Standing.INVALIDATED and ours:
        problems.append(f"{after.id}: invalidated there while it was changed here; it is invalidated")
    elif lost and any(event.kind in _LOST for event in theirs):
        problems.append(f"{after.id}: invalidated on both sides; the reason given here stands first")
    return settled


def _last_changes(events: Iterable[Event]) -> dict[str, Event]:
    """By field the last amendment of it."""
    return {
        name: event
        for event in events
        if event.kind is EventKind.AMENDED
        for name in event.after
        if name != "confirmation"
    }


# -- what may come in ----------------------------------------------------------------------------------------------


def check(event: Event) -> None:
    """Raises `InvalidInput` for an event whose texts no request could have brought in."""
    if len(canonical(event)) > MAX_EVENT:
        raise InvalidInput("event", f"is larger than {MAX_EVENT:,} bytes.")
    checked_line(event.id, "event.id", MAX_WORD)
    checked_line(event.actor, "event.actor", 2 * MAX_AUTHOR)
    for value, name in ((event.client, "event.client"), (event.branch, "event.branch")):
        # Empty is what versions before this one wrote for an editor without a name.
        if value:
            checked_line(value, name, MAX_AUTHOR)
    if event.reason is not None:
        checked_prose(event.reason, "reason", MAX_REASON)
    if event.kind in {EventKind.RECORDED, EventKind.AMENDED}:
        for values in (event.before, event.after):
            checked_fields({n: v for n, v in values.items() if n != "confirmation" and v is not None})
    confirmation = event.confirmation()
    if confirmation is not None:
        _check_texts(confirmation)


def _check_texts(confirmation: Confirmation) -> None:
    """The kept texts unpack, and to no more than a file that would be read."""
    for sighting in confirmation.seen:
        if sighting.packed_text is None:
            continue
        unpacking = zlib.decompressobj()
        try:
            packed = base64.b64decode(sighting.packed_text, validate=True)
            unpacking.decompress(packed, MAX_SYMBOL_TEXT)
        except (binascii.Error, ValueError, zlib.error):
            raise InvalidInput("confirmation.seen.text", "the kept text of the symbol is damaged.") from None
        if not unpacking.eof:
            raise InvalidInput("confirmation.seen.text", f"unpacks to more than {MAX_SYMBOL_TEXT:,} bytes.")
