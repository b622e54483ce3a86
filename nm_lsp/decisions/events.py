"""Events: the immutable records of which a decision's history is made, and their canonical form.

| kind | before, after | also needs |
| --- | --- | --- |
| recorded | after: all fields, `confirmation` | |
| amended | the changed fields; `confirmation` exactly if `anchors` is among them | |
| restored | after: `confirmation` | |
| invalidated | after: `supersededBy`, if known | reason |
| reinstated | after: `confirmation` | reason |
| superseded | after: `supersededBy` | |
| acknowledged | after: `finding` {commit, path} | |
| redacted | after: `field` | reason |
| rewritten | after: `pairs` [[old commit, new commit], …] | belongs to no decision |

Guarantees: `Event.from_plain(event.to_plain())` equals the event; `canonical` gives the same bytes for equal events, in
ASCII, so that a path that is no UTF-8 survives every store. An event from a newer version is refused, not guessed at.

Must not know: storage, the audit chain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from nm_lsp.base.errors import InvalidInput
from nm_lsp.decisions.model import (
    Confirmation,
    DecisionId,
    Plain,
    is_id,
    plain_list,
    plain_table,
    plain_text,
)

SCHEMA_VERSION: Final = 1
REDACTED: Final = "[redacted]"
FACES: Final = ("lsp", "cli", "hook", "mcp")
# `seen` is the text of symbols kept in confirmations.
REDACTABLE: Final = ("title", "rationale", "type", "author", "tags", "alternatives", "evidence", "reason", "seen")

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


class EventKind(Enum):
    RECORDED = "recorded"
    AMENDED = "amended"
    RESTORED = "restored"
    INVALIDATED = "invalidated"
    REINSTATED = "reinstated"
    SUPERSEDED = "superseded"
    ACKNOWLEDGED = "acknowledged"
    REDACTED = "redacted"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class Event:
    """One change. `time` is UTC with microseconds (`2026-01-31T12:00:00.000000Z`); `commit` and `branch` were HEAD's.

    The order of events is the order in which they were appended, never that of their times.
    """

    id: str
    decision: DecisionId | None
    kind: EventKind
    time: str
    actor: str
    face: str
    client: str | None = None
    commit: str | None = None
    branch: str | None = None
    reason: str | None = None
    before: Mapping[str, Plain] = field(default_factory=dict)
    after: Mapping[str, Plain] = field(default_factory=dict)

    def confirmation(self) -> Confirmation | None:
        """The confirmation this event makes, if it makes one."""
        value = self.after.get("confirmation")
        return None if value is None else Confirmation.from_plain(value)

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The (old commit, new commit) pairs of a `rewritten` event."""
        pairs = []
        for row in plain_list(self.after.get("pairs", []), "pairs"):
            if not (isinstance(row, list) and len(row) == 2 and all(_is_commit(commit) for commit in row)):
                raise InvalidInput("pairs", "each entry must be [old commit, new commit] with full commit ids.")
            pairs.append((str(row[0]), str(row[1])))
        return tuple(pairs)

    def to_plain(self) -> dict[str, Plain]:
        return {
            "v": SCHEMA_VERSION,
            "id": self.id,
            "decision": self.decision,
            "kind": self.kind.value,
            "time": self.time,
            "actor": self.actor,
            "face": self.face,
            "client": self.client,
            "commit": self.commit,
            "branch": self.branch,
            "reason": self.reason,
            "before": dict(self.before),
            "after": dict(self.after),
        }

    @classmethod
    def from_plain(cls, value: Plain) -> Event:
        """The event in `value`. Raises `InvalidInput` for another shape and for a newer schema version."""
        table = plain_table(value, "event", _FIELDS)
        version = table.get("v")
        if version != SCHEMA_VERSION:
            raise InvalidInput(
                "event.v", f"this event has schema version {version}; this nm-lsp reads {SCHEMA_VERSION}."
            )
        kind_text = plain_text(table.get("kind"), "event.kind")
        try:
            kind = EventKind(kind_text)
        except ValueError:
            raise InvalidInput("event.kind", f"there is no event kind {kind_text[:40]!r}.") from None
        decision = table.get("decision")
        before, after = table.get("before"), table.get("after")
        if not isinstance(before, dict) or not isinstance(after, dict):
            raise InvalidInput("event", "before and after must be objects.")
        return checked_event(
            cls(
                id=plain_text(table.get("id"), "event.id"),
                decision=None if decision is None else DecisionId(plain_text(decision, "event.decision")),
                kind=kind,
                time=plain_text(table.get("time"), "event.time"),
                actor=plain_text(table.get("actor"), "event.actor"),
                face=plain_text(table.get("face"), "event.face"),
                client=_optional_text(table, "client"),
                commit=_optional_text(table, "commit"),
                branch=_optional_text(table, "branch"),
                reason=_optional_text(table, "reason"),
                before=before,
                after=after,
            )
        )


