"""What HEAD's moves teach: the user's own small commits, files and symbols that moved, branches that were merged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.changes import Difference
from nm_lsp.engine.memory.shapes import Shapes
from nm_lsp.engine.memory.whereabouts import Standpoint, namespace_of
from nm_lsp.git import Head
from nm_lsp.git import Repository as GitRepository
from nm_lsp.git.branches import HeadMove, branch_tips, head_moves, is_merged_by_content, moved_files
from nm_lsp.storage.synapses import BranchRow
from nm_lsp.synapses.edits import changed_lines, symbols_at
from nm_lsp.synapses.pairs import MAX_FILES, MAX_SYMBOLS
from nm_lsp.synapses.rules import (
    BRANCH,
    COMMIT_STRENGTH,
    DAY_S,
    PERSONAL,
    READ_FACTORS,
    decayed,
    half_life_s,
)
from nm_lsp.worker.sources import Unreadable, decode

MAX_COMMITS: Final = 20
MAX_PAST: Final = 200
MAX_PAST_MOVES: Final = 1_000
PAST_S: Final = 90 * DAY_S
"""Commits from before the process are learned so far back: an older one has faded to less than an opened file."""
MAX_BYTES: Final = 2_000_000


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

    def renamed(self, files: Mapping[str, str]) -> CommitLesson:
        """The same lesson where files (old → new path) are called otherwise."""

        def name(symbol: str) -> str:
            path, mark, rest = symbol.partition("::")
            return files.get(path, path) + mark + rest

        return replace(self, symbols=tuple(map(name, self.symbols)))


def commit_key(commit: str) -> bytes:
    """What says in the store that a commit was dealt with."""
    return b"commit:" + bytes.fromhex(commit)


def own_commits(git: GitRepository, since: str | None) -> list[HeadMove]:
    """The commits made by hand in this work tree after HEAD was at `since`, oldest first."""
    moves = itertools.takewhile(lambda move: move.commit != since, head_moves(git.git, MAX_COMMITS))
    return [move for move in moves if is_own(move, git.setting("user.email"))][::-1]


def is_own(move: HeadMove, email: str | None) -> bool:
    """Whether it is a commit made by hand, here, by whom git is configured for."""
    return move.is_new_commit and (email is None or move.email == email)


@dataclass(frozen=True, slots=True)
class PastCommit:
    """A commit of one's own from the log of HEAD, and the branch it was made on; None with a detached HEAD."""

    move: HeadMove
    branch: str | None


def past_commits(git: GitRepository, branch: str | None, now: float) -> list[PastCommit]:
    """One's own commits in this work tree of the last `PAST_S`, `MAX_PAST` at most, oldest first. HEAD is on `branch`.

    What was made where is told by the checkouts between: a name that no branch could have is a commit's.
    """
    email, moves = git.setting("user.email"), head_moves(git.git, MAX_PAST_MOVES)
    found: list[PastCommit] = []
    for move in moves:
        if len(found) == MAX_PAST:
            break
        if is_own(move, email) and now - move.committed_at <= PAST_S:
            found.append(PastCommit(move, branch))
        left = move.left_branch
        if left is not None:
            branch = None if _LIKE_A_COMMIT.fullmatch(left) else left
    return found[::-1]


_LIKE_A_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}|HEAD.*")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a past commit is learned, and what part of its strength."""

    namespace: str
    strength: float


def place_of(git: GitRepository, past: PastCommit, standpoint: Standpoint, now: float) -> Place | None:
    """A commit counts for the branch it was made on, faded by its age; for the default branch, as a merged branch does,
    once that has it; for none if neither is there. Raises `GitUnavailable`."""
    if past.branch is None:
        return None
    default, tips = standpoint.default_branch, branch_tips(git.git)
    namespace, part = namespace_of(Head(past.move.commit, past.branch), default), COMMIT_STRENGTH
    if namespace != PERSONAL:
        base = tips[default][0] if default is not None and default in tips else None
        if base is not None and git.is_ancestor(past.move.commit, base):
            namespace, part = PERSONAL, COMMIT_STRENGTH * READ_FACTORS[PERSONAL]
        elif past.branch not in tips:
            return None
    return Place(namespace, decayed(part, now - past.move.committed_at, half_life_s(namespace)))


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


def renamed_between(git: GitRepository, old: str, new: str | None) -> dict[str, str]:
    """Old → new path of the files that were renamed between two commits. Raises `GitUnavailable`."""
    if new is None:
        return {}
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
