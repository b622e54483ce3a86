"""HEAD as a teacher: one's own commits, files that git moved, branches that were merged. Not thread-safe.

Commits made while no process ran are learned at the next start, each once, whoever starts, as strongly as they would
still count by their age.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from nm_lsp.base.errors import GitUnavailable, StoreProblem
from nm_lsp.engine.memory.batch import Batch
from nm_lsp.engine.memory.commits import (
    CommitLesson,
    PastCommit,
    Place,
    branch_news,
    commit_key,
    lesson_of,
    own_commits,
    past_commits,
    place_of,
    renamed_between,
)
from nm_lsp.engine.memory.shapes import Shapes
from nm_lsp.engine.memory.whereabouts import Standpoint, Whereabouts
from nm_lsp.engine.memory.writes import Join, NoteBranch
from nm_lsp.git import Repository as GitRepository
from nm_lsp.search.corpus import Corpus
from nm_lsp.synapses.pairs import MAX_FILES, is_bulk, path_of
from nm_lsp.synapses.rules import COMMIT_STRENGTH, PERSONAL

PAST_A_TICK: Final = 2
"""Commits of before this process that are read in one go: two ticks a second leave the interpreter to requests."""


class History:
    """`teach` takes a batch to be learned, `rename` repository-relative names and the time; `moved` hears of a HEAD
    that is another. `corpus` gives the index, None while it is not to be relied on."""

    def __init__(
        self,
        where: Whereabouts,
        shapes: Shapes,
        corpus: Callable[[], Corpus | None],
        teach: Callable[[Batch], None],
        rename: Callable[[Mapping[str, str], float], None],
        moved: Callable[[], None],
    ) -> None:
        self._where = where
        self._shapes = shapes
        self._corpus = corpus
        self._teach = teach
        self._rename = rename
        self._moved = moved
        self._head: Standpoint | None = None
        self._past: deque[PastCommit] = deque()

    def look(self, now: float) -> None:
        """Learn from what happened to HEAD since the last look; at the first one, from what nobody has learned."""
        git, standpoint = self._where.git, self._where.standpoint()
        if git is None:
            return
        before, self._head = self._head, standpoint
        if before is not None and before.head == standpoint.head:
            return
        try:
            self._moved()
            if before is None:
                self._look_back(git, standpoint, now)
            else:
                for move in own_commits(git, before.head.commit):
                    self._learn_commit(lesson_of(git, move, self._shapes), now)
                if before.head.branch == standpoint.head.branch:
                    self._follow_renames(git, before.head.commit, standpoint, now)
        except (GitUnavailable, StoreProblem):
            return
        self.look_at_branches(now)

    def _look_back(self, git: GitRepository, standpoint: Standpoint, now: float) -> None:
        """What happened to HEAD before this process: files that moved, and commits that nobody has learned from."""
        store = self._where.keeper.store(create=False)
        if store is not None:
            tip = store.tip(standpoint.namespace)
            if tip is not None and git.present([tip]):
                self._follow_renames(git, tip, standpoint, now)
        past = past_commits(git, standpoint.head.branch, now)
        learned = store.already_seen([commit_key(one.move.commit) for one in past]) if store is not None else set()
        self._past = deque(one for one in past if commit_key(one.move.commit) not in learned)

    def learn_past(self, now: float) -> None:
        """A few commits a tick, once there is an index: their symbols are looked for where they are now."""
        git, standpoint, corpus = self._where.git, self._where.standpoint(), self._corpus() if self._past else None
        if git is None or corpus is None:
            return
        try:
            for _ in range(min(PAST_A_TICK, len(self._past))):
                past = self._past.popleft()
                place = place_of(git, past, standpoint, now)
                if place is not None:
                    lesson = lesson_of(git, past.move, self._shapes)
                    if any(self._is_missing(symbol, corpus) for symbol in lesson.symbols):
                        lesson = lesson.renamed(renamed_between(git, past.move.commit, standpoint.head.commit))
                    # What moved on another branch, or has come back since, has its old name here.
                    is_here = place.namespace == standpoint.namespace
                    moved = {old: new for old, new in lesson.moved.items() if is_here and self._is_gone(old, corpus)}
                    self._learn_commit(replace(lesson, moved=moved), now, place)
        except GitUnavailable:
            # What is left is learned at the next start.
            self._past.clear()

    def _is_missing(self, symbol: str, corpus: Corpus) -> bool:
        path = self._where.prefix.to_folder(path_of(symbol))
        return path is not None and path not in corpus.file_numbers

    def _is_gone(self, symbol: str, corpus: Corpus) -> bool:
        node = self._where.prefix.to_folder(symbol)
        return node is not None and corpus.find(node) is None

    def _learn_commit(self, lesson: CommitLesson, now: float, place: Place | None = None) -> None:
        """`place` is where, and how strongly, a commit of the past counts."""
        if lesson.moved:
            self._rename(lesson.moved, now)
        inside = [path for path in map(self._where.prefix.to_folder, lesson.symbols) if path is not None]
        is_large = lesson.n_files > MAX_FILES or is_bulk(len(inside), lesson.n_files)
        symbols = () if is_large else tuple(inside)
        strength = place.strength if place is not None else COMMIT_STRENGTH
        namespace = place.namespace if place is not None else None
        self._teach(Batch(symbols, (), (), now, strength, commit_key(lesson.commit), is_large, namespace))

    def _follow_renames(self, git: GitRepository, old: str | None, after: Standpoint, now: float) -> None:
        new = after.head.commit
        if old is not None and new is not None and old != new:
            renames = renamed_between(git, old, new)
            if renames:
                self._rename(renames, now)

    def look_at_branches(self, now: float) -> None:
        """Note where branches are; those that were merged join the default one."""
        git, standpoint = self._where.git, self._where.standpoint()
        store = self._where.keeper.store(create=False)
        if git is None or store is None:
            return
        try:
            news = branch_news(git, store.branches(), standpoint)
            has_moved = standpoint.namespace == PERSONAL and store.tip(PERSONAL) != standpoint.head.commit
        except StoreProblem:
            return
        if has_moved:
            self._where.keeper.submit(NoteBranch(PERSONAL, standpoint.head.commit, False, now))
        for row in news.notes:
            self._where.keeper.submit(NoteBranch(row.namespace, row.tip, row.diverged, now))
        for namespace in news.merged:
            self._where.keeper.submit(Join(namespace, now))
