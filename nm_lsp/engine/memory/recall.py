"""The production read: what the reader of one namespace recalls from some nodes.

Immutable, and the same until something is learned: weights are those of the moment of the last learning, so that
neither time nor asking changes an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nm_lsp.engine.memory.keeper import MemoryKeeper
from nm_lsp.graph.model import Node
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.ranking import HALF_SCORE, Candidate
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.synapses.network import Network
from nm_lsp.synapses.rules import read_factors

SEEDS: Final = 5
"""The first hits of a question are the seeds of its spread; each counts its score relative to the first."""
MORE_LOOKED_AT: Final = 30
"""Hits beyond those asked for that recall may lift into the answer."""
LIFT: Final = 0.25
"""A hit's score grows by this part of its energy at most: recall settles what the question leaves open."""
DISPLACED_OF: Final = 5
"""Recall puts at most one new hit in so many, in place of the weakest."""
STRONG_RECALL: Final = 0.18
"""Energy from which a node that the question did not find at all is shown."""
SHOWN_SHARE: Final = 0.98


@dataclass(frozen=True, slots=True)
class Recalled:
    """A node brought to mind: its id (folder-relative), energy, and the synapse that fired: from where, its weight."""

    id: str
    energy: float
    source: str
    weight: float


class Recall:
    """What a question may recall. `prefix` is where the folder lies in the repository ("" or "pkg/")."""

    def __init__(self, memory: StoredMemory, active: str, prefix: str) -> None:
        self._memory = memory
        self._prefix = prefix
        parts = memory.parts(read_factors(active), active, memory.learned_at)
        self._network = Network(memory.n_nodes, [(rows, weights) for _, rows, weights in parts])

    @property
    def is_empty(self) -> bool:
        return self._network.n_edges == 0

    def spread(self, seeds: Mapping[str, float], *, top: int = 12) -> list[Recalled]:
        """What `seeds` (folder-relative id → energy) bring to mind in this folder, best first."""
        numbers = self._memory.numbers
        known = {
            numbers[self._prefix + node]: energy for node, energy in seeds.items() if self._prefix + node in numbers
        }
        names = self._memory.names
        found = []
        for fired in self._network.spread(known, top=top):
            name, source = names.get(fired.node), names.get(fired.source)
            if name is not None and source is not None and name.startswith(self._prefix):
                found.append(
                    Recalled(name[len(self._prefix) :], fired.energy, source.removeprefix(self._prefix), fired.weight)
                )
        return found

    def rerank(
        self, corpus: Corpus, candidates: Sequence[Candidate], limit: int, allowed: frozenset[str] | None
    ) -> tuple[Candidate, ...]:
        """The best `limit` of `candidates` (best first, some more than asked for) with what they recall.

        A hit that is recalled is lifted; a node that the question did not find displaces one of the weakest. There
        are never more hits than without. `allowed`: kinds a new hit may have; None for all.
        """
        plain = tuple(candidates[:limit])
        if self.is_empty or not plain:
            return plain
        top = plain[0].score or 1.0
        seeds = {str(candidate.node.id): min(1.0, candidate.score / top) for candidate in plain[:SEEDS]}
        recalled = {row.id: row for row in self.spread(seeds)}
        # The seeds lift each other too: two hits that go together are each better for it.
        for row in self._among(seeds):
            recalled.setdefault(row.id, row)
        if not recalled:
            return plain
        lifted = sorted(
            (_lifted(candidate, recalled.get(candidate.node.id)) for candidate in candidates),
            key=lambda candidate: -candidate.score,
        )[:limit]
        return self._with_new(corpus, lifted, candidates, recalled, allowed)

    def sentences(self, candidates: Sequence[Candidate]) -> dict[str, tuple[str, ...]]:
        """Per hit that a synapse lifted or brought: which fired, in words."""
        plain = [candidate for candidate in candidates if candidate.fused > 0]
        if not plain:
            return {}
        seeds = {str(candidate.node.id): 1.0 for candidate in plain[:SEEDS]}
        rows = {row.id: row for row in [*self._among(seeds), *self.spread(seeds, top=40)]}
        found: dict[str, tuple[str, ...]] = {}
        for candidate in candidates:
            row = rows.get(candidate.node.id)
            if candidate.synapse_boost > 0 and row is not None:
                found[str(candidate.node.id)] = (f"goes with {row.source} (synapse {row.weight:.2f} fired)",)
        return found

    def _among(self, seeds: Mapping[str, float]) -> list[Recalled]:
        found = []
        for node, energy in list(seeds.items())[1:]:
            others = {other: value for other, value in seeds.items() if other != node}
            found += [row for row in self.spread(others, top=40) if row.id == node and energy > 0]
        return found

    def _with_new(
        self,
        corpus: Corpus,
        kept: list[Candidate],
        candidates: Sequence[Candidate],
        recalled: Mapping[str, Recalled],
        allowed: frozenset[str] | None,
    ) -> tuple[Candidate, ...]:
        n_places = len(kept) // DISPLACED_OF
        found = {candidate.node.id for candidate in candidates}
        fresh: list[tuple[int, Node, Recalled]] = []
        for row in sorted(recalled.values(), key=lambda row: (-row.energy, row.id)):
            if len(fresh) == n_places:
                break
            doc = corpus.find(row.id) if row.id not in found and row.energy >= STRONG_RECALL else None
            if doc is not None:
                node = corpus.node(doc)
                if allowed is None or node.kind.value in allowed:
                    fresh.append((doc, node, row))
        kept = kept[: len(kept) - len(fresh)]
        for doc, node, row in fresh:
            score = kept[-1].score * SHOWN_SHARE
            kept.append(Candidate(doc, node, None, None, None, None, 0.0, row.energy, (), score, (), 0.0))
        return tuple(kept)


def _lifted(candidate: Candidate, row: Recalled | None) -> Candidate:
    if row is None or candidate.score >= 1.0:
        return candidate
    boost = LIFT * min(row.energy, 1.0)
    raw = HALF_SCORE * candidate.score / (1.0 - candidate.score) * (1.0 + boost)
    return replace(candidate, synapse_boost=boost, score=raw / (raw + HALF_SCORE))


class RecallReader:
    """Keeps the `Recall` of one folder as long as nothing is learned and the namespace stays. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[tuple[object, ...], Recall] | None = None

    def recall(self, keeper: MemoryKeeper, active: str, prefix: str) -> Recall | None:
        """None where nothing was ever learned."""
        memory = keeper.memory()
        if memory is None or not memory.edges:
            return None
        key = (id(keeper), memory.stamp[:2], memory.epoch, memory.learned_at, memory.n_taught, active, prefix)
        with self._lock:
            if self._known is None or self._known[0] != key:
                self._known = (key, Recall(memory, active, prefix))
            return self._known[1]