def checked_event(event: Event) -> Event:
    """`event` itself if it has what its kind needs and nothing else, else `InvalidInput`.

    The values of decision fields are checked by `validation.checked_fields`, before the event is made.
    """
    if not event.id:
        raise InvalidInput("event.id", "must not be empty.")
    if not _TIME.match(event.time):
        raise InvalidInput("event.time", f"{event.time[:40]!r} is not like 2026-01-31T12:00:00.000000Z.")
    if event.face not in FACES:
        raise InvalidInput("event.face", f"{event.face[:40]!r} is not one of {', '.join(FACES)}.")
    if (event.decision is None) != (event.kind is EventKind.REWRITTEN):
        raise InvalidInput("event.decision", f"an event of kind {event.kind.value} has the wrong owner.")
    if event.decision is not None and not is_id(event.decision):
        raise InvalidInput("event.decision", f"{event.decision[:40]!r} is not a decision id.")
    if event.commit is not None and not _is_commit(event.commit):
        raise InvalidInput("event.commit", "must be a full commit id or null.")
    required, optional, needs_reason = _SHAPES[event.kind]
    for name in required:
        if name not in event.after:
            raise InvalidInput(name, f"is missing; an event of kind {event.kind.value} needs it.")
    for name in event.after:
        if name not in required and name not in optional:
            raise InvalidInput(name, f"does not belong to an event of kind {event.kind.value}.")
    if needs_reason and not (event.reason and event.reason.strip()):
        raise InvalidInput("reason", "must not be empty.", hint="Say in a few words why.")
    if event.kind is EventKind.AMENDED:
        if not event.after:
            raise InvalidInput("set", "names no field to change.")
        if ("anchors" in event.after) != ("confirmation" in event.after):
            raise InvalidInput("confirmation", "belongs to an amendment exactly if it changes the anchors.")
    return event


def canonical(event: Event) -> bytes:
    """The event as JSON in ASCII: keys sorted, no blanks, equal for equal events."""
    return json.dumps(event.to_plain(), sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def parse(text: bytes | str) -> Event:
    """The event in the JSON `text`. Raises `InvalidInput`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput("event", f"is not JSON: {error}.") from None
    return Event.from_plain(value)


def redacted(event: Event, name: str) -> Event:
    """`event` with every value of the field `name` replaced by a mark; the event itself if it holds none.

    `seen` takes the kept text of symbols out of the confirmation; such an anchor is then judged from the blob alone.
    """
    if name not in REDACTABLE:
        raise InvalidInput("field", f"{name[:40]!r} cannot be redacted.", hint=f"One of {', '.join(REDACTABLE)} can.")
    if name == "reason":
        return replace(event, reason=REDACTED) if event.reason is not None else event
    if name == "seen":
        confirmation = event.confirmation()
        if confirmation is None:
            return event
        blank = replace(confirmation, seen=tuple(replace(sighting, packed_text=None) for sighting in confirmation.seen))
        return replace(event, after={**event.after, "confirmation": blank.to_plain()})
    return replace(event, before=_masked(event.before, name), after=_masked(event.after, name))


def _masked(values: Mapping[str, Plain], name: str) -> Mapping[str, Plain]:
    value = values.get(name)
    if value is None or value == []:
        return values
    return {**values, name: [REDACTED] if isinstance(value, list) else REDACTED}


def _is_commit(value: Plain) -> bool:
    return isinstance(value, str) and _COMMIT.match(value) is not None


def _optional_text(table: Mapping[str, Plain], name: str) -> str | None:
    value = table.get(name)
    return None if value is None else plain_text(value, f"event.{name}")


_FIELDS: Final = {
    "v", "id", "decision", "kind", "time", "actor", "face", "client", "commit", "branch", "reason", "before", "after",
}  # fmt: skip
_TEXT_FIELDS: Final = frozenset(
    {"title", "rationale", "anchors", "type", "confidence", "author", "tags", "alternatives", "dependsOn", "evidence"}
)
# Per kind: fields `after` must have, fields it may have, whether a reason is needed.
_SHAPES: Final[Mapping[EventKind, tuple[frozenset[str], frozenset[str], bool]]] = {
    EventKind.RECORDED: (
        frozenset({"title", "rationale", "anchors", "confirmation"}),
        _TEXT_FIELDS - {"title", "rationale", "anchors"},
        False,
    ),
    EventKind.AMENDED: (frozenset(), _TEXT_FIELDS | {"confirmation"}, False),
    EventKind.RESTORED: (frozenset({"confirmation"}), frozenset(), False),
    EventKind.INVALIDATED: (frozenset(), frozenset({"supersededBy"}), True),
    EventKind.REINSTATED: (frozenset({"confirmation"}), frozenset(), True),
    EventKind.SUPERSEDED: (frozenset({"supersededBy"}), frozenset(), False),
    EventKind.ACKNOWLEDGED: (frozenset({"finding"}), frozenset(), False),
    EventKind.REDACTED: (frozenset({"field"}), frozenset(), True),
    EventKind.REWRITTEN: (frozenset({"pairs"}), frozenset(), False),
}
