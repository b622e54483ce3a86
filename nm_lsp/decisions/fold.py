"""The fold: from the events of a decision to what it says now, and from all events to the whole memory.

Guarantees: pure and deterministic; `revision` is the number of events of the decision; folding a prefix of the events
gives what was believed then. The view holds only what people decided: nothing derived from a HEAD.

Must not know: the repository, storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import assert_never, cast

from nm_lsp.base.errors import InvalidInput, Refused
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.model import (
    Anchor,
    Confirmation,
    Decision,
    DecisionId,
    Plain,
    plain_list,
    plain_table,
    plain_text,
)


class Standing(Enum):
    """What people decided about a decision. STALE is not among them: it is derived for a HEAD."""

    ACTIVE = "active"
    INVALIDATED = "invalidated"


@dataclass(frozen=True, slots=True)
class Invalidation:
    reason: str
    time: str
    actor: str
    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class FindingKey:
    """What a person acknowledged: one commit's change at one path."""

    commit: str
    path: str


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision as the fold of its events. `confirmations` are in the order in which they were given."""

    decision: Decision
    revision: int
    standing: Standing
    confirmations: tuple[Confirmation, ...]
    recorded_at: str
    recorded_by: str
    changed_at: str
    confirmed_at: str
    recorded_commit: str | None = None
    invalidation: Invalidation | None = None
    superseded_by: DecisionId | None = None
    acknowledged: tuple[FindingKey, ...] = ()

    @property
    def id(self) -> DecisionId:
        return self.decision.id


@dataclass(slots=True)
class Memory:
    """The fold of all events. `rewrites` holds the (old, new) commit pairs of every `rewritten` event, in order."""

    records: dict[DecisionId, DecisionRecord] = field(default_factory=dict)
    rewrites: list[tuple[str, str]] = field(default_factory=list)

    def add(self, event: Event) -> None:
        if event.decision is None:
            self.rewrites.extend(event.pairs())
        else:
            self.records[event.decision] = apply(self.records.get(event.decision), event, merged=True)


def fold_all(events: Iterable[Event]) -> Memory:
    """The memory that `events`, in the order of their appending, make."""
    memory = Memory()
    for event in events:
        memory.add(event)
    return memory


def fold(events: Iterable[Event], *, merged: bool = False) -> DecisionRecord:
    """The record that the events of one decision make; `merged` as in `apply`.

    Raises `Refused` if an event cannot follow those before it.
    """
    record: DecisionRecord | None = None
    for event in events:
        record = apply(record, event, merged=merged)
    if record is None:
        raise InvalidInput("events", "a decision has at least one event.")
    return record


def apply(record: DecisionRecord | None, event: Event, *, merged: bool = False) -> DecisionRecord:
    """`record` after `event`; None before its first event.

    Raises `Refused` where the event cannot follow, with what to do instead. A writer calls this before it appends.
    `merged` takes in what was written beside the events before it, in another clone: a decision that was invalidated
    here stays so, whatever confirms it there, until it is reinstated; what was invalidated twice keeps its first
    reason.
    """
    if record is None:
        return _recorded(event)
    if event.decision != record.id:
        raise InvalidInput("event.decision", f"{event.decision} is not the decision {record.id}.")
    after = replace(record, revision=record.revision + 1, changed_at=event.time)
    match event.kind:
        case EventKind.RECORDED:
            raise Refused(f"{record.id} is recorded already.", hint="Amend it instead.")
        case EventKind.AMENDED:
            return _amended(record, after, event, merged)
        case EventKind.RESTORED:
            if record.standing is Standing.INVALIDATED and not merged:
                raise Refused(f"{record.id} is invalidated.", hint="Reinstate it with a reason instead.")
            return _confirmed(after, event)
        case EventKind.INVALIDATED | EventKind.SUPERSEDED:
            return _invalidated(record, after, event, merged)
        case EventKind.REINSTATED:
            if record.standing is not Standing.INVALIDATED and not merged:
                raise Refused(f"{record.id} is not invalidated, so there is nothing to reinstate.")
            return replace(_confirmed(after, event), standing=Standing.ACTIVE, invalidation=None, superseded_by=None)
        case EventKind.ACKNOWLEDGED:
            finding = plain_table(event.after["finding"], "finding", {"commit", "path"})
            key = FindingKey(
                plain_text(finding.get("commit"), "finding.commit"), plain_text(finding.get("path"), "finding.path")
            )
            return replace(after, acknowledged=(*(k for k in record.acknowledged if k != key), key))
        case EventKind.REDACTED:
            return after
        case EventKind.REWRITTEN:
            raise InvalidInput("event.kind", "a list of rewritten commits belongs to no decision.")
        case _:
            assert_never(event.kind)


def live_end(records: Mapping[DecisionId, DecisionRecord], start: DecisionId) -> DecisionId:
    """Where the chain of `supersededBy` that begins at `start` ends: the decision that replaces it in the end.

    A cycle (possible by import only) ends where it would repeat; a missing decision ends at its id.
    """
    seen = {start}
    here = start
    while (record := records.get(here)) is not None and record.superseded_by is not None:
        if record.superseded_by in seen:
            return here
        here = record.superseded_by
        seen.add(here)
    return here


def refuse_superseding_cycle(
    records: Mapping[DecisionId, DecisionRecord], decision: DecisionId, replacement: DecisionId
) -> None:
    """Raise `Refused` if `decision`, replaced by `replacement`, would in the end be replaced by itself."""
    seen: set[DecisionId] = set()
    here: DecisionId | None = replacement
    while here is not None and here not in seen:
        if here == decision:
            raise Refused(
                f"{replacement} is itself replaced by {decision}.", hint="Reinstate one of them first, or name another."
            )
        seen.add(here)
        record = records.get(here)
        here = record.superseded_by if record else None


def refuse_dependency_cycle(
    records: Mapping[DecisionId, DecisionRecord], decision: DecisionId, depends_on: Iterable[DecisionId]
) -> None:
    """Raise `Refused` if `decision` would depend on itself through `depends_on`."""
    origin: dict[DecisionId, DecisionId] = {}
    waiting = list(dict.fromkeys(depends_on))
    for first in waiting:
        origin.setdefault(first, decision)
    while waiting:
        here = waiting.pop()
        if here == decision:
            chain = [here]
            while (before := origin[chain[-1]]) != decision:
                chain.append(before)
            text = " → ".join([decision, *reversed(chain)])
            raise Refused(f"dependsOn would form a cycle: {text}.", hint="Leave one of these dependencies out.")
        record = records.get(here)
        for after in record.decision.depends_on if record else ():
            if after not in origin:
                origin[after] = here
                waiting.append(after)


def dependency_problems(records: Mapping[DecisionId, DecisionRecord]) -> dict[DecisionId, str]:
    """What is wrong with the `dependsOn` of decisions: a cycle, or one that is not here. All harmless."""
    problems: dict[DecisionId, str] = {}
    for identity, record in records.items():
        missing = [wanted for wanted in record.decision.depends_on if wanted not in records]
        if missing:
            problems[identity] = f"depends on {', '.join(missing)}, which is not in this store"
        if record.decision.depends_on:
            try:
                refuse_dependency_cycle(records, identity, record.decision.depends_on)
            except Refused as refusal:
                problems[identity] = refusal.message
    return problems


def decision_to_plain(decision: Decision) -> dict[str, Plain]:
    """The fields of a decision as an event holds them, without the id; fields that are not set are left out."""
    fields: dict[str, Plain] = {
        "title": decision.title,
        "rationale": decision.rationale,
        "anchors": [anchor.to_plain() for anchor in decision.anchors],
        "type": decision.type,
        "confidence": decision.confidence,
        "author": decision.author,
        "tags": list(decision.tags),
        "alternatives": list(decision.alternatives),
        "dependsOn": list(decision.depends_on),
        "evidence": list(decision.evidence),
    }
    return {name: value for name, value in fields.items() if value is not None and value != []} | {
        "anchors": fields["anchors"]
    }


def with_fields(decision: Decision, fields: Mapping[str, Plain]) -> Decision:
    """`decision` with `fields`, as an event holds them. Raises `InvalidInput` for another shape."""
    changes: dict[str, object] = {}
    for name, value in fields.items():
        match name:
            case "title" | "rationale":
                changes[name] = plain_text(value, name)
            case "type" | "author":
                changes[name] = None if value is None else plain_text(value, name)
            case "confidence":
                changes[name] = value if isinstance(value, int | float) and not isinstance(value, bool) else None
            case "anchors":
                changes[name] = tuple(Anchor.from_plain(row, name) for row in plain_list(value, name))
            case "tags" | "alternatives" | "evidence":
                changes[name] = tuple(plain_text(row, name) for row in plain_list(value, name))
            case "dependsOn":
                changes["depends_on"] = tuple(DecisionId(plain_text(row, name)) for row in plain_list(value, name))
            case "confirmation":
                continue
            case _:
                raise InvalidInput(name, "a decision has no such field.")
    return replace(decision, **changes)  # type: ignore[arg-type]


def record_summary(record: DecisionRecord) -> dict[str, Plain]:
    """What a caller who saw an older revision is shown: where the decision stands now, and its fields."""
    now: dict[str, Plain] = {"id": record.id, "revision": record.revision, "standing": record.standing.value}
    return now | decision_to_plain(record.decision)


def record_to_plain(record: DecisionRecord) -> dict[str, Plain]:
    """The record as JSON values, for a view table; `record_from_plain` is its inverse."""
    lost = record.invalidation
    return {
        "id": record.id,
        "revision": record.revision,
        "standing": record.standing.value,
        "fields": decision_to_plain(record.decision),
        "confirmations": [confirmation.to_plain() for confirmation in record.confirmations],
        "recordedAt": record.recorded_at,
        "recordedBy": record.recorded_by,
        "changedAt": record.changed_at,
        "confirmedAt": record.confirmed_at,
        "recordedCommit": record.recorded_commit,
        "invalidation": None if lost is None else [lost.reason, lost.time, lost.actor, lost.commit, lost.branch],
        "supersededBy": record.superseded_by,
        "acknowledged": [[key.commit, key.path] for key in record.acknowledged],
    }


def record_from_plain(value: Plain) -> DecisionRecord:
    """The inverse of `record_to_plain`. Raises `InvalidInput` for another shape."""
    try:
        table = cast("dict[str, Plain]", value)
        identity = DecisionId(cast("str", table["id"]))
        lost = cast("list[str] | None", table["invalidation"])
        superseded_by = cast("str | None", table["supersededBy"])
        return DecisionRecord(
            decision=with_fields(Decision(identity, "", "", ()), cast("dict[str, Plain]", table["fields"])),
            revision=cast("int", table["revision"]),
            standing=Standing(table["standing"]),
            confirmations=tuple(Confirmation.from_plain(c) for c in cast("list[Plain]", table["confirmations"])),
            recorded_at=cast("str", table["recordedAt"]),
            recorded_by=cast("str", table["recordedBy"]),
            changed_at=cast("str", table["changedAt"]),
            confirmed_at=cast("str", table["confirmedAt"]),
            recorded_commit=cast("str | None", table["recordedCommit"]),
            invalidation=None if lost is None else Invalidation(*lost),
            superseded_by=None if superseded_by is None else DecisionId(superseded_by),
            acknowledged=tuple(FindingKey(*key) for key in cast("list[list[str]]", table["acknowledged"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput("record", f"is not a decision record: {error!r}") from error


def _recorded(event: Event) -> DecisionRecord:
    if event.kind is not EventKind.RECORDED or event.decision is None:
        raise Refused(f"{event.decision} has not been recorded.", hint="`nm-lsp decisions list` shows all ids.")
    confirmation = event.confirmation()
    if confirmation is None:
        raise InvalidInput("confirmation", "is missing; a recording needs it.")
    return DecisionRecord(
        decision=with_fields(Decision(event.decision, "", "", ()), event.after),
        revision=1,
        standing=Standing.ACTIVE,
        confirmations=(confirmation,),
        recorded_at=event.time,
        recorded_by=event.actor,
        changed_at=event.time,
        confirmed_at=event.time,
        recorded_commit=confirmation.commit,
    )


def _amended(record: DecisionRecord, after: DecisionRecord, event: Event, merged: bool) -> DecisionRecord:
    decision = with_fields(record.decision, event.after)
    confirmation = event.confirmation()
    if confirmation is None:
        return replace(after, decision=decision)
    if record.standing is Standing.INVALIDATED and not merged:
        raise Refused(f"{record.id} is invalidated.", hint="Reinstate it before you change what it governs.")
    return replace(after, decision=decision, confirmations=(confirmation,), confirmed_at=event.time, acknowledged=())


def _confirmed(after: DecisionRecord, event: Event) -> DecisionRecord:
    confirmation = event.confirmation()
    if confirmation is None:
        raise InvalidInput("confirmation", f"is missing; an event of kind {event.kind.value} needs it.")
    return replace(after, confirmations=(*after.confirmations, confirmation), confirmed_at=event.time)


def _invalidated(record: DecisionRecord, after: DecisionRecord, event: Event, merged: bool) -> DecisionRecord:
    replacement = event.after.get("supersededBy")
    if record.standing is Standing.INVALIDATED and replacement is None and not merged:
        raise Refused(f"{record.id} is invalidated already.", hint="Its history says by whom and why.")
    superseded_by = record.superseded_by
    if replacement is not None:
        superseded_by = DecisionId(plain_text(replacement, "supersededBy"))
        if superseded_by == record.id:
            raise Refused("A decision cannot replace itself.", hint="Name the decision that replaces it.")
    invalidation = record.invalidation
    if invalidation is None:
        reason = event.reason or f"superseded by {superseded_by}"
        invalidation = Invalidation(reason, event.time, event.actor, event.commit, event.branch)
    return replace(after, standing=Standing.INVALIDATED, invalidation=invalidation, superseded_by=superseded_by)
