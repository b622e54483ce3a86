"""What people do with decisions: each act becomes events, written with the view and the audit in one transaction."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nm_lsp.base.errors import Conflict, InvalidInput, Refused
from nm_lsp.decisions.acts import anchors_at_head, restorable
from nm_lsp.decisions.events import Event, EventKind, checked_event
from nm_lsp.decisions.fold import (
    DecisionRecord,
    Standing,
    apply,
    record_summary,
    refuse_dependency_cycle,
    refuse_superseding_cycle,
)
from nm_lsp.decisions.model import Anchor, DecisionId, Plain, new_id, resolve_id
from nm_lsp.decisions.validation import MAX_AUTHOR, MAX_REASON, checked_fields, checked_prose, fitted_line
from nm_lsp.decisions.verdicts import Reason, Status
from nm_lsp.engine.decision_requests import (
    AcknowledgeParams,
    AmendFields,
    AmendParams,
    Caller,
    InvalidateParams,
    RecordParams,
    RedactParams,
    ReinstateParams,
    RestoreParams,
    SupersedeParams,
)
from nm_lsp.engine.decisions.anchoring import Prefix, anchors_of
from nm_lsp.engine.decisions.keeper import Held, login_name
from nm_lsp.engine.decisions.sightings import ScreenBytes, confirm, refuse_uncommitted
from nm_lsp.engine.decisions.worktree import Look, WorkTree

_OPTIONAL = ("type", "confidence", "author", "tags", "alternatives", "depends_on", "evidence")
_WIRE = {"depends_on": "dependsOn"}


@dataclass(frozen=True, slots=True)
class Scene:
    """Where and by whom something is done."""

    tree: WorkTree
    prefix: Prefix
    screen: ScreenBytes
    caller: Caller

    def event(self, look: Look, kind: EventKind, decision: DecisionId | None, **parts: object) -> Event:
        """An event of now. Raises `InvalidInput` where it lacks what its kind needs, or its reason holds what no text
        of a decision may."""
        reason = parts.get("reason")
        if isinstance(reason, str) and reason.strip():
            parts["reason"] = checked_prose(reason, "note" if kind is EventKind.RESTORED else "reason", MAX_REASON)
        made = Event(
            id=uuid.uuid4().hex,
            decision=decision,
            kind=kind,
            time=self.tree.keeper.now_text(),
            actor=fitted_line(self.actor(), 2 * MAX_AUTHOR) or login_name(),
            face=self.caller.face,
            client=fitted_line(self.caller.client, MAX_AUTHOR),
            commit=look.head.commit,
            branch=fitted_line(look.head.branch, MAX_AUTHOR),
            **parts,  # type: ignore[arg-type]
        )
        # What cannot be read back must not be written: it would hide every decision of the store.
        return checked_event(made)

    def actor(self) -> str:
        """The repository's `user.name <user.email>`, else the system login."""
        return self.tree.user() or login_name()

    def answering_look(self) -> Look:
        """The present look; an act that must see the repository is refused where git cannot answer."""
        look = self.tree.look(sure=True)
        if look.git_problem is not None:
            raise look.git_problem
        return look


def find(look: Look, text: str, field: str = "id") -> DecisionId:
    """The decision that `text` names in full or by a unique prefix."""
    try:
        return resolve_id(text, list(look.records))
    except InvalidInput as error:
        raise InvalidInput(field, error.message.partition(": ")[2], hint=error.hint) from None


# -- recording -----------------------------------------------------------------------------------------------------


def record(scene: Scene, params: RecordParams) -> DecisionId:
    look = scene.answering_look()
    anchors = anchors_of(scene.tree, scene.prefix, params.files)
    given: dict[str, Plain] = {"title": params.title, "rationale": params.rationale}
    for name in _OPTIONAL:
        value = getattr(params, name)
        if value is not None and value != ():
            given[_WIRE.get(name, name)] = list(value) if isinstance(value, tuple) else value
    fields = _checked(look, given, anchors)
    confirmation = confirm(scene.tree, anchors, scene.screen)
    fields["confirmation"] = confirmation.to_plain()
    identity = new_id(secrets.token_bytes(5))
    while identity in look.records:
        identity = new_id(secrets.token_bytes(5))

    def make(held: Held) -> list[Event]:
        refuse_dependency_cycle(held.memory.records, identity, _depends_on(fields))
        return [scene.event(look, EventKind.RECORDED, identity, after=fields)]

    scene.tree.keeper.append(make)
    return identity


