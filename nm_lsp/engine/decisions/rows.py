"""Decisions as faces show them: rows, whole records, and the sentence that says why one does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.fold import DecisionRecord, dependency_problems, live_end
from nm_lsp.decisions.model import DecisionId
from nm_lsp.decisions.validation import escaped, escaped_line
from nm_lsp.decisions.verdicts import AnchorView, Reason, Relation, Severity, Status, Verdict
from nm_lsp.engine.decision_shapes import AnchorRow, AnchorState, DecisionDetail, DecisionRow
from nm_lsp.git import CommitInfo

if TYPE_CHECKING:
    # Not imported at run time: `guard` puts decisions into words without opening a store for writing.
    from nm_lsp.engine.decisions.worktree import WorkTree

SHORT = 8
"""Digits of a commit id shown to people."""
_MAX_SUBJECT = 72


class Judged(Protocol):
    """What a look says of decisions."""

    @property
    def records(self) -> Mapping[DecisionId, DecisionRecord]: ...

    @property
    def verdicts(self) -> Mapping[DecisionId, Verdict]: ...


class Paths(Protocol):
    """From paths of the repository to those of whoever asks; an `anchoring.Prefix`."""

    def to_folder(self, repo_path: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Describer:
    """What is needed to put decisions of one look into words. `commits` are those the sentences name."""

    look: Judged
    prefix: Paths
    commits: Mapping[str, CommitInfo]

    @classmethod
    def of(cls, tree: WorkTree, look: Judged, prefix: Paths, ids: Iterable[DecisionId]) -> Describer:
        """Asks git once for the commits that the sentences about `ids` name."""
        named = {v.commit for i in ids if (v := look.verdicts.get(i)) is not None and v.commit is not None}
        commits: Mapping[str, CommitInfo] = {}
        if named and tree.git is not None:
            try:
                commits = tree.git.describe(named)
            except GitUnavailable:
                # The sentences name the commit by its id alone.
                commits = {}
        return cls(look, prefix, commits)

    def row(self, identity: DecisionId) -> DecisionRow:
        record, verdict = self.look.records[identity], self.look.verdicts[identity]
        decision = record.decision
        is_doubted = verdict.status in {Status.STALE, Status.UNKNOWN}
        return DecisionRow(
            id=identity,
            revision=record.revision,
            title=escaped_line(decision.title),
            status=verdict.status.value,
            status_reason=self.sentence(record, verdict),
            reason=verdict.reason.value if is_doubted and verdict.reason else None,
            severity=verdict.severity.value if is_doubted and verdict.severity else None,
            stale_commit=verdict.commit if verdict.status is Status.STALE else None,
            stale_path=verdict.path if verdict.status is Status.STALE else None,
            reverted=verdict.reverted and verdict.status is Status.STALE,
            acknowledged=verdict.status is Status.STALE and verdict.acknowledged(record.acknowledged),
            anchors=self.anchors(record, verdict),
            type=escaped_line(decision.type) if decision.type is not None else None,
            confidence=decision.confidence,
            author=escaped_line(decision.author) if decision.author is not None else None,
            tags=tuple(map(escaped_line, decision.tags)),
            superseded_by=record.superseded_by,
            recorded_at=record.recorded_at,
            recorded_commit=record.recorded_commit,
            changed_at=record.changed_at,
        )

    def anchors(self, record: DecisionRecord, verdict: Verdict) -> tuple[AnchorRow, ...]:
        if not verdict.anchors:
            return tuple(
                AnchorRow(a.kind.value, a.path, self.prefix.to_folder(a.path), a.symbol, AnchorState.UNKNOWN, None)
                for a in record.decision.anchors
            )
        return tuple(self._anchor(view) for view in verdict.anchors)

    def _anchor(self, view: AnchorView) -> AnchorRow:
        recorded = view.recorded
        return AnchorRow(
            kind=recorded.kind.value,
            repo_path=recorded.path,
            path=self.prefix.to_folder(recorded.path),
            symbol=recorded.symbol,
            state=_state(view),
            moved_to=str(view.now) if view.moved and not view.gone else None,
        )

    def detail(self, identity: DecisionId) -> DecisionDetail:
        record = self.look.records[identity]
        end = live_end(self.look.records, identity) if record.superseded_by is not None else None
        problems = dependency_problems({**self.look.records}).get(identity) if record.decision.depends_on else None
        decision = record.decision
        return DecisionDetail(
            row=self.row(identity),
            rationale=escaped(decision.rationale),
            alternatives=tuple(map(escaped, decision.alternatives)),
            depends_on=decision.depends_on,
            evidence=tuple(map(escaped, decision.evidence)),
            recorded_by=escaped_line(record.recorded_by),
            confirmed_at=record.confirmed_at,
            confirmations=len(record.confirmations),
            invalidated_reason=escaped(record.invalidation.reason) if record.invalidation else None,
            live_end=end,
            problems=(problems,) if problems else (),
        )

    # -- words ------------------------------------------------------------------------------------------------------

    def sentence(self, record: DecisionRecord, verdict: Verdict) -> str | None:
        """Why the decision does not hold as it stands, in one line; None where it does and nothing is to be said."""
        match verdict.status:
            case Status.INVALIDATED:
                return self._invalidated(record)
            case Status.UNKNOWN:
                return escaped(f"nobody knows: {verdict.cause or 'git cannot answer'}", one_line=True)
            case Status.ACTIVE:
                return self._remark(verdict)
            case Status.STALE:
                return escaped(self._stale(verdict), one_line=True)

    def _invalidated(self, record: DecisionRecord) -> str:
        lost = record.invalidation
        if lost is None:
            return "invalidated"
        where = f" on {lost.branch}" if lost.branch else ""
        at = f" at {lost.commit[:SHORT]}" if lost.commit else ""
        by = f"; replaced by {live_end(self.look.records, record.id)}" if record.superseded_by else ""
        return escaped(f"invalidated{where}{at}: {lost.reason}{by}", one_line=True)

    @staticmethod
    def _remark(verdict: Verdict) -> str | None:
        if verdict.relation is Relation.GONE:
            return "the commit it was confirmed at is no longer in this repository; its files hold what was seen"
        moved = [f"{view.recorded} is now {view.now}" for view in verdict.anchors if view.moved and not view.gone]
        return escaped("moved: " + ", ".join(moved), one_line=True) if moved else None

    def _stale(self, verdict: Verdict) -> str:
        path = verdict.path or "what it governs"
        by = self.commit(verdict.commit)
        match verdict.reason:
            case Reason.DEPENDENCY:
                text = f"it depends on {verdict.dependency}, which does not hold"
            case Reason.REMOVED:
                text = f"{path} was removed{by}"
            case Reason.MOVED_OUT:
                text = f"{path} was moved out of what it governs{by}"
            case Reason.LANDED_OTHER:
                text = f"{path} landed with other bytes than recorded{by}"
            case Reason.LAYOUT:
                text = f"only comments or layout changed in {path}{by}"
            case Reason.DIFFERS:
                text = f"{path} differs on this branch"
            case _:
                text = f"{path} was changed{by}"
        if verdict.reverted:
            text += "; it holds the recorded content again, so one restore suffices"
        return text

    def commit(self, commit: str | None) -> str:
        """ " by 1a2b3c4d (subject)" or nothing."""
        if commit is None:
            return ""
        info = self.commits.get(commit)
        if info is None:
            return f" by {commit[:SHORT]}"
        subject = info.subject if len(info.subject) <= _MAX_SUBJECT else info.subject[: _MAX_SUBJECT - 1] + "…"
        return f" by {commit[:SHORT]} ({subject})"


def severity_of(verdict: Verdict) -> Severity:
    return verdict.severity or Severity.WARNING


def _state(view: AnchorView) -> AnchorState:
    if view.unknown is not None:
        return AnchorState.UNKNOWN
    if view.gone:
        return AnchorState.GONE
    if view.doubted:
        return AnchorState.DOUBTED
    return AnchorState.MOVED if view.moved else AnchorState.HOLDS
