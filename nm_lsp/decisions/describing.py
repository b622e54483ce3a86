"""From the judged confirmations of a decision to the words of its verdict. Pure data in, pure data out.

Must not know: the repository, how a confirmation was judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nm_lsp.decisions.comparing import Compared
from nm_lsp.decisions.fold import DecisionRecord, Standing
from nm_lsp.decisions.globs import base_folder, rest_pattern
from nm_lsp.decisions.model import Anchor, AnchorKind, Content, DecisionId, Sighting
from nm_lsp.decisions.steps import AnchorState, Doubt, start
from nm_lsp.decisions.verdicts import AnchorView, Away, Finding, Reason, Relation, Severity, Status, Verdict
from nm_lsp.decisions.walking import States, Task

_WITH_MEMBERS: Final = frozenset({AnchorKind.FOLDER, AnchorKind.GLOB})


@dataclass(frozen=True, slots=True)
class Outcome:
    """One confirmation at one head, judged from `end` if not None. `stands` is None where git cannot say."""

    stands: bool | None
    compared: Compared
    end: str | None


def outcome(end: str | None, compared: Compared) -> Outcome:
    if any(state.doubts for state in compared.states):
        return Outcome(False, compared, end)
    blind = compared.cause is not None or any(state.unknown is not None for state in compared.states)
    return Outcome(None if blind else True, compared, end)


def unchanged(new: Outcome, old: Outcome) -> bool:
    """Whether two outcomes of one confirmation are the same, told by the identity of its states."""
    if new is old:
        return True
    one, other = new.compared, old.compared
    if new.end != old.end or one.relation is not other.relation or one.reason != other.reason:
        return False
    return one.cause == other.cause and all(a is b for a, b in zip(one.states, other.states, strict=True))


def speaking(rows: Sequence[Outcome]) -> int:
    """The confirmation of which the reason speaks, if none stands."""
    inside = [at for at, row in enumerate(rows) if row.compared.relation is Relation.IN_HISTORY and row.stands is False]
    taken_away = [at for at, row in enumerate(rows) if row.compared.reason is not None]
    return (inside or taken_away or [len(rows) - 1])[-1]


def described(
    identity: DecisionId, task: Task, at: int, compared: Compared, held: Mapping[str, Content] | None
) -> Verdict:
    """The verdict as far as it is the same whatever the status: where the anchors are and what happened to them."""
    pairs = list(zip(task.confirmation.seen, compared.states, strict=True))
    return Verdict(
        id=identity,
        status=Status.ACTIVE,
        confirmation=at,
        relation=compared.relation,
        anchors=tuple(_view(sighting, state) for sighting, state in pairs),
        findings=tuple(Finding(doubt.commit, doubt.path, doubt.kind, doubt.parent) for doubt in _doubts(compared)),
        moves=tuple(sorted((move for state in compared.states for move in state.moves), key=lambda move: move.order)),
        reverted=reverted(compared.states),
        unlanded=tuple(path for sighting, state in pairs for path in _unlanded(sighting, state, held)),
    )


def stale(verdict: Verdict, compared: Compared) -> Verdict:
    """`verdict` as STALE, with its reason."""
    doubts = _doubts(compared)
    newest, oldest = doubts[-1], doubts[0]
    if newest.commit is not None:
        reason, severity = Reason.of(newest.kind), Severity.WARNING
    else:
        newest = oldest
        reason, severity = Reason.DIFFERS, Severity.INFORMATION
    return replace(
        verdict,
        status=Status.STALE,
        reason=reason,
        severity=severity,
        commit=newest.commit,
        since=oldest.commit,
        path=newest.path,
    )


def unknown_everywhere(record: DecisionRecord, cause: str) -> Verdict:
    """The verdict where git does not answer at all: nobody knows, and the anchors have the names they had last."""
    newest = len(record.confirmations) - 1
    views = tuple(_view(sighting, start(sighting)) for sighting in record.confirmations[newest].seen)
    verdict = Verdict(record.id, Status.INVALIDATED, newest, Relation.GONE, views)
    if record.standing is Standing.INVALIDATED:
        return verdict
    return replace(verdict, status=Status.UNKNOWN, reason=Reason.GIT, cause=cause)


def cause_of(compared: Compared) -> str:
    """Why a confirmation cannot be judged."""
    if compared.cause is not None:
        return compared.cause
    path = next((state.unknown for state in compared.states if state.unknown is not None), "")
    return f"the committed bytes of {path} are not in this clone"


def reverted(states: States) -> bool:
    """Whether everything that was doubted holds what was seen again."""
    if not any(state.doubts for state in states):
        return False
    return not any(state.away or state.gone or state.unknown is not None for state in states)


def _doubts(compared: Compared) -> list[Doubt]:
    """The doubts from the oldest to the newest, with the commits that raised them; without one where none did."""
    doubts = [doubt for state in compared.states for doubt in state.doubts]
    if len(compared.states) > 1:
        doubts.sort(key=lambda doubt: doubt.order)
    if compared.relation is Relation.IN_HISTORY:
        return doubts
    return [compared.reason] if compared.reason is not None else [replace(doubt, commit=None) for doubt in doubts]


def _view(sighting: Sighting, state: AnchorState) -> AnchorView:
    recorded = sighting.anchor
    pattern = rest_pattern(recorded) if recorded.kind is AnchorKind.GLOB else None
    now = Anchor(recorded.kind, state.path + (pattern or ""), recorded.symbol)
    away = tuple(Away(path, seen, held) for path, (seen, held) in state.away.items())
    return AnchorView(recorded, now, state.gone, bool(state.doubts), away, state.unknown)


def _unlanded(sighting: Sighting, state: AnchorState, held: Mapping[str, Content] | None) -> list[str]:
    """Paths whose seen bytes were not committed, and have not been since. `held` is what a joined commit holds."""
    members = sighting.anchor.kind in _WITH_MEMBERS
    n_folder = len(base_folder(sighting.anchor)) if members else 0
    paths = []
    for seen in sighting.files:
        rest = seen.path[n_folder:]
        landed = rest in state.touched if members else bool(state.touched)
        if seen.fp == seen.base or landed or (held is not None and held.get(seen.path) == seen.fp):
            continue
        paths.append(state.path + rest if members else state.path)
    return paths
