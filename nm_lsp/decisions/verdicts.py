"""What the repository says about a decision at one HEAD, and what follows from several verdicts together. Pure data.

Readings of the rules, where they leave room:
- Rule 8: a decision that is itself STALE keeps its own reason. Where a chain of dependencies leads to a decision that
  is unknown, and none to one that is known not to be ACTIVE, the status is unknown. A dependency that is not in the
  store says nothing; it is listed as a problem.
- *Aged* counts from the last event of an ACTIVE decision. *Orphaned* are decisions of whose confirmations no commit is
  left in this clone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from nm_lsp.decisions.fold import DecisionRecord, FindingKey, Standing
from nm_lsp.decisions.model import Anchor, Content, DecisionId
from nm_lsp.decisions.steps import DoubtKind, Move


class Status(Enum):
    ACTIVE = "active"
    STALE = "stale"
    INVALIDATED = "invalidated"
    UNKNOWN = "unknown"


class Reason(Enum):
    """Why a decision is STALE or unknown."""

    CHANGED = "changed"
    REMOVED = "removed"
    MOVED_OUT = "moved-out"
    LANDED_OTHER = "landed-other"
    LAYOUT = "layout"
    DIFFERS = "differs-on-branch"
    DEPENDENCY = "dependency"
    GIT = "git"

    @classmethod
    def of(cls, kind: DoubtKind) -> Reason:
        return cls(kind.value)


class Severity(Enum):
    WARNING = "warning"
    INFORMATION = "information"


class Relation(Enum):
    """How the commit of the confirmation lies to HEAD."""

    IN_HISTORY = "in-history"
    OLDER_CHECKOUT = "older-checkout"
    OTHER_BRANCH = "other-branch"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Away:
    """A governed path that does not hold what was seen (None: absent)."""

    path: str
    seen: Content | None
    now: Content | None


@dataclass(frozen=True, slots=True)
class AnchorView:
    """One anchor at HEAD: `recorded` as its confirmation names it, `now` where it is."""

    recorded: Anchor
    now: Anchor
    gone: bool
    doubted: bool
    away: tuple[Away, ...] = ()
    unknown: str | None = None

    @property
    def moved(self) -> bool:
        return self.recorded.path != self.now.path


@dataclass(frozen=True, slots=True)
class Finding:
    """A commit that took a governed path away from what was seen. Unique with the decision and the confirmation.

    `parent` is the commit it was compared with (None: the empty tree), of a merge the one that the walk went to.
    """

    commit: str | None
    path: str
    kind: DoubtKind
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision at one HEAD.

    `confirmation` is the index of the one that stands or, if none does, of the one the reason speaks of. `commit` is
    the newest commit that doubts it and `since` the oldest. `reverted` says that everything doubted holds what was seen
    again. `unlanded` lists paths whose seen bytes were not committed yet. `cause` explains an unknown status.
    """

    id: DecisionId
    status: Status
    confirmation: int
    relation: Relation
    anchors: tuple[AnchorView, ...]
    reason: Reason | None = None
    severity: Severity | None = None
    commit: str | None = None
    since: str | None = None
    path: str | None = None
    findings: tuple[Finding, ...] = ()
    moves: tuple[Move, ...] = ()
    reverted: bool = False
    unlanded: tuple[str, ...] = ()
    dependency: DecisionId | None = None
    cause: str | None = None

    @property
    def stale_by_itself(self) -> bool:
        return self.status is Status.STALE and self.reason is not Reason.DEPENDENCY

    @property
    def finding(self) -> FindingKey | None:
        """What `acknowledge` acknowledges: the newest finding. Without a commit that is what differs at the path, or
        the dependency that does not hold. None where there is nothing to acknowledge.
        """
        if self.status is not Status.STALE:
            return None
        if self.reason is Reason.DEPENDENCY:
            return FindingKey("dependency", self.dependency or "")
        if self.commit is not None:
            return FindingKey(self.commit, self.path or "")
        held = [away.now for view in self.anchors for away in view.away if away.path == self.path]
        return FindingKey(f"held:{held[0] if held else None}", self.path or "")

    def acknowledged(self, keys: Iterable[FindingKey]) -> bool:
        """Whether a person has seen the newest finding, so that its diagnostic stays away until the next one."""
        return self.finding is not None and self.finding in keys


def with_dependencies(
    records: Mapping[DecisionId, DecisionRecord], verdicts: Mapping[DecisionId, Verdict]
) -> dict[DecisionId, Verdict]:
    """The verdicts after rule 8, given what each decision is by itself. Cycles are harmless."""
    result = dict(verdicts)
    dependants: dict[DecisionId, list[DecisionId]] = {}
    for identity, record in records.items():
        for wanted in record.decision.depends_on:
            dependants.setdefault(wanted, []).append(identity)
    if not dependants:
        return result
    lost = [i for i, v in verdicts.items() if v.status in (Status.STALE, Status.INVALIDATED)]
    for identity, culprit in _reached(lost, dependants).items():
        verdict = verdicts.get(identity)
        if verdict is not None and verdict.status in (Status.ACTIVE, Status.UNKNOWN):
            result[identity] = replace(
                verdict,
                status=Status.STALE,
                reason=Reason.DEPENDENCY,
                severity=Severity.WARNING,
                dependency=culprit,
                cause=None,
            )
    unknown = [i for i, v in verdicts.items() if v.status is Status.UNKNOWN]
    for identity, culprit in _reached(unknown, dependants).items():
        if identity in result and result[identity].status is Status.ACTIVE:
            result[identity] = replace(
                result[identity],
                status=Status.UNKNOWN,
                reason=Reason.DEPENDENCY,
                dependency=culprit,
                cause=f"it depends on {culprit}, whose status is unknown",
            )
    return result


def aged(record: DecisionRecord, now: datetime, days: int = 90) -> bool:
    """Whether nobody has touched an ACTIVE decision for `days`. `now` is UTC."""
    if record.standing is not Standing.ACTIVE:
        return False
    return now - datetime.fromisoformat(record.changed_at) > timedelta(days=days)


def orphaned(record: DecisionRecord, present: set[str]) -> bool:
    """Whether the commits of all its confirmations are gone; `present` holds the commits that are here."""
    commits = [confirmation.commit for confirmation in record.confirmations]
    return all(commit is not None and commit not in present for commit in commits)


def _reached(
    sources: Iterable[DecisionId], dependants: Mapping[DecisionId, list[DecisionId]]
) -> dict[DecisionId, DecisionId]:
    """Per decision that depends, over any chain, on one of `sources`: the nearest of them, the smallest id first."""
    culprit: dict[DecisionId, DecisionId] = {}
    ring = [(source, source) for source in sorted(sources)]
    while ring:
        following: list[tuple[DecisionId, DecisionId]] = []
        for here, source in ring:
            for dependant in dependants.get(here, ()):
                if dependant not in culprit:
                    culprit[dependant] = source
                    following.append((dependant, source))
        ring = following
    return culprit
