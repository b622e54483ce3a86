"""What can be asked of a repository's decisions and what comes back; the continuation of `requests`.

Paths in parameters are relative to the workspace folder, repository-relative with a leading `/`, or absolute. In
results `repo_path` is relative to the repository's root and `path` to the workspace folder (None above it).
"""

from __future__ import annotations

from dataclasses import dataclass

from nm_lsp.engine.decision_shapes import AnchorRow as AnchorRow
from nm_lsp.engine.decision_shapes import AnchorState as AnchorState
from nm_lsp.engine.decision_shapes import DecisionDetail as DecisionDetail
from nm_lsp.engine.decision_shapes import DecisionRow as DecisionRow
from nm_lsp.graph.model import Span


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, for the event: `face` is lsp, cli, hook or mcp; `client` the editor's or tool's own name."""

    face: str
    client: str | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """`why` says in words what is alike; one like an INVALIDATED decision comes first."""

    decision: DecisionRow
    why: str


# -- changing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordParams:
    """`files`: path, `path::symbol`, folder/, or glob."""

    title: str
    rationale: str
    files: tuple[str, ...]
    type: str | None = None
    confidence: float | None = None
    author: str | None = None
    tags: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordResult:
    decision: DecisionDetail
    similar: tuple[Similar, ...]


@dataclass(frozen=True, slots=True)
class DecisionResult:
    decision: DecisionDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendFields:
    """Every field left out stays as it is."""

    title: str | None = None
    rationale: str | None = None
    files: tuple[str, ...] | None = None
    type: str | None = None
    confidence: float | None = None
    author: str | None = None
    tags: tuple[str, ...] | None = None
    alternatives: tuple[str, ...] | None = None
    depends_on: tuple[str, ...] | None = None
    evidence: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendParams:
    """`expect` is the revision the caller saw. `clear` names optional fields to empty."""

    id: str
    set: AmendFields
    clear: tuple[str, ...] = ()
    reason: str | None = None
    expect: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreParams:
    """Either `ids`, or `all`: "layout" (only comments or layout changed) or "reverted" (the seen bytes are back) with
    `confirm`, the number of decisions the caller saw. `expect`: revisions by id; `head`: the commit the caller saw."""

    ids: tuple[str, ...] = ()
    all: str | None = None
    confirm: int | None = None
    note: str | None = None
    expect: dict[str, int] | None = None
    head: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionsResult:
    decisions: tuple[DecisionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidateParams:
    id: str
    reason: str
    superseded_by: str | None = None
    expect: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinstateParams:
    id: str
    reason: str
    expect: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeParams:
    """`id` is replaced by `by`, which exists; `reason` is why the old one no longer holds."""

    id: str
    by: str
    reason: str
    expect: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeParams:
    """Hides the diagnostic of the present finding until the next one."""

    ids: tuple[str, ...]
    expect: dict[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactParams:
    id: str
    field: str
    reason: str
    expect: int | None = None


# -- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListParams:
    """`status`: active, stale, invalidated, unknown, or a view: aged, orphaned, at-risk; every status when left out.
    `path`/`symbol`: those that govern it, invalidated ones only if `status` asks for them. `cursor` from the previous
    page."""

    status: str | None = None
    path: str | None = None
    symbol: str | None = None
    reason: str | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ListResult:
    decisions: tuple[DecisionRow, ...]
    total: int
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSearchParams:
    """`mode`: hybrid, keyword or semantic. `status`: active (default), stale, invalidated or all."""

    query: str
    mode: str = "hybrid"
    status: str = "active"
    min_confidence: float | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class DecisionHit:
    decision: DecisionRow
    score: float
    keyword_rank: int | None
    semantic_rank: int | None


@dataclass(frozen=True, slots=True)
class DecisionSearchResult:
    """`notices` say in words what was left out (no model, no FTS5, git cannot answer)."""

    hits: tuple[DecisionHit, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineParams:
    """Neighbours in time of `id`, by recording."""

    id: str
    before: int = 5
    after: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GetParams:
    """At most 20 ids or unique prefixes."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GetResult:
    decisions: tuple[DecisionDetail, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryParams:
    id: str


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One event or finding. `kind`: recorded, amended, …; for findings `stale` or `moved`."""

    time: str
    kind: str
    actor: str | None
    face: str | None
    client: str | None
    commit: str | None
    branch: str | None
    reason: str | None
    before: dict[str, object]
    after: dict[str, object]
    text: str  # the row as one sentence


@dataclass(frozen=True, slots=True)
class HistoryResult:
    id: str
    title: str
    rows: tuple[HistoryRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOfParams:
    """What was believed at a commit (what was recorded in its history, or before it was made) or at a time (ISO 8601);
    exactly one of the two. `id` restricts to one decision."""

    commit: str | None = None
    time: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class AsOfResult:
    at: str
    commit: str | None
    decisions: tuple[DecisionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffParams:
    """What changed since the decision was confirmed, at one anchor (`path`, default the doubted one)."""

    id: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class DiffResult:
    """`seen` and `now` are whole texts (None: absent or not to be had), `text` a unified diff for people.

    Of what is binary or too large, `text` says so.
    """

    id: str
    repo_path: str
    path: str | None
    commit: str | None
    seen_commit: str | None
    seen: str | None
    now: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ScanResult:
    head: str | None
    branch: str | None
    scanned: int
    newly_stale: tuple[DecisionRow, ...]
    newly_active: tuple[DecisionRow, ...]
    moved: int
    unknown: int
    active: int
    stale: int
    invalidated: int


@dataclass(frozen=True, slots=True)
class RecoverResult:
    """What a lost store holds again: `decisions` in all, from `backup` (a file's name) and `replayed` records of
    audit.jsonl. `stopped` says why the rest of audit.jsonl could not be used, `replaced` what a file in the way is
    called now."""

    decisions: int
    backup: str | None
    replayed: int
    stopped: str | None
    replaced: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionExportParams:
    """One Markdown text, or with `dir` one stable file a decision in that folder. `status`: active (default) or all."""

    dir: str | None = None
    status: str = "active"


@dataclass(frozen=True, slots=True)
class DecisionExportResult:
    count: int
    text: str | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionImportParams:
    """`source`: a Markdown export, a folder of exports, an ADR folder, or a NeuralMind memory.db. `dry_run` only
    reports."""

    source: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DecisionImportResult:
    imported: tuple[str, ...]
    merged: tuple[str, ...]
    unchanged: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditParams:
    """`view`: stale, invalidated, aged, orphaned or at-risk; every view when left out."""

    view: str | None = None


@dataclass(frozen=True, slots=True)
class AuditView:
    name: str
    title: str
    decisions: tuple[DecisionRow, ...]


@dataclass(frozen=True, slots=True)
class AuditResult:
    views: tuple[AuditView, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyParams:
    """`head`: a head hash printed or committed earlier, to be found in the chain."""

    head: str | None = None


@dataclass(frozen=True, slots=True)
class VerifyResult:
    valid: bool
    records: int
    head: str
    dropped: int
    waiting: int
    redacted: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuditAnchorResult:
    """The head of the chain now, to be kept elsewhere."""

    sequence: int
    head: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExportParams:
    """`rewrite` writes audit.jsonl anew from the table (the old copy is set aside); else the chain is returned."""

    rewrite: bool = False


@dataclass(frozen=True, slots=True)
class AuditExportResult:
    records: int
    text: str | None
    set_aside: str | None


@dataclass(frozen=True, slots=True)
class AuditRotateResult:
    """`archive`: the path of the closed text file. `sequence`, `head`: the last record in it and that record's hash."""

    archive: str
    sequence: int
    head: str


# -- what a face shows unasked -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Governing:
    """A decision at one place. `span` is the anchored symbol's in the text on the screen or disk, None for the file.

    `is_here`: the decision's anchor is this very file or symbol (not a folder or glob around it).
    """

    decision: DecisionRow
    rationale: str
    symbol: str | None
    span: Span | None
    name_span: Span | None
    is_here: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """One diagnostic. `code`: decision-stale, decision-at-risk or decision-invalidated; `severity`: warning,
    information or hint, before the settings. It sits on the name of `symbol`, or on the file's first line."""

    code: str
    severity: str
    decision: DecisionRow
    message: str
    symbol: str | None
    head: str | None


@dataclass(frozen=True, slots=True)
class Marks:
    """Per repository path the marks of one work tree. `revision` moves with every change; `quiet`: an operation
    (rebase, merge, …) is going on and what was shown stays."""

    revision: tuple[str | None, int]
    quiet: bool
    by_path: dict[str, tuple[Mark, ...]]
    lost: tuple[DecisionRow, ...]  # STALE ones none of whose anchors is there any more
    n_layout: int  # STALE ones where only comments or layout changed
    n_reverted: int  # STALE ones whose files hold the recorded content again
    counts: dict[str, int]  # decisions by status


@dataclass(frozen=True, slots=True)
class DecisionsChanged:
    """Event to the faces: the marks of this folder may be others now."""

    folder: str
