"""Rule 2 for confirmations whose commit is not in HEAD's history: one difference of two trees, and who made it.

Most confirmations need no difference at all: what a commit held at the recorded names is part of its confirmation, so
one listing of HEAD shows where nothing differs. Only for the rest git compares the trees, since only there a file may
have been renamed.

Readings of the rule, where it leaves room:
- "Since the merge base" are the commits of HEAD's first-parent chain that are not in A's history; without a common
  commit there are none. Where A is gone, its newest kept ancestor in HEAD's history stands for it.
- Such a commit is the reason if it took HEAD away from what was seen at an anchor that the difference doubts; renames
  that keep the bytes are followed along the chain. Of several the newest is named.
- On an unborn branch HEAD's tree is the empty tree.
- Where A is gone, a symbol has no more than its file's bytes: the rule asks for fp or base.

Must not know: which of several confirmations decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.ancestry import BEFORE
from nm_lsp.decisions.changes import Change, Difference
from nm_lsp.decisions.model import AnchorKind, Content, unpack_ancestors
from nm_lsp.decisions.steps import AnchorState, Doubt, DoubtKind, Step, step
from nm_lsp.decisions.verdicts import Relation
from nm_lsp.decisions.walking import States, Task, Walker

_SINGLE: Final = frozenset({AnchorKind.FILE, AnchorKind.SYMBOL, AnchorKind.SUBMODULE})
_N_TAKEN: Final = 100_000


@dataclass(frozen=True, slots=True)
class Compared:
    """One confirmation against HEAD's tree. `reason` is the doubt of the commit that took HEAD away, if one did."""

    relation: Relation
    states: States
    reason: Doubt | None = None
    cause: str | None = None


class Chain:
    """HEAD's first-parent chain: which of its commits touch which paths, looked up as far down as is needed."""

    def __init__(self, walker: Walker, head: str) -> None:
        self._walker = walker
        # Newest first.
        self.commits = list(walker.ancestry.first_parent_chain(head))
        self.members = {commit: at for at, commit in enumerate(self.commits)}
        self._steps: dict[int, Step] = {}
        self._paths: dict[str, list[int]] = {}
        self._n_indexed = 0

    def touching(self, path: str, n_commits: int) -> list[int]:
        """Positions (0 is HEAD), ascending, of the newest `n_commits` that change `path`, a folder's with its `/`."""
        if self._n_indexed < n_commits:
            self._index(n_commits)
        return self._paths.get(path, [])

    def step(self, position: int) -> Step:
        return self._steps[position]

    def _index(self, n_commits: int) -> None:
        ancestry = self._walker.ancestry
        new = range(self._n_indexed, n_commits)
        pairs = [(ancestry.edge_down(self.commits[at]), self.commits[at]) for at in new]
        for at, pair, difference in zip(new, pairs, self._walker.differences(pairs), strict=True):
            self._steps[at] = self._walker.step_over(*pair, difference)
            for path in {folder for change in difference for folder in _path_and_folders(change.path)}:
                self._paths.setdefault(path, []).append(at)
        self._n_indexed = n_commits