def _checked(look: Look, given: Mapping[str, Plain], anchors: Sequence[Anchor] | None) -> dict[str, Plain]:
    values = dict(given)
    if "dependsOn" in values:
        wanted = values["dependsOn"]
        assert isinstance(wanted, list)
        values["dependsOn"] = [find(look, str(text), "dependsOn") for text in wanted]
    if anchors is not None:
        values["anchors"] = [anchor.to_plain() for anchor in anchors]
    return checked_fields(values)


def _depends_on(fields: Mapping[str, Plain]) -> list[DecisionId]:
    wanted = fields.get("dependsOn") or []
    assert isinstance(wanted, list)
    return [DecisionId(str(one)) for one in wanted]


def amend(scene: Scene, params: AmendParams) -> DecisionId:
    """The changed fields with what they were before; new anchors make one confirmation that replaces all others."""
    look = scene.answering_look()
    identity = find(look, params.id)
    current = look.records[identity]
    _expect(current, params.expect)
    given, files = _given(params.set)
    for name in params.clear:
        given[name] = _cleared(name)
    anchors = anchors_of(scene.tree, scene.prefix, files) if files is not None else None
    if anchors is not None and anchors == current.decision.anchors:
        anchors = None
    fields = _checked(look, given, anchors)
    before = {name: _value(current, name) for name in fields}
    fields = {name: value for name, value in fields.items() if value != before[name]}
    if not fields:
        raise InvalidInput("set", "changes nothing.", hint="Give at least one field another value.")
    if anchors is not None:
        fields["confirmation"] = confirm(scene.tree, anchors, scene.screen).to_plain()
    before = {name: value for name, value in before.items() if name in fields and value is not None}

    def make(held: Held) -> list[Event]:
        if "dependsOn" in fields:
            refuse_dependency_cycle(held.memory.records, identity, _depends_on(fields))
        return [scene.event(look, EventKind.AMENDED, identity, before=before, after=fields, reason=params.reason)]

    scene.tree.keeper.append(make, expect={identity: current.revision})
    return identity


def _given(values: AmendFields) -> tuple[dict[str, Plain], tuple[str, ...] | None]:
    given: dict[str, Plain] = {}
    for name in ("title", "rationale", *_OPTIONAL):
        value = getattr(values, name)
        if value is not None:
            given[_WIRE.get(name, name)] = list(value) if isinstance(value, tuple) else value
    return given, values.files


def _cleared(name: str) -> Plain:
    if name in {"type", "author", "confidence"}:
        return None
    if name in {"tags", "alternatives", "dependsOn", "evidence"}:
        return []
    raise InvalidInput("clear", f"{name[:40]!r} cannot be empty.")


def _value(record: DecisionRecord, name: str) -> Plain:
    decision = record.decision
    match name:
        case "anchors":
            return [anchor.to_plain() for anchor in decision.anchors]
        case "dependsOn":
            return list(decision.depends_on)
        case "tags" | "alternatives" | "evidence":
            return list(getattr(decision, name))
        case _:
            value: Plain = getattr(decision, name)
            return value


# -- confirming ----------------------------------------------------------------------------------------------------


def restore(scene: Scene, params: RestoreParams) -> list[DecisionId]:
    """A new confirmation at HEAD for each, all or none."""
    look = scene.tree.classified(scene.answering_look())
    if params.head is not None and params.head != look.head.commit:
        raise Conflict("HEAD has moved since you looked.", hint="Look at the decision again and decide anew.")
    chosen = _chosen(look, params)
    confirmations = {}
    for identity in chosen:
        anchors = restorable(identity, look.verdicts[identity])
        expected = (params.expect or {}).get(identity)
        _expect(look.records[identity], expected)
        refuse_uncommitted(scene.tree, anchors, scene.screen, "confirmed")
        confirmations[identity] = confirm(scene.tree, anchors, _NO_SCREEN).to_plain()

    def make(_: Held) -> Iterable[Event]:
        for identity, confirmation in confirmations.items():
            after: dict[str, Plain] = {"confirmation": confirmation}
            yield scene.event(look, EventKind.RESTORED, identity, after=after, reason=params.note)

    scene.tree.keeper.append(make, expect={i: look.records[i].revision for i in chosen})
    return chosen


def _NO_SCREEN(_: str) -> bytes | None:  # noqa: N802 (a constant function)
    return None


def _chosen(look: Look, params: RestoreParams) -> list[DecisionId]:
    if params.all is None:
        if not params.ids:
            raise InvalidInput("ids", "names no decision.", hint="Give ids, or all: layout or reverted.")
        return list(dict.fromkeys(find(look, text, "ids") for text in params.ids))
    if params.ids:
        raise InvalidInput("all", "goes without ids.")
    match params.all:
        case "layout":
            chosen = [i for i, v in look.verdicts.items() if v.stale_by_itself and v.reason is Reason.LAYOUT]
        case "reverted":
            chosen = [i for i, v in look.verdicts.items() if v.stale_by_itself and v.reverted]
        case _:
            raise InvalidInput("all", f"{params.all[:40]!r} is neither layout nor reverted.")
    if params.confirm is None or params.confirm != len(chosen):
        raise Conflict(
            f"{len(chosen)} decisions are of that kind, not {params.confirm}.",
            current=sorted(chosen),
            hint="Look at them and confirm their number.",
        )
    return chosen


