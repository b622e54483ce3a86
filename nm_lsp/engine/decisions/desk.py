"""The decisions of one opened folder: every call of every face about decisions is a method here.

Requests run on the caller's thread. `marks` and `governing` read what the last look left in memory and run no query and
no git, so that a hover costs microseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NotFound
from nm_lsp.decisions.fold import live_end
from nm_lsp.decisions.model import DecisionId
from nm_lsp.decisions.staleness import Judge
from nm_lsp.decisions.validation import escaped, escaped_line
from nm_lsp.engine.decision_requests import (
    AcknowledgeParams,
    AmendParams,
    AsOfParams,
    AsOfResult,
    AuditAnchorResult,
    AuditExportParams,
    AuditExportResult,
    AuditParams,
    AuditResult,
    AuditRotateResult,
    Caller,
    DecisionExportParams,
    DecisionExportResult,
    DecisionImportParams,
    DecisionImportResult,
    DecisionResult,
    DecisionRow,
    DecisionSearchParams,
    DecisionSearchResult,
    DecisionsResult,
    DiffParams,
    DiffResult,
    GetParams,
    GetResult,
    Governing,
    HistoryParams,
    HistoryResult,
    InvalidateParams,
    ListParams,
    ListResult,
    Mark,
    Marks,
    RecordParams,
    RecordResult,
    RecoverResult,
    RedactParams,
    ReinstateParams,
    RestoreParams,
    ScanResult,
    SupersedeParams,
    TimelineParams,
    VerifyParams,
    VerifyResult,
)
from nm_lsp.engine.decisions import acts, auditing, exchange, past, views
from nm_lsp.engine.decisions.acts import Scene
from nm_lsp.engine.decisions.anchoring import Prefix, anchors_of, prefix_of
from nm_lsp.engine.decisions.code import Grammars
from nm_lsp.engine.decisions.keeper import Held
from nm_lsp.engine.decisions.marks import Placement, at_risk, risk_marks, stale_marks
from nm_lsp.engine.decisions.rows import Describer
from nm_lsp.engine.decisions.searching import DecisionSearch
from nm_lsp.engine.decisions.sightings import ScreenBytes, confirm
from nm_lsp.engine.decisions.similar import Nearness, similar_rows, similar_to
from nm_lsp.engine.decisions.worktree import Look, WorkTree
from nm_lsp.engine.requests import Nothing
from nm_lsp.graph.model import Span


class Desk:
    """Thread-safe. `screen` gives the bytes of an open, changed buffer by folder-relative path; `spans` finds a symbol
    (folder-relative path, qualified name) in the text on the screen or on disk: its span and its name's."""

    def __init__(
        self,
        folder: Path,
        tree: WorkTree,
        *,
        screen: ScreenBytes,
        spans: Callable[[str, str], tuple[Span, Span] | None],
        nearness: Nearness,
        on_change: Callable[[], None],
    ) -> None:
        self._folder = folder
        self.tree = tree
        self._screen = screen
        self._spans = spans
        self._nearness = nearness
        self._search = DecisionSearch(tree, nearness)
        self._on_change = on_change
        self._lock = threading.Lock()
        self._marks: tuple[Look, Marks] | None = None
        self._placement: tuple[Look, Placement] | None = None
        self._shown: Look | None = None

    # -- places -----------------------------------------------------------------------------------------------------

    @property
    def prefix(self) -> Prefix:
        return prefix_of(self.tree.root, self._folder)

    def repo_to_abs(self, repo_path: str) -> Path:
        return self.tree.root / repo_path

    def screen_bytes(self, repo_path: str) -> bytes | None:
        """The bytes on the screen of a repository path, None where it is not open in this folder or not changed."""
        path = self.prefix.to_folder(repo_path)
        return self._screen(path) if path is not None else None

    def check_files(self, files: Sequence[str]) -> None:
        """Raises what a decision recorded for `files` would be refused with for their sake."""
        confirm(self.tree, anchors_of(self.tree, self.prefix, files), self.screen_bytes)

    def _scene(self, caller: Caller) -> Scene:
        return Scene(self.tree, self.prefix, self.screen_bytes, caller)

    # -- looking ----------------------------------------------------------------------------------------------------

    def poll(self, *, sure: bool = False) -> Look:
        """Look again where anything moved, and tell the faces if it did. Called every two seconds and on a nudge."""
        look = self.tree.look(sure=sure)
        shown = self._shown
        if shown is not look:
            self._shown = look
            moved = shown is None or (shown.revision, shown.operation) != (look.revision, look.operation)
            if moved or shown is None or shown.verdicts is not look.verdicts:
                self._on_change()
        return look

    def scan(self, _: Nothing, cancel: Cancellation, caller: Caller) -> ScanResult:
        """Look now, whatever the clock says; says what is new since the last look."""
        cancel.check()
        before = self._shown
        look = self.tree.classified(self.poll(sure=True))
        fresh_stale, fresh_active = [], []
        for identity, verdict in look.verdicts.items():
            old = before.verdicts.get(identity) if before is not None else None
            if old is not None and old.status is not verdict.status:
                if verdict.status.value == "stale":
                    fresh_stale.append(identity)
                elif verdict.status.value == "active":
                    fresh_active.append(identity)
        describer = Describer.of(self.tree, look, self.prefix, [*fresh_stale, *fresh_active])
        counts = views.counts(look)
        return ScanResult(
            head=look.head.commit,
            branch=look.head.branch,
            scanned=len(look.verdicts),
            newly_stale=tuple(describer.row(i) for i in fresh_stale),
            newly_active=tuple(describer.row(i) for i in fresh_active),
            moved=sum(any(view.moved for view in verdict.anchors) for verdict in look.verdicts.values()),
            unknown=counts["unknown"],
            active=counts["active"],
            stale=counts["stale"],
            invalidated=counts["invalidated"],
        )

    # -- in memory, for the screen ----------------------------------------------------------------------------------

    def marks(self, *, classified: bool = True) -> Marks:
        """The marks of the last look. The first call after a look may ask git for what the marks name.

        Without `classified`, a change of comments or layout may still look like any other: telling them apart reads
        texts, and may take a second after a commit of many files.
        """
        look = self._shown or self.poll()
        if classified:
            look = self.tree.classified(look)
        known = self._marks
        if known is None or known[0] is not look:
            describer = Describer.of(self.tree, look, self.prefix, look.verdicts)
            marks = stale_marks(self.tree, look, describer)
            known = self._marks = (look, marks)
        return known[1]

    def risks(self, paths: Sequence[str] | None, cancel: Cancellation) -> dict[str, tuple[Mark, ...]]:
        """Hints for ACTIVE decisions that the unsaved or uncommitted texts would make STALE, by repository path.

        `paths`: repository paths to look at; None for everything uncommitted.
        """
        look = self._shown or self.poll()
        cancel.check()
        found = at_risk(self.tree, look, paths, self.screen_bytes)
        cancel.check()
        describer = Describer.of(self.tree, look, self.prefix, found)
        return risk_marks(found, look, describer)

    def governing(self, path: str) -> tuple[Governing, ...]:
        """What governs a file of the folder: its own anchors first."""
        look = self._shown or self.poll()
        known = self._placement
        if known is None or known[0] is not look:
            known = self._placement = (look, Placement(look))
        repo_path = self.prefix.to_repository(path)
        placed = known[1].at(repo_path)
        if not placed:
            return ()
        describer = Describer(look, self.prefix, {})
        found = []
        for one in placed:
            symbol = one.view.now.symbol
            spans = self._spans(path, symbol) if symbol is not None else None
            found.append(
                Governing(
                    decision=describer.row(one.decision),
                    rationale=escaped(look.records[one.decision].decision.rationale),
                    symbol=symbol,
                    span=spans[0] if spans else None,
                    name_span=spans[1] if spans else None,
                    is_here=one.is_here,
                )
            )
        return tuple(found)

    def revision(self) -> tuple[str | None, int]:
        """HEAD and the store's revision of the last look: what is said of decisions changes only with it."""
        return (self._shown or self.poll()).revision

    def row(self, identity: str) -> DecisionRow | None:
        """The decision with exactly this id as the last look has it."""
        look = self._shown or self.poll()
        if identity not in look.records:
            return None
        return Describer(look, self.prefix, {}).row(DecisionId(identity))

    def rationale(self, identity: str) -> str | None:
        look = self._shown or self.poll()
        record = look.records.get(DecisionId(identity))
        return escaped(record.decision.rationale) if record is not None else None

    def replacement(self, identity: str) -> str | None:
        """The live end of the chain of replacements of a decision, None where nothing replaces it."""
        look = self._shown or self.poll()
        record = look.records.get(DecisionId(identity))
        if record is None or record.superseded_by is None:
            return None
        return live_end(look.records, record.id)

    def titles(self) -> tuple[tuple[str, str], ...]:
        """Id and title of every decision."""
        look = self._shown or self.poll()
        return tuple((identity, escaped_line(record.decision.title)) for identity, record in look.records.items())

    def ids(self) -> tuple[str, ...]:
        return tuple((self._shown or self.poll()).records)

    def head(self) -> tuple[str | None, str | None]:
        """The commit and the branch of the last look."""
        head = (self._shown or self.poll()).head
        return head.commit, head.branch

    def counts(self) -> dict[str, int]:
        return views.counts(self._shown or self.poll())

    def problems(self) -> tuple[str, ...]:
        return views.problems(self.tree, self._shown or self.poll())

    # -- changing ---------------------------------------------------------------------------------------------------

    def record(self, params: RecordParams, cancel: Cancellation, caller: Caller) -> RecordResult:
        cancel.check()
        identity = acts.record(self._scene(caller), params)
        look = self.poll()
        similar = similar_to(look, identity, self._nearness)
        describer = Describer.of(self.tree, look, self.prefix, [identity, *similar])
        return RecordResult(describer.detail(identity), similar_rows(look, similar, describer))

    def amend(self, params: AmendParams, cancel: Cancellation, caller: Caller) -> DecisionResult:
        cancel.check()
        return self._detail(acts.amend(self._scene(caller), params))

    def restore(self, params: RestoreParams, cancel: Cancellation, caller: Caller) -> DecisionsResult:
        cancel.check()
        return self._rows(acts.restore(self._scene(caller), params))

    def reinstate(self, params: ReinstateParams, cancel: Cancellation, caller: Caller) -> DecisionResult:
        cancel.check()
        return self._detail(acts.reinstate(self._scene(caller), params))

    def invalidate(self, params: InvalidateParams, cancel: Cancellation, caller: Caller) -> DecisionResult:
        cancel.check()
        return self._detail(acts.invalidate(self._scene(caller), params))

    def supersede(self, params: SupersedeParams, cancel: Cancellation, caller: Caller) -> DecisionResult:
        cancel.check()
        return self._detail(acts.supersede(self._scene(caller), params))

    def acknowledge(self, params: AcknowledgeParams, cancel: Cancellation, caller: Caller) -> DecisionsResult:
        cancel.check()
        return self._rows(acts.acknowledge(self._scene(caller), params))

    def redact(self, params: RedactParams, cancel: Cancellation, caller: Caller) -> DecisionResult:
        cancel.check()
        return self._detail(acts.redact(self._scene(caller), params))

    def _detail(self, identity: DecisionId) -> DecisionResult:
        look = self.poll()
        return DecisionResult(Describer.of(self.tree, look, self.prefix, [identity]).detail(identity))

    def _rows(self, ids: Sequence[DecisionId]) -> DecisionsResult:
        return DecisionsResult(views.rows_of(self.tree, self.poll(), self.prefix, ids))

    # -- reading ----------------------------------------------------------------------------------------------------

    def _fresh(self, cancel: Cancellation) -> Look:
        """A look that tells layout from change; refused only where the store itself cannot be read."""
        cancel.check()
        look = self.tree.classified(self.poll())
        if self.tree.keeper.problem is not None and not look.records:
            raise self.tree.keeper.problem
        return look

    def list(self, params: ListParams, cancel: Cancellation, caller: Caller) -> ListResult:
        look = self._fresh(cancel)
        return views.list_decisions(self.tree, look, self.prefix, params, lambda: self._all_risks(look))

    def get(self, params: GetParams, cancel: Cancellation, caller: Caller) -> GetResult:
        return views.get(self.tree, self._fresh(cancel), self.prefix, params)

    def search(self, params: DecisionSearchParams, cancel: Cancellation, caller: Caller) -> DecisionSearchResult:
        return self._search.search(self._fresh(cancel), self.prefix, params, cancel)

    def timeline(self, params: TimelineParams, cancel: Cancellation, caller: Caller) -> ListResult:
        return views.timeline(self.tree, self._fresh(cancel), self.prefix, params)

    def history(self, params: HistoryParams, cancel: Cancellation, caller: Caller) -> HistoryResult:
        return views.history(self.tree, self._fresh(cancel), params)

    def as_of(self, params: AsOfParams, cancel: Cancellation, caller: Caller) -> AsOfResult:
        cancel.check()
        return past.as_of(self.tree, self.prefix, params, self._judged_at)

    def diff(self, params: DiffParams, cancel: Cancellation, caller: Caller) -> DiffResult:
        return views.diff(self.tree, self._fresh(cancel), self.prefix, params)

    def audit(self, params: AuditParams, cancel: Cancellation, caller: Caller) -> AuditResult:
        look = self._fresh(cancel)
        return views.audit(self.tree, look, self.prefix, params, lambda: self._all_risks(look))

    def _all_risks(self, look: Look) -> Mapping[DecisionId, object]:
        return at_risk(self.tree, look, None, self.screen_bytes)

    def _judged_at(self, commit: str | None, held: Held) -> Look:
        """A look at another commit, by a judge of its own, so that the present one keeps what it knows."""
        git = self.tree.git
        if git is None:
            raise NotFound("There is no repository, so nothing is known of the past.")
        look = self.tree.look()
        verdicts = Judge(git, Grammars()).look(commit, held.memory)
        return Look(type(look.head)(commit, None), held, verdicts)

    # -- out and in -------------------------------------------------------------------------------------------------

    def export(self, params: DecisionExportParams, cancel: Cancellation, caller: Caller) -> DecisionExportResult:
        return exchange.export(self._scene(caller), self._fresh(cancel), params, cancel)

    def import_(self, params: DecisionImportParams, cancel: Cancellation, caller: Caller) -> DecisionImportResult:
        cancel.check()
        result = exchange.import_(self._scene(caller), params, cancel)
        self.poll()
        return result

    def recover(self, _: Nothing, cancel: Cancellation, caller: Caller) -> RecoverResult:
        """Bring back a store that was lost, from what is left of it."""
        cancel.check()
        keeper = self.tree.keeper
        done = keeper.recover(self._scene(caller).actor(), caller.face)
        self.poll()
        return RecoverResult(
            decisions=len(keeper.held().memory.records),
            backup=done.backup.name if done.backup is not None else None,
            replayed=done.n_replayed,
            stopped=done.stopped,
            replaced=done.replaced.name if done.replaced is not None else None,
        )

    # -- the audit chain --------------------------------------------------------------------------------------------

    def audit_verify(self, params: VerifyParams, cancel: Cancellation, caller: Caller) -> VerifyResult:
        cancel.check()
        return auditing.verify(self.tree.keeper, params)

    def audit_anchor(self, _: Nothing, cancel: Cancellation, caller: Caller) -> AuditAnchorResult:
        cancel.check()
        return auditing.anchor(self.tree.keeper)

    def audit_export(self, params: AuditExportParams, cancel: Cancellation, caller: Caller) -> AuditExportResult:
        cancel.check()
        return auditing.export(self.tree.keeper, params, self._scene(caller).actor(), caller)

    def audit_rotate(self, _: Nothing, cancel: Cancellation, caller: Caller) -> AuditRotateResult:
        cancel.check()
        return auditing.rotate(self.tree.keeper, self._scene(caller).actor(), caller)