class Comparer:
    """Judges confirmations against one head."""

    def __init__(self, walker: Walker, head: str | None) -> None:
        self._walker = walker
        self._head = head
        self._chain: Chain | None = None
        self._history_of_head: set[str] | None = None
        self._since: dict[str, int | None] = {}

    def compare(
        self, tasks: Sequence[Task], ends: Mapping[Task, str], held: Mapping[Task, Mapping[str, Content]]
    ) -> dict[Task, Compared]:
        """The outcomes. `ends` names the newest commit of each task that is here, `held` what joined commits hold."""
        walker, head = self._walker, self._head
        now = walker.history.contents(head, {name for task in tasks for name in task.recorded_names()}) if head else {}
        self._learn({end for end in ends.values() if end != BEFORE})
        result: dict[Task, Compared] = {}
        to_compare: dict[str, list[Task]] = {}
        for task in tasks:
            end = ends.get(task)
            relation = self._relation(end)
            states = _by_names(task, now, held.get(task), gone=end is None)
            # A joined commit's folder may hold files that the confirmation does not name.
            by_names = task not in held or all(s.anchor.kind in _SINGLE for s in task.confirmation.seen)
            if by_names and not any(state.doubts for state in states):
                result[task] = Compared(relation, states)
            elif end is None:
                result[task] = Compared(relation, states, self._reason(task, states, None))
            else:
                to_compare.setdefault(end, []).append(task)
        differences = self._differences(list(to_compare))
        for end, group in to_compare.items():
            result.update(self._by_difference(end, group, differences[end]))
        return result

    def _learn(self, ends: set[str]) -> None:
        try:
            self._walker.learn(sorted(ends))
        except GitUnavailable:
            # One commit whose history is not whole here fails them all; without it there is only no reason to name.
            for end in sorted(ends):
                with suppress(GitUnavailable):
                    self._walker.learn([end])

    def _by_difference(
        self, end: str, tasks: Sequence[Task], difference: Difference | GitUnavailable
    ) -> dict[Task, Compared]:
        relation = self._relation(end)
        if isinstance(difference, GitUnavailable):
            return {task: Compared(relation, task.initial, cause=str(difference)) for task in tasks}
        over = self._walker.step_over(end, self._head or BEFORE, difference)
        result = {}
        for task in tasks:
            pairs = zip(task.initial, task.confirmation.seen, strict=True)
            states = tuple(step(state, sighting, over) for state, sighting in pairs)
            doubted = any(state.doubts for state in states)
            result[task] = Compared(relation, states, self._reason(task, states, end) if doubted else None)
        return result

    def _differences(self, ends: Sequence[str]) -> dict[str, Difference | GitUnavailable]:
        """Per end its difference to HEAD, or why there is none. They are not kept: the next HEAD has others."""
        history, head = self._walker.history, self._head
        if head is None:
            return {end: [Change(path, content, None) for path, content in history.files(end).items()] for end in ends}
        try:
            return dict(zip(ends, history.differences([(end, head) for end in ends]), strict=True))
        except GitUnavailable as error:
            if len(ends) < 2:
                return dict.fromkeys(ends, error)
        # One tree that is not here fails them all.
        found: dict[str, Difference | GitUnavailable] = {}
        for end in ends:
            found.update(self._differences([end]))
        return found

    def _relation(self, end: str | None) -> Relation:
        if end is None:
            return Relation.GONE
        if self._head is not None and end != BEFORE and self._n_since(end) == 0:
            return Relation.OLDER_CHECKOUT
        return Relation.OTHER_BRANCH

    def _n_since(self, end: str) -> int | None:
        """How many commits HEAD's first-parent chain has since it met the history of `end`; None if it never did."""
        chain = self._chain_of_head()
        if chain is None or end not in self._walker.ancestry:
            return None
        if end not in self._since:
            meeting = self._walker.ancestry.newest_common(end, chain.members)
            self._since[end] = None if meeting is None else chain.members[meeting]
        return self._since[end]

    def _reason(self, task: Task, states: States, end: str | None) -> Doubt | None:
        chain = self._chain_of_head()
        if chain is None:
            return None
        if end is None:
            prefixes = task.confirmation.ancestors
            end = (
                self._walker.ancestry.by_prefixes(unpack_ancestors(prefixes), self._everything(chain))
                if prefixes
                else None
            )
        n_since = None if end is None else self._n_since(end)
        if not n_since:
            return None
        found: Doubt | None = None
        for at, state in enumerate(states):
            if state.doubts:
                doubt = self._took_away(chain, task, at, n_since)
                if doubt is not None and (found is None or doubt.order > found.order):
                    found = doubt
        return found

    def _took_away(self, chain: Chain, task: Task, at: int, n_since: int) -> Doubt | None:
        """The newest of the newest `n_since` commits of the chain that took anchor `at` away from what was seen."""
        state, sighting = task.initial[at], task.confirmation.seen[at]
        position = n_since
        newest: Doubt | None = None
        # At another head of the same chain the way so far has been gone already.
        meeting = chain.commits[n_since]
        key = (task, at, meeting)
        kept = self._walker.taken.get(key)
        if kept is not None and kept[0] in chain.members:
            position, state, newest = chain.members[kept[0]], kept[1], kept[2]
        while True:
            touching = chain.touching(state.path, position)
            before = bisect_right(touching, position - 1) - 1
            if before < 0:
                if state.unknown is None:
                    if len(self._walker.taken) >= _N_TAKEN:
                        self._walker.taken.clear()
                    self._walker.taken[key] = (chain.commits[0], state, newest)
                return newest
            position = touching[before]
            after = step(replace(state, doubts=()), sighting, chain.step(position))
            newest = next((doubt for doubt in reversed(after.doubts) if doubt.from_seen), newest)
            state = after

    def _chain_of_head(self) -> Chain | None:
        if self._chain is None and self._head is not None:
            self._chain = Chain(self._walker, self._head)
        return self._chain

    def _everything(self, chain: Chain) -> set[str]:
        if self._history_of_head is None:
            self._history_of_head = self._walker.ancestry.history(chain.commits[0])
        return self._history_of_head


def _by_names(task: Task, now: Mapping[str, Content], held: Mapping[str, Content] | None, *, gone: bool) -> States:
    """The states if no recorded name holds anything but fp or what the commit held there; doubted ones if some does.

    `held` is what a joined commit holds; the confirmation's own commit held `base`.
    """
    states: list[AnchorState] = []
    for initial, sighting in zip(task.initial, task.confirmation.seen, strict=True):
        doubts: list[Doubt] = []
        away: dict[str, tuple[Content | None, Content | None]] = {}
        landed: set[str] = set()
        for seen in sighting.files:
            content = now.get(seen.path)
            at_commit = seen.base if held is None else held.get(seen.path)
            if content == seen.fp:
                landed.add(seen.path[len(initial.path) :] if sighting.anchor.kind not in _SINGLE else seen.path)
                continue
            if content == at_commit or (gone and content == seen.base):
                continue
            kind = DoubtKind.REMOVED if content is None else DoubtKind.CHANGED
            doubts.append(Doubt(None, seen.path, kind, from_seen=False))
            away[seen.path] = (seen.fp, content)
        is_gone = bool(away) and sighting.files[0].path not in now and sighting.anchor.kind in _SINGLE
        doubted = replace(initial, touched=frozenset(landed), doubts=tuple(doubts), away=away, gone=is_gone)
        states.append(doubted if doubts or landed else initial)
    return tuple(states)


def _path_and_folders(path: str) -> list[str]:
    found = ["", path]
    at = path.find("/")
    while at >= 0:
        found.append(path[: at + 1])
        at = path.find("/", at + 1)
    return found
