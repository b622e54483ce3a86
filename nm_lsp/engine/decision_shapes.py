"""The shapes in which decisions are shown, as one line and whole; part of the contract in `decision_requests`.

Apart from it so that `nm-lsp guard`, which needs these alone, starts without the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AnchorState(Enum):
    HOLDS = "holds"
    MOVED = "moved"  # same bytes or same code at another path
    DOUBTED = "doubted"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AnchorRow:
    """`repo_path` and `path` are where the anchor was recorded, `moved_to` where it is now if that differs."""

    kind: str  # file, symbol, folder, glob, submodule
    repo_path: str
    path: str | None
    symbol: str | None
    state: AnchorState
    moved_to: str | None


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision in one line, as it stands at the work tree's HEAD.

    `status` is active, stale, invalidated or unknown. `status_reason` is a sentence for people, None for ACTIVE;
    `reason` its stable word (changed, removed, moved-out, landed-other, layout, differs-on-branch, dependency, git).
    `reverted`: everything doubted holds the seen bytes again, one restore suffices.
    """

    id: str
    revision: int
    title: str
    status: str
    status_reason: str | None
    reason: str | None
    severity: str | None
    stale_commit: str | None
    stale_path: str | None
    reverted: bool
    acknowledged: bool
    anchors: tuple[AnchorRow, ...]
    type: str | None
    confidence: float | None
    author: str | None
    tags: tuple[str, ...]
    superseded_by: str | None
    recorded_at: str
    recorded_commit: str | None
    changed_at: str


@dataclass(frozen=True, slots=True)
class DecisionDetail:
    """The whole record. `live_end` is the decision at the end of the chain of `superseded_by`, if there is one."""

    row: DecisionRow
    rationale: str
    alternatives: tuple[str, ...]
    depends_on: tuple[str, ...]
    evidence: tuple[str, ...]
    recorded_by: str
    confirmed_at: str
    confirmations: int
    invalidated_reason: str | None
    live_end: str | None
    problems: tuple[str, ...]
