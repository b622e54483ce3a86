"""What an editor shows of decisions unasked: marks on files, and what governs a place. In memory, without a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.changes import Change
from nm_lsp.decisions.globs import anchor_governs
from nm_lsp.decisions.model import Anchor, AnchorKind, Content, DecisionId
from nm_lsp.decisions.verdicts import AnchorView, Reason, Relation, Status, Verdict
from nm_lsp.engine.decision_requests import DecisionRow, Mark, Marks
from nm_lsp.engine.decisions.anchoring import is_blob
from nm_lsp.engine.decisions.rows import Describer, severity_of
from nm_lsp.engine.decisions.sightings import ScreenBytes, as_stored, seen_contents
from nm_lsp.engine.decisions.worktree import Look, WorkTree
from nm_lsp.git.filters import FilterNotRun

STALE, AT_RISK, INVALIDATED = "decision-stale", "decision-at-risk", "decision-invalidated"


@dataclass(frozen=True, slots=True)
class Placed:
    """A decision at a path of the work tree. `view` is the anchor that puts it there."""

    decision: DecisionId
    view: AnchorView

    @property
    def is_here(self) -> bool:
        return self.view.recorded.kind in {AnchorKind.FILE, AnchorKind.SYMBOL, AnchorKind.SUBMODULE}


class Placement:
    """Which decisions govern which path at one look. Building it is linear in anchors; asking is a dictionary look-up
    plus one test per folder or glob anchor."""

    def __init__(self, look: Look) -> None:
        self._exact: dict[str, list[Placed]] = {}
        self._wide: list[tuple[Anchor, Placed]] = []
        for identity, verdict in look.verdicts.items():
            for view in verdict.anchors:
                placed = Placed(identity, view)
                if view.now.kind in {AnchorKind.FOLDER, AnchorKind.GLOB}:
                    self._wide.append((view.now, placed))
                else:
                    self._exact.setdefault(view.now.path, []).append(placed)

    def at(self, repo_path: str) -> list[Placed]:
        """The decisions that govern a path, those anchored at it first."""
        found = list(self._exact.get(repo_path, ()))
        seen = {placed.decision for placed in found}
        for anchor, placed in self._wide:
            if placed.decision not in seen and anchor_governs(anchor, repo_path):
                seen.add(placed.decision)
                found.append(placed)
        return found


def stale_marks(tree: WorkTree, look: Look, describer: Describer) -> Marks:
    """The marks of every STALE and INVALIDATED decision, by the repository path they sit on."""
    by_path: dict[str, list[Mark]] = {}
    lost = []
    similar: dict[tuple[str | None, str | None], str | None] = {}
    for identity, verdict in look.verdicts.items():
        if not _is_shown(look, identity, verdict):
            continue
        row = describer.row(identity)
        code = STALE if verdict.status is Status.STALE else INVALIDATED
        severity = severity_of(verdict).value if code == STALE else "information"
        seats = _seats(verdict)
        if not seats:
            if code == STALE:
                lost.append(row)
            # Many decisions may have governed one lost file: git is asked once for it.
            key = verdict.commit, verdict.path
            if key not in similar:
                similar[key] = _similar(tree, look, verdict)
            found = similar[key]
            seats = [(found, None)] if found is not None else []
        for path, symbol in seats:
            by_path.setdefault(path, []).append(Mark(code, severity, row, _text(row, code), symbol, look.head.commit))
    counts = Counter(verdict.status.value for verdict in look.verdicts.values())
    stale = [verdict for verdict in look.verdicts.values() if verdict.status is Status.STALE]
    return Marks(
        revision=look.revision,
        quiet=look.operation is not None,
        by_path={path: tuple(marks) for path, marks in sorted(by_path.items())},
        lost=tuple(lost),
        n_layout=sum(verdict.reason is Reason.LAYOUT for verdict in stale),
        n_reverted=sum(verdict.reverted for verdict in stale),
        counts=dict(counts),
    )


def _is_shown(look: Look, identity: DecisionId, verdict: Verdict) -> bool:
    if verdict.status is Status.INVALIDATED:
        return True
    if verdict.status is not Status.STALE:
        return False
    if verdict.acknowledged(look.records[identity].acknowledged):
        return False
    # On an older checkout, what was recorded later says nothing about it.
    return verdict.relation is not Relation.OLDER_CHECKOUT or verdict.reason is Reason.DEPENDENCY


def _seats(verdict: Verdict) -> list[tuple[str, str | None]]:
    """Where the marks of a decision sit: at its doubted anchors that are there, else at any that is."""
    views = [view for view in verdict.anchors if view.doubted and not view.gone]
    if not views:
        views = [view for view in verdict.anchors if not view.gone][:1]
    seats: dict[tuple[str, str | None], None] = {}
    for view in views:
        if view.now.kind in {AnchorKind.FOLDER, AnchorKind.GLOB}:
            seats.update({(away.path, None): None for away in view.away if away.now is not None})
        else:
            seats[view.now.path, view.now.symbol] = None
    return list(seats)


def _similar(tree: WorkTree, look: Look, verdict: Verdict) -> str | None:
    """After a removal, the file git finds similar; it carries the mark and never decides the status."""
    found = next((finding for finding in verdict.findings if finding.commit == verdict.commit), None)
    if tree.git is None or found is None or found.commit is None or found.parent is None or look.head.commit is None:
        return None
    try:
        return tree.git.similar(found.parent, found.commit, found.path)
    except GitUnavailable:
        return None


def _text(row: DecisionRow, code: str) -> str:
    holds = "may no longer hold" if code == STALE else "no longer holds"
    return f"The decision “{row.title}” {holds}{f': {row.status_reason}' if row.status_reason else '.'}"


# -- at risk -------------------------------------------------------------------------------------------------------


def at_risk(
    tree: WorkTree, look: Look, repo_paths: Iterable[str] | None, screen: ScreenBytes
) -> dict[DecisionId, tuple[str, ...]]:
    """ACTIVE decisions that committing the present texts would make STALE, with the paths that would do it.

    `repo_paths`: those to look at; None for everything uncommitted. Reads and hashes those files.
    """
    judge, lock = tree.judge()
    if tree.git is None or judge is None or look.git_problem is not None or look.head.commit is None:
        return {}
    try:
        paths = sorted(repo_paths) if repo_paths is not None else sorted(tree.git.uncommitted(look.head))
        if not paths:
            return {}
        committed = tree.git.contents(look.head.commit, paths)
        try:
            seen = seen_contents(tree, paths, screen)
        except FilterNotRun:
            # What only a program of the repository's could tell of is left out; the other files are still compared.
            unknowable = tree.git.unknowable(paths)
            paths = [path for path in paths if path not in unknowable]
            seen = seen_contents(tree, paths, screen)
        difference = [
            Change(path, committed.get(path), seen[path]) for path in paths if committed.get(path) != seen[path]
        ]
        if not difference:
            return {}
        uncommitted = {change.new: change.path for change in difference if is_blob(change.new)}
        with lock:
            found = judge.at_risk(look.head.commit, look.verdicts, difference, _blobs(tree, uncommitted, screen))
    except GitUnavailable:
        return {}
    return {identity: tuple(dict.fromkeys(doubt.path for doubt in doubts)) for identity, doubts in found.items()}


def _blobs(
    tree: WorkTree, uncommitted: Mapping[Content | None, str], screen: ScreenBytes
) -> Callable[[Content], bytes | None]:
    git = tree.git
    assert git is not None

    def blob(content: Content) -> bytes | None:
        path = uncommitted.get(content)
        if path is None:
            return git.blob(content)
        data = screen(path)
        if data is None:
            try:
                data = (tree.root / path).read_bytes()
            except OSError:
                return None
        return as_stored(tree, path, data, content)

    return blob


def risk_marks(
    risks: Mapping[DecisionId, tuple[str, ...]], look: Look, describer: Describer
) -> dict[str, tuple[Mark, ...]]:
    """The hints for decisions at risk, by repository path; never beside a stale mark of the same decision."""
    by_path: dict[str, list[Mark]] = {}
    for identity, paths in risks.items():
        row = describer.row(identity)
        symbols = {view.now.path: view.now.symbol for view in look.verdicts[identity].anchors}
        message = f"Committing this will make “{row.title}” stale."
        for path in paths:
            by_path.setdefault(path, []).append(
                Mark(AT_RISK, "hint", row, message, symbols.get(path), look.head.commit)
            )
    return {path: tuple(marks) for path, marks in by_path.items()}
