"""What HEAD's moves teach: the user's own small commits, files and symbols that moved, branches that were merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.changes import Difference
from nm_lsp.engine.memory.shapes import Shapes
from nm_lsp.engine.memory.whereabouts import Standpoint
from nm_lsp.git import Repository as GitRepository
from nm_lsp.git.branches import HeadMove, branch_tips, head_moves, is_merged_by_content, moved_files
from nm_lsp.storage.synapses import BranchRow
from nm_lsp.synapses.edits import changed_lines, symbols_at
from nm_lsp.synapses.pairs import MAX_FILES, MAX_SYMBOLS
from nm_lsp.synapses.rules import BRANCH
from nm_lsp.worker.sources import Unreadable, decode

MAX_COMMITS = 20
MAX_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class CommitLesson:
    """Repository-relative: the symbols a commit changed, old → new names of symbols that moved to another file.

    A file stands for itself where it is new or has no symbols, and where the commit changed too many symbols to name
    them. `n_files` counts what it changed, also beyond the limit.
    """

    commit: str
    n_files: int
    symbols: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)


def own_commits(git: GitRepository, since: str | None) -> list[HeadMove]:
    """The commits made by hand in this work tree after HEAD was at `since`, oldest first."""
    moves = head_moves(git.git, MAX_COMMITS)
    email = git.setting("user.email")
    found = []
    for move in moves:
        if move.commit == since:
            break
        if move.is_new_commit and (email is None or move.email == email):
            found.append(move)
    return found[::-1]


def lesson_of(git: GitRepository, move: HeadMove, shapes: Shapes) -> CommitLesson:
    """Raises `GitUnavailable`."""
    parent = move.parents[0] if move.parents else None
    (difference,) = git.differences([(parent, move.commit)])
    if len(difference) > MAX_FILES:
        return CommitLesson(move.commit, len(difference))
    symbols: list[str] = []
    files: list[str] = []
    removed: dict[tuple[str, bytes], list[str]] = {}
    added: dict[tuple[str, bytes], list[str]] = {}
    for change in difference:
        old, new = _text(git, change.old), _text(git, change.new)
        before, after = shapes.of(change.path, old or ""), shapes.of(change.path, new or "")
        for gone in before.hashes.keys() - after.hashes.keys():
            removed.setdefault((gone.partition("::")[2], before.hashes[gone]), []).append(gone)
        for come in after.hashes.keys() - before.hashes.keys():
            added.setdefault((come.partition("::")[2], after.hashes[come]), []).append(come)
        if new is not None:
            files.append(change.path)
            # Of a new file everything is new; what it goes with is said by the file as a whole.
            ranges = changed_lines(old, new) if old is not None else []
            symbols += symbols_at(after.symbols, ranges) or [change.path]
    if len(symbols) > MAX_SYMBOLS:
        symbols = files
    moved = {
        olds[0]: added[key][0]
        for key, olds in removed.items()
        # Only what is the same text under the same name, once on each side, has surely moved.
        if len(olds) == 1 and len(added.get(key, ())) == 1
    }
    return CommitLesson(move.commit, len(difference), tuple(symbols), moved)


def _text(git: GitRepository, content: str | None) -> str | None:
    if content is None or content.startswith("commit:"):
        return None
    blob = git.blob(content)
    if blob is None or len(blob) > MAX_BYTES:
        return None
    try:
        return decode(blob)
    except Unreadable:
        return None


def renamed_between(git: GitRepository, old: str, new: str) -> dict[str, str]:
    """Old → new path of the files that were renamed between two commits. Raises `GitUnavailable`."""
    (difference,) = git.differences([(old, new)])
    return moved_files(git.git, old, new) if _may_rename(difference) else {}


def _may_rename(difference: Difference) -> bool:
    return any(change.new is None for change in difference) and any(change.old is None for change in difference)


@dataclass(frozen=True, slots=True)
class BranchNews:
    """What to note of the branches with a namespace of their own, and which of them were merged."""

    notes: tuple[BranchRow, ...]
    merged: tuple[str, ...]


def branch_news(git: GitRepository, rows: list[BranchRow], standpoint: Standpoint) -> BranchNews:
    """Judge every branch that something was learned on.

    A branch is merged once it had commits of its own and the default branch has them: as they are, picked, rebased or
    squashed; or once its upstream is gone. A branch that never had any is not merged, nor one that was deleted before.
    """
    default = standpoint.default_branch
    if not rows or default is None:
        return BranchNews((), ())
    try:
        tips = branch_tips(git.git)
        base = tips[default][0] if default in tips else git.resolve(f"refs/remotes/origin/{default}")
        if base is None:
            return BranchNews((), ())
        notes, merged = [], []
        for row in rows:
            name = row.namespace.removeprefix(BRANCH)
            tip, is_gone = tips.get(name, (row.tip, False))
            if tip is None or not git.present([tip]):
                continue
            is_inside = git.is_ancestor(tip, base)
            diverged = row.diverged or not is_inside
            if diverged and (is_inside or is_gone or is_merged_by_content(git.git, base, tip)):
                merged.append(row.namespace)
            elif (tip, diverged) != (row.tip, row.diverged):
                notes.append(BranchRow(row.namespace, tip, diverged))
        return BranchNews(tuple(notes), tuple(merged))
    except GitUnavailable:
        return BranchNews((), ())