def reinstate(scene: Scene, params: ReinstateParams) -> DecisionId:
    look = scene.answering_look()
    current = _current(look, params.id, params.expect)
    if current.standing is not Standing.INVALIDATED:
        raise Refused(f"{current.id} is not invalidated, so there is nothing to reinstate.")
    anchors = anchors_at_head(current.id, look.verdicts[current.id])
    refuse_uncommitted(scene.tree, anchors, scene.screen, "confirmed")
    after: dict[str, Plain] = {"confirmation": confirm(scene.tree, anchors, _NO_SCREEN).to_plain()}
    return _append(scene, look, current, EventKind.REINSTATED, after, params.reason)


# -- doubting ------------------------------------------------------------------------------------------------------


def invalidate(scene: Scene, params: InvalidateParams) -> DecisionId:
    look = scene.tree.look()
    current = _current(look, params.id, params.expect)
    after: dict[str, Plain] = {}
    if params.superseded_by is not None:
        after["supersededBy"] = _replacement(look, current.id, params.superseded_by, "supersededBy")
    return _append(scene, look, current, EventKind.INVALIDATED, after, params.reason)


def supersede(scene: Scene, params: SupersedeParams) -> DecisionId:
    look = scene.tree.look()
    current = _current(look, params.id, params.expect)
    after: dict[str, Plain] = {"supersededBy": _replacement(look, current.id, params.by, "by")}
    return _append(scene, look, current, EventKind.SUPERSEDED, after, params.reason)


def _replacement(look: Look, identity: DecisionId, text: str, field: str) -> DecisionId:
    replacement = find(look, text, field)
    if replacement == identity:
        raise InvalidInput(field, "a decision cannot replace itself.")
    if look.records[replacement].standing is Standing.INVALIDATED:
        raise Refused(f"{replacement} is itself invalidated.", hint="Name a decision that holds.")
    refuse_superseding_cycle(look.records, identity, replacement)
    return replacement


def acknowledge(scene: Scene, params: AcknowledgeParams) -> list[DecisionId]:
    look = scene.tree.classified(scene.answering_look())
    chosen = list(dict.fromkeys(find(look, text, "ids") for text in params.ids))
    if not chosen:
        raise InvalidInput("ids", "names no decision.")
    events = []
    for identity in chosen:
        verdict = look.verdicts[identity]
        _expect(look.records[identity], (params.expect or {}).get(identity))
        if verdict.status is not Status.STALE or verdict.commit is None or verdict.path is None:
            raise Refused(f"{identity} has no finding of a commit to acknowledge.")
        after: dict[str, Plain] = {"finding": {"commit": verdict.commit, "path": verdict.path}}
        events.append(scene.event(look, EventKind.ACKNOWLEDGED, identity, after=after))
    scene.tree.keeper.append(lambda _: events, expect={i: look.records[i].revision for i in chosen})
    return chosen


def redact(scene: Scene, params: RedactParams) -> DecisionId:
    look = scene.tree.look()
    current = _current(look, params.id, params.expect)
    event = scene.event(look, EventKind.REDACTED, current.id, after={"field": params.field}, reason=params.reason)
    keeper = scene.tree.keeper
    keeper.writable_store().redact(event, now=keeper.clock(), expect={current.id: current.revision})
    return current.id


def _current(look: Look, text: str, revision: int | None) -> DecisionRecord:
    """The one decision that an act is about. Raises `Conflict` where the caller looked at another revision."""
    record = look.records[find(look, text)]
    _expect(record, revision)
    return record


def _append(
    scene: Scene, look: Look, current: DecisionRecord, kind: EventKind, after: dict[str, Plain], reason: str | None
) -> DecisionId:
    """One event of one decision, refused before anything is opened for writing where it does not fit."""
    event = scene.event(look, kind, current.id, after=after, reason=reason)
    apply(current, event)
    scene.tree.keeper.append(lambda _: [event], expect={current.id: current.revision})
    return current.id


def _expect(record: DecisionRecord, revision: int | None) -> None:
    if revision is not None and record.revision != revision:
        raise Conflict(
            f"{record.id} is at revision {record.revision}, not {revision}: it was changed meanwhile.",
            current=record_summary(record),
            hint="Look at it and decide anew.",
        )
