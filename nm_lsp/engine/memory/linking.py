"""What goes with a symbol or a file: learned edges as a reader sees them, and the structure of the code beside them.

Structure (calls, imports, lying in one folder) is the namespace that is never stored: read here, at its factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.model import Confidence
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.storage.times import utc_text
from nm_lsp.synapses.rules import (
    QUERY_CAP,
    READ_FACTORS,
    STRUCTURAL,
    TRANSITION_PRUNE,
    read_factors,
    transition_at,
)

Column = NDArray[Any]
_USES_LOOKED_AT: Final = 200


@dataclass(frozen=True, slots=True)
class Linked:
    """A neighbour before it is placed. `id` is folder-relative."""

    id: str
    weight: float
    source: str
    count: int
    lasting: bool
    last_used: str | None


def learned_neighbors(memory: StoredMemory | None, active: str, prefix: str, node: str, now: float) -> list[Linked]:
    """The edges of `node` as a reader of `active` sees them at `now`; of several for a pair, the greatest."""
    number = memory.numbers.get(prefix + node) if memory is not None else None
    if memory is None or number is None:
        return []
    best: dict[str, Linked] = {}
    for namespace, rows, weights in memory.parts(read_factors(active), active, now):
        at = np.flatnonzero(((rows.a == number) | (rows.b == number)) & (weights > QUERY_CAP / 2))
        lasting = rows.lasting
        for row in at.tolist():
            other = int(rows.b[row] if rows.a[row] == number else rows.a[row])
            name = memory.names.get(other, "")
            if other == number or not name.startswith(prefix):
                continue
            linked = Linked(
                name[len(prefix) :],
                round(float(weights[row]), 4),
                namespace,
                int(rows.count[row]),
                bool(lasting[row]),
                utc_text(float(rows.at[row])),
            )
            if linked.id not in best or best[linked.id].weight < linked.weight:
                best[linked.id] = linked
    return list(best.values())


def file_neighbors(
    memory: StoredMemory | None, corpus: Corpus, active: str, prefix: str, path: str, now: float
) -> list[Linked]:
    """What goes with a file as a whole: other files, by all edges between their symbols, and by structure.

    Evidence adds up as 1 − Π (1 − weight) over the edges between two files, then over what one file between them
    passes on, imports in either direction, and lying in one folder; the last two are never stored.
    """
    between = _FileLinks.of(memory, active, prefix, now)
    first_hop = between.links(path)
    found = {linked.id: linked for linked in first_hop}
    for first in first_hop:
        for second in between.links(first.id):
            if second.id != path:
                _add(found, second.id, _HOP * first.weight * second.weight, first.source)
    file = corpus.file_numbers.get(path)
    imported = (
        {corpus.file_path(other) for other in corpus.resolver.imported_files(file)} if file is not None else set()
    )
    importing = {
        corpus.file_path(other)
        for other in corpus.file_numbers.values()
        if file in corpus.resolver.imported_files(other)
    }
    factor = READ_FACTORS[STRUCTURAL]
    for other in (imported | importing) - {path}:
        _add(found, other, factor * _IMPORT_WEIGHT, STRUCTURAL)
    folder = path.rpartition("/")[0]
    for other in corpus.file_numbers:
        if other != path and other.rpartition("/")[0] == folder:
            _add(found, other, factor * _BESIDE_WEIGHT, STRUCTURAL)
    return [replace(linked, weight=round(linked.weight, 4)) for linked in found.values()]


def _add(found: dict[str, Linked], other: str, weight: float, source: str) -> None:
    known = found.get(other)
    if known is None:
        found[other] = Linked(other, weight, source, 0, False, None)
    else:
        found[other] = replace(known, weight=1 - (1 - known.weight) * (1 - weight))


@dataclass(frozen=True, slots=True)
class _FileLinks:
    """The evidence of all edges between files: rows of (file, file, weight, count, lasting, when, namespace)."""

    numbers: dict[str, int]
    names: list[str]
    ends: Column
    weight: Column
    count: Column
    lasting: Column
    at: Column
    source: Column
    namespaces: list[str]

    @classmethod
    def of(cls, memory: StoredMemory | None, active: str, prefix: str, now: float) -> _FileLinks:
        if memory is None:
            return cls({}, [], np.zeros((0, 2), np.int64), *(np.zeros(0, np.int64),) * 5, [])
        numbers: dict[str, int] = {}
        file_of = np.full(memory.n_nodes, -1, np.int64)
        for node, name in memory.names.items():
            if name.startswith(prefix):
                path = name[len(prefix) :].partition("::")[0]
                file_of[node] = numbers.setdefault(path, len(numbers))
        parts = memory.parts(read_factors(active), active, now)
        columns: list[list[Column]] = []
        for at, (_, rows, weights) in enumerate(parts):
            ends = np.sort(np.stack([file_of[rows.a], file_of[rows.b]], axis=1), axis=1)
            keep = (weights > QUERY_CAP) & (ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])
            source = np.full(len(rows), at, np.int64)
            columns.append([part[keep] for part in (ends, weights, rows.count, rows.lasting, rows.at, source)])
        if not columns:
            return cls.of(None, active, prefix, now)
        ends, weight, count, lasting, when, source = (np.concatenate(part) for part in zip(*columns, strict=True))
        return cls(numbers, list(numbers), ends, weight, count, lasting, when, source, [name for name, _, _ in parts])

    def links(self, path: str) -> list[Linked]:
        """The files beside one, each once: 1 − Π (1 − weight) over the edges between the two."""
        number = self.numbers.get(path)
        if number is None:
            return []
        rows = np.flatnonzero((self.ends == number).any(axis=1))
        others = np.where(self.ends[rows, 0] == number, self.ends[rows, 1], self.ends[rows, 0])
        found = []
        for other in np.unique(others).tolist():
            mine = rows[others == other]
            best = mine[np.argmax(self.weight[mine])]
            found.append(
                Linked(
                    self.names[other],
                    float(1 - np.prod(1 - self.weight[mine])),
                    self.namespaces[int(self.source[best])],
                    int(self.count[mine].max()),
                    bool(self.lasting[mine].any()),
                    utc_text(float(self.at[mine].max())),
                )
            )
        return found


_HOP: Final = 0.3
_IMPORT_WEIGHT: Final = 0.8
_BESIDE_WEIGHT: Final = 0.3


def structural_neighbors(corpus: Corpus, node: str, known: set[str]) -> list[Linked]:
    """What `node` uses and what uses it, by calls and imports: never stored, read at the factor of its namespace."""
    doc = corpus.find(node)
    if doc is None:
        return []
    certainty = {Confidence.RESOLVED: 1.0, Confidence.UNIQUE: 0.8, Confidence.AMBIGUOUS: 0.0}
    found: dict[str, float] = {}
    targets = [target for _, targets in corpus.references_from(doc) for target in targets]
    uses = [(target.doc, target.confidence) for target in targets]
    uses += [(source, target.confidence) for source, target in corpus.references_to(doc, _USES_LOOKED_AT)]
    for other, confidence in uses:
        weight = READ_FACTORS[STRUCTURAL] * certainty[confidence] * _STRUCTURAL_WEIGHT
        identity = corpus.id(other)
        if other != doc and weight > 0 and identity not in known:
            found[identity] = max(found.get(identity, 0.0), weight)
    return [Linked(identity, round(weight, 4), STRUCTURAL, 0, False, None) for identity, weight in found.items()]


_STRUCTURAL_WEIGHT: Final = 0.5
"""A resolved use counts as much as two or three joint edits."""


def steps_from(memory: StoredMemory | None, active: str, prefix: str, node: str, now: float) -> dict[str, float]:
    """Folder-relative id → how often it was touched after `node`, decayed to `now`, namespaces by their factors."""
    number = memory.numbers.get(prefix + node) if memory is not None else None
    if memory is None or number is None:
        return {}
    names = memory.renames.get(active, {})
    found: dict[str, float] = {}
    for namespace, factor in read_factors(active).items():
        for (a, b), (n, at) in memory.steps.get(namespace, {}).items():
            seen_a, seen_b = (a, b) if namespace == active else (names.get(a, a), names.get(b, b))
            count = transition_at(n, now - at, namespace) * factor
            name = memory.names.get(seen_b, "")
            if seen_a == number and count >= TRANSITION_PRUNE * factor and name.startswith(prefix):
                identity = name[len(prefix) :]
                found[identity] = max(found.get(identity, 0.0), count)
    return found
