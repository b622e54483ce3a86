"""Rule 1 for many confirmations at once: their anchors carried from their commits to a head.

Each commit is compared once with the parents walked to, and only the anchors that a changed path touches are looked at:
the cost of a look is the commits not looked at before and their changed paths. What was found at a head is kept, so
that the next head continues from it; that is right because a route is a function of its two ends.

Must not know: which confirmation decides, rule 2.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from nm_lsp.decisions.ancestry import BEFORE, Ancestry
from nm_lsp.decisions.changes import Difference
from nm_lsp.decisions.model import AnchorKind, Confirmation, DecisionId
from nm_lsp.decisions.ports import History
from nm_lsp.decisions.steps import AnchorState, Doubt, Step, start, step
from nm_lsp.decisions.symbols import SymbolReader

States: TypeAlias = tuple[AnchorState, ...]

_N_HEADS: Final = 16
_N_CHANGES: Final = 1_000_000
_BATCH: Final = 4_000


@dataclass(slots=True, eq=False)
class Task:
    """One confirmation to be judged. `end` is the commit it is judged from, if that is in the head's history."""

    decision: DecisionId
    confirmation: Confirmation
    initial: States
    end: str | None = None

    @classmethod
    def of(cls, decision: DecisionId, confirmation: Confirmation) -> Task:
        return cls(decision, confirmation, tuple(start(sighting) for sighting in confirmation.seen))

    @property
    def commit(self) -> str:
        return BEFORE if self.confirmation.commit is None else self.confirmation.commit

    def recorded_names(self) -> Iterable[str]:
        return (seen.path for sighting in self.confirmation.seen for seen in sighting.files)


class AnchorIndex:
    """Which anchors may be at a path. Grows with moves and never shrinks: a hit is checked against the state."""

    __slots__ = ("_at", "_below")

    def __init__(self) -> None:
        self._at: dict[str, set[tuple[Task, int]]] = {}
        self._below: dict[str, set[tuple[Task, int]]] = {}

    def add(self, task: Task, at: int, path: str) -> None:
        kind = task.confirmation.seen[at].anchor.kind
        table = self._below if kind in (AnchorKind.FOLDER, AnchorKind.GLOB) else self._at
        table.setdefault(path, set()).add((task, at))

    def touched(self, paths: Iterable[str]) -> set[tuple[Task, int]]:
        """(task, number of the anchor) of all anchors that may be at one of `paths`."""
        found: set[tuple[Task, int]] = set()
        for path in paths:
            hits = self._at.get(path)
            if hits:
                found |= hits
            if self._below:
                at = path.find("/")
                found |= self._below.get("", set())
                while at >= 0:
                    hits = self._below.get(path[: at + 1])
                    if hits:
                        found |= hits
                    at = path.find("/", at + 1)
        return found


class Walker:
    """Carries anchors along routes; remembers differences and the states at the last heads."""

    def __init__(self, history: History, code: SymbolReader) -> None:
        self.history = history
        self.ancestry = Ancestry()
        self.code = code
        self._heads: OrderedDict[str, dict[Task, tuple[str, States]]] = OrderedDict()
        self._differences: OrderedDict[tuple[str, str], Difference] = OrderedDict()
        self._n_changes = 0
        # Rule 2: per anchor and commit where HEAD's chain left its history, how far along a chain it was followed.
        self.taken: dict[tuple[Task, int, str], tuple[str, AnchorState, Doubt | None]] = {}

    def learn(self, tips: Sequence[str]) -> None:
        """Take the history of `tips` into the graph."""
        unknown = [tip for tip in dict.fromkeys(tips) if tip not in self.ancestry]
        if not unknown:
            return
        known = [head for head in self._heads if head in self.ancestry]
        # A head that was looked at may have been rewritten and collected since; git refuses to hear of it.
        known = sorted(self.history.present(known)) if known else []
        self.ancestry.add(self.history.commits(unknown, known))

    def walk(self, head: str, tasks: Sequence[Task], index: AnchorIndex) -> dict[Task, States]:
        """The states at `head` of `tasks`, whose ends all lie in its history."""
        ancestry = self.ancestry
        bits = 0
        bit_of: dict[Task, int] = {}
        for task in tasks:
            assert task.end is not None
            bit_of[task] = ancestry.bit(task.end)
            bits |= bit_of[task]
        routes = ancestry.routes(head, bits, lambda commit, here: self._kept(commit, here, bit_of))
        states = {task: task.initial for task in tasks}
        for commit, cut in routes.cut.items():
            kept = self._heads[commit]
            for task, bit in bit_of.items():
                if bit & cut:
                    states[task] = kept[task][1]
        pairs = [(edge.older, edge.newer) for edge in routes.edges]
        for at in range(0, len(pairs), _BATCH):
            batch = pairs[at : at + _BATCH]
            for edge, difference in zip(routes.edges[at:], self.differences(batch), strict=False):
                hits = index.touched(change.path for change in difference)
                hits = {hit for hit in hits if bit_of.get(hit[0], 0) & edge.bits}
                if hits:
                    self._advance(states, hits, self.step_over(edge.older, edge.newer, difference), index)
        self._keep(head, states)
        return states

    def step_over(self, older: str, newer: str, difference: Difference) -> Step:
        """The step from the tree of `older` to that of `newer`."""
        listed: dict[str, Iterable[str]] = {}

        def files_before(folder: str) -> Iterable[str]:
            if folder not in listed:
                listed[folder] = list(self.history.files(older, folder)) if older != BEFORE else ()
            return listed[folder]

        order = self.ancestry.order(newer) if newer in self.ancestry else 0
        return Step(difference, older or None, newer, order, self.code, files_before)

    def differences(self, pairs: Sequence[tuple[str, str]]) -> list[Difference]:
        """The differences of (older, newer), from memory where they are there."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._differences]
        fetched: dict[tuple[str, str], Difference] = {}
        if missing:
            answers = self.history.differences([(older or None, newer) for older, newer in missing])
            fetched = dict(zip(missing, answers, strict=True))
        result = [fetched[pair] if pair in fetched else self._differences[pair] for pair in pairs]
        for pair, difference in fetched.items():
            self._differences[pair] = difference
            self._n_changes += len(difference) + 1
        while self._n_changes > _N_CHANGES:
            _, oldest = self._differences.popitem(last=False)
            self._n_changes -= len(oldest) + 1
        return result

    def _advance(self, states: dict[Task, States], hits: set[tuple[Task, int]], over: Step, index: AnchorIndex) -> None:
        for task, at in hits:
            before = states[task][at]
            after = step(before, task.confirmation.seen[at], over)
            if after is not before:
                states[task] = (*states[task][:at], after, *states[task][at + 1 :])
                if after.path != before.path:
                    index.add(task, at, after.path)

    def _kept(self, commit: str, bits: int, bit_of: dict[Task, int]) -> int:
        """Those of `bits` all of whose tasks have a state at `commit`."""
        kept = self._heads.get(commit)
        if kept is None:
            return 0
        for task, bit in bit_of.items():
            if bit & bits and (task not in kept or kept[task][0] != task.end):
                bits &= ~bit
        return bits

    def _keep(self, head: str, states: dict[Task, States]) -> None:
        # An unknown state is not kept: the bytes may arrive with the next fetch. `states` may be those of some tasks.
        self._heads.setdefault(head, {}).update(
            (task, (task.end or BEFORE, row))
            for task, row in states.items()
            if not any(state.unknown is not None for state in row)
        )
        self._heads.move_to_end(head)
        while len(self._heads) > _N_HEADS:
            self._heads.popitem(last=False)
