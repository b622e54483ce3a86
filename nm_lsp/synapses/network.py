"""The learned graph of one moment as numpy arrays, and the spread of activation over it.

Immutable. `weights` are those the reader sees: the maximum over the namespaces of weight times factor. Building costs
O(edges log edges), a spread O(edges of the nodes it reaches).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nm_lsp.synapses.rules import LASTING_AFTER, LASTING_FLOOR, LASTING_SLOWNESS, QUERY_CAP, half_life_s

DEPTH: Final = 2
HOP: Final = 0.6
TOP: Final = 12
RECALL_FROM: Final = 0.10
HUB_DEGREE: Final = 50

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class EdgeRows:
    """The edges of one namespace in columns: ends (numbers of nodes), weight and when it was so, counts."""

    a: Ints
    b: Ints
    weight: Floats
    at: Floats
    count: Ints
    strong: Ints

    def __len__(self) -> int:
        return len(self.a)

    @property
    def lasting(self) -> NDArray[np.bool_]:
        return (self.strong >= LASTING_AFTER) & (self.weight >= LASTING_FLOOR)

    def weights_at(self, now: float, namespace: str) -> Floats:
        """`Synapse.weight_at` of every row."""
        elapsed = np.maximum(now - self.at, 0.0)
        lasting = self.lasting
        half_life = half_life_s(namespace) * np.where(lasting, LASTING_SLOWNESS, 1.0)
        weights: Floats = self.weight * np.exp2(-elapsed / half_life)
        return np.where(lasting, np.maximum(weights, LASTING_FLOOR), weights)

    def renamed(self, numbers: Mapping[int, int]) -> EdgeRows:
        """The same edges between other nodes."""
        if not numbers or not len(self):
            return self
        top = int(max(self.a.max(), self.b.max(), *numbers)) + 1
        table = np.arange(top, dtype=np.int64)
        for old, new in numbers.items():
            table[old] = new
        return EdgeRows(table[self.a], table[self.b], self.weight, self.at, self.count, self.strong)


NO_EDGES: Final = EdgeRows(*(np.zeros(0, np.int64),) * 2, *(np.zeros(0),) * 2, *(np.zeros(0, np.int64),) * 2)


@dataclass(frozen=True, slots=True)
class Fired:
    """A node reached by a spread, its energy, and the synapse that brought most of it: (from, weight)."""

    node: int
    energy: float
    source: int
    weight: float


class Network:
    """Nodes are numbered 0 … n_nodes − 1. `parts` are (edges, weights as read); for a pair the greatest counts."""

    def __init__(self, n_nodes: int, parts: Sequence[tuple[EdgeRows, Floats]], *, above: float = QUERY_CAP) -> None:
        """Edges whose weight is not `above` are left out: what only questions have lifted is never recalled."""
        a = np.concatenate([rows.a for rows, _ in parts]) if parts else np.zeros(0, np.int64)
        b = np.concatenate([rows.b for rows, _ in parts]) if parts else np.zeros(0, np.int64)
        weight = np.concatenate([weights for _, weights in parts]) if parts else np.zeros(0)
        keep = (weight > above) & (a != b)
        a, b, weight = a[keep], b[keep], weight[keep]
        if len(parts) > 1 and len(a):
            low, high = np.minimum(a, b), np.maximum(a, b)
            order = np.lexsort((-weight, high, low))
            low, high, weight = low[order], high[order], weight[order]
            first = np.ones(len(low), np.bool_)
            first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
            a, b, weight = low[first], high[first], weight[first]
        source, target, weight = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([weight, weight])
        self.n_nodes = n_nodes
        self.n_edges = len(a)
        self.degree: Ints = np.bincount(source, minlength=n_nodes).astype(np.int64)
        self.first: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.degree)])
        self._scale: Floats = np.sqrt(HUB_DEGREE / np.maximum(self.degree, HUB_DEGREE))
        # A node's edges lie together, those that pass most on first.
        order = np.lexsort((target, -weight * self._scale[target], source))
        self.target: Ints = target[order]
        self.weight: Floats = weight[order]

    def spread(self, seeds: Mapping[int, float], *, top: int = TOP, depth: int = DEPTH) -> list[Fired]:
        """The nodes that `seeds` (node → energy in (0, 1]) bring to mind, without the seeds, best first.

        Each hop passes on 0.6 of a node's energy times the weight, scaled by √(50/degree) at either end of degree
        above 50; what arrives adds up, to 1 at most. Nodes below 0.10 are left out; ties go by number of node.
        """
        energy: dict[int, float] = {node: min(value, 1.0) for node, value in seeds.items() if self._knows(node, value)}
        front_nodes = np.array(sorted(energy), np.int64)
        front = np.array([energy[node] for node in front_nodes.tolist()], np.float64)
        is_seed = frozenset(energy)
        reached: dict[int, Fired] = {}
        for _ in range(depth):
            if not len(front_nodes):
                break
            step = self._step(front_nodes, front)
            fresh: list[tuple[int, float]] = []
            for node, value, source, weight in step:
                if node in is_seed:
                    continue
                known = reached.get(node)
                if known is None:
                    reached[node] = Fired(node, value, source, weight)
                    fresh.append((node, value))
                else:
                    # A later hop only adds; the synapse that is named stays the one that came first.
                    reached[node] = Fired(node, min(1.0, known.energy + value), known.source, known.weight)
            front_nodes = np.array([node for node, _ in fresh], np.int64)
            front = np.array([value for _, value in fresh], np.float64)
        found = [fired for fired in reached.values() if fired.energy >= RECALL_FROM]
        return sorted(found, key=lambda fired: (-fired.energy, fired.node))[:top]

    def _knows(self, node: int, value: float) -> bool:
        return 0 <= node < self.n_nodes and math.isfinite(value) and value > 0

    def _step(self, nodes: Ints, energy: Floats) -> list[tuple[int, float, int, float]]:
        """(node, energy, source, weight) for all that the front reaches with enough to matter."""
        counts = np.minimum(self.degree[nodes], _LONGEST)
        if not counts.sum():
            return []
        owner = np.repeat(np.arange(len(nodes)), counts)
        rows = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts) + self.first[nodes][owner]
        target, weight = self.target[rows], self.weight[rows]
        passed = HOP * energy[owner] * weight * self._scale[nodes][owner] * self._scale[target]
        if len(passed) > _FEW:
            # Beyond some thousand edges only what could still add up to a recall is looked at.
            keep = passed >= _NEGLIGIBLE
            target, weight, passed, owner = target[keep], weight[keep], passed[keep], owner[keep]
        if not len(target):
            return []
        order = np.lexsort((-passed, target))
        target, weight, passed, owner = target[order], weight[order], passed[order], owner[order]
        first = np.flatnonzero(np.concatenate([[True], target[1:] != target[:-1]]))
        sums = np.minimum(np.add.reduceat(passed, first), 1.0)
        strongest = np.argsort(-sums, kind="stable")[:_WIDEST]
        strongest.sort()
        first, sums = first[strongest], sums[strongest]
        return list(
            zip(
                target[first].tolist(), sums.tolist(), nodes[owner[first]].tolist(), weight[first].tolist(), strict=True
            )
        )


_LONGEST: Final = 2_000
"""So many edges of a node are followed. A hub of more passes less on by any of them than is ever recalled."""
_FEW: Final = 5_000
_NEGLIGIBLE: Final = 0.002
_WIDEST: Final = 400
"""So many nodes of one hop, the strongest, pass their energy on."""
