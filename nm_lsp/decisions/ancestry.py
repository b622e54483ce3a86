"""The commit graph as far as it was looked at, and the routes of rule 1 through it.

The route from a commit down to A goes, at each commit, to its first parent that is A or has A in its history. It is a
function of the two ends alone, so that what was found out at one head is continued at the next.

Which of the wanted commits lie in a commit's history is one integer per commit, a bit per wanted commit; along a
straight line the integers are shared. Before the first commit lies the empty tree: `BEFORE`, in every history.

Must not know: decisions, trees.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

BEFORE: Final = ""
Commits = Sequence[tuple[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Edge:
    """`newer` compared with the parent walked to (`BEFORE` at a root); `bits` says on the routes to which ends."""

    older: str
    newer: str
    bits: int


@dataclass(frozen=True, slots=True)
class Routes:
    """The edges from the oldest to the newest, and per commit the bits of the routes that were cut short there."""

    edges: list[Edge]
    cut: dict[str, int]


class Ancestry:
    """Grows by `add`; commits are never removed, since what lies in a commit's history never changes."""

    __slots__ = ("_bit", "_has_child", "_history", "_order", "_parents")

    def __init__(self) -> None:
        self._parents: dict[str, tuple[str, ...]] = {BEFORE: ()}
        self._order: dict[str, int] = {BEFORE: 0}
        self._has_child: set[str] = set()
        self._bit: dict[str, int] = {BEFORE: 1}
        self._history: dict[str, int] = {BEFORE: 1}

    def __contains__(self, commit: str) -> bool:
        return commit in self._parents

    def add(self, commits: Commits) -> None:
        """Take in commits, children before parents, whose other parents are known already."""
        for commit, parents in reversed(commits):
            if commit in self._parents:
                continue
            known = parents or (BEFORE,)
            self._parents[commit] = known
            self._order[commit] = len(self._order)
            self._has_child.update(known)
            self._history[commit] = self._bits_of(commit)

    def want(self, ends: Iterable[str]) -> None:
        """Keep track of which commits have `ends` in their history."""
        anew = False
        for end in ends:
            if end in self._bit:
                continue
            self._bit[end] = 1 << len(self._bit)
            if end in self._has_child:
                anew = True
            elif end in self._parents:
                self._history[end] = self._bits_of(end)
        if anew:
            self._history = {BEFORE: 1}
            for commit in self._parents:
                if commit != BEFORE:
                    self._history[commit] = self._bits_of(commit)

    def bit(self, end: str) -> int:
        return self._bit[end]

    def order(self, commit: str) -> int:
        """A number that is greater than those of all commits in the history of `commit`."""
        return self._order[commit]

    def has(self, head: str, end: str) -> bool:
        """Whether the wanted `end` is `head` or in its history."""
        return bool(self._history.get(head, 0) & self._bit.get(end, 0))

    def routes(self, head: str, bits: int, known: Callable[[str, int], int]) -> Routes:
        """The routes from `head` to the ends in `bits`, all of which lie in its history.

        `known(commit, bits)` says which of the routes that reach `commit` need not be followed further.
        """
        wanted = {head: bits}
        queue = [-self._order[head]]
        by_order = {self._order[head]: head}
        edges: list[Edge] = []
        cut: dict[str, int] = {}
        while queue:
            commit = by_order.pop(-heapq.heappop(queue))
            here = wanted.pop(commit) & ~self._bit.get(commit, 0)
            stopped = known(commit, here) if here else 0
            if stopped:
                cut[commit] = stopped
                here &= ~stopped
            for parent in self._parents[commit]:
                if not here:
                    break
                taken = here & self._history[parent]
                if not taken:
                    continue
                here &= ~taken
                edges.append(Edge(parent, commit, taken))
                if parent in wanted:
                    wanted[parent] |= taken
                else:
                    wanted[parent] = taken
                    order = self._order[parent]
                    by_order[order] = parent
                    heapq.heappush(queue, -order)
        edges.reverse()
        return Routes(edges, cut)

    def first_parent_chain(self, head: str) -> Iterator[str]:
        """`head` and its first-parent ancestors, newest first."""
        while head != BEFORE:
            yield head
            head = self._parents[head][0]

    def edge_down(self, commit: str) -> str:
        """The first parent of `commit`, `BEFORE` at a root."""
        return self._parents[commit][0]

    def history(self, head: str) -> set[str]:
        """`head` and all commits in its history."""
        found = {head}
        waiting = [head]
        while waiting:
            for parent in self._parents[waiting.pop()]:
                if parent not in found and parent != BEFORE:
                    found.add(parent)
                    waiting.append(parent)
        return found

    def newest_common(self, commit: str, chain: Container[str]) -> str | None:
        """The newest commit of `chain`, a first-parent chain, that is `commit` or in its history."""
        queue = [(-self._order[commit], commit)]
        seen = {commit}
        while queue:
            _, here = heapq.heappop(queue)
            if here in chain:
                return here
            for parent in self._parents[here]:
                if parent not in seen and parent != BEFORE:
                    seen.add(parent)
                    heapq.heappush(queue, (-self._order[parent], parent))
        return None

    def by_prefixes(self, prefixes: Sequence[str], among: set[str]) -> str | None:
        """The first of `among` that begins with one of `prefixes`, in their order."""
        if not prefixes:
            return None
        length = len(prefixes[0])
        full = {commit[:length]: commit for commit in among}
        return next((full[prefix] for prefix in prefixes if prefix in full), None)

    def _bits_of(self, commit: str) -> int:
        parents = self._parents[commit]
        bits = self._history[parents[0]]
        for parent in parents[1:]:
            other = self._history[parent]
            both = bits | other
            # Equal integers are shared, so that memory goes with merges and wanted commits, not with history.
            bits = bits if both == bits else other if both == other else both
        own = self._bit.get(commit)
        return bits | own if own else bits
