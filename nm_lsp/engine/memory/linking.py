"""What goes with a symbol or a file: learned edges as a reader sees them, and the structure of the code beside them.

Structure (calls, imports, lying in one folder) is the namespace that is never stored: read here, at its factor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nm_lsp.graph.model import Confidence
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.storage.times import utc_text
from nm_lsp.synapses.pairs import path_of
from nm_lsp.synapses.rules import (
    QUERY_CAP,
    READ_FACTORS,
    STRUCTURAL,
    TRANSITION_PRUNE,
    read_factors,
    transition_at,
)

FREQUENT: Final = "frequent"
"""The source of a file that is listed because it changes often, with whatever else."""
_NEAR: Final = 0.2
"""What an import, a common folder or a common name counts: about what opening one file beside the other teaches."""
_OFTEN: Final = 0.02
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
                float(weights[row]),
                namespace,
                int(rows.count[row]),
                bool(lasting[row]),
                utc_text(float(rows.at[row])),
            )
            if linked.id not in best or best[linked.id].weight < linked.weight:
                best[linked.id] = linked
    return list(best.values())


def node_at(corpus: Corpus, file: int, line: int) -> str:
    """The innermost symbol of a line of a file, else the file."""
    spans = ((doc, corpus.node(doc).span) for doc in corpus.file_docs(file))
    around = [doc for doc, span in spans if span.start_line <= line <= span.end_line]
    return str(corpus.id(around[-1])) if around else corpus.file_path(file)


def file_neighbors(
    memory: StoredMemory | None, corpus: Corpus, active: str, prefix: str, path: str, now: float
) -> list[Linked]:
    """What goes with a file as a whole, of all files of the index.

    First by what was learned: the strongest edge between the two files or their symbols, which is that of the files
    themselves where they changed together (it counts commits, however many symbols they touched). Evidence of
    structure adds to it as 1 − Π (1 − weight): an import in either direction, one folder, one name (`a.c` and `a.h`,
    `cart.py` and `test_cart.py`). Least of all, and for the tail of the list, counts how strongly a file goes with
    anything, since what changes often will change again. Neither of the two is stored.
    """
    learned, strongest = _learned_between_files(memory, active, prefix, path, now)
    beside = _imports_around(corpus, path)
    folder, stem = path.rpartition("/")[0], _stem(path)
    found = []
    for other in corpus.file_numbers:
        if other == path:
            continue
        n_near = (other in beside) + (other.rpartition("/")[0] == folder) + (_stem(other) == stem)
        left = (1 - READ_FACTORS[STRUCTURAL] * _NEAR) ** n_near
        left *= 1 - READ_FACTORS[STRUCTURAL] * _OFTEN * strongest.get(other, 0.0)
        known = learned.get(other)
        if known is not None:
            found.append(replace(known, weight=1 - (1 - known.weight) * left))
        elif left < 1:
            found.append(Linked(other, 1 - left, STRUCTURAL if n_near else FREQUENT, 0, False, None))
    return found


def _imports_around(corpus: Corpus, path: str) -> set[str]:
    """The files that one imports or is imported by."""
    file = corpus.file_numbers.get(path)
    if file is None:
        return set()
    imports = corpus.resolver.imported_files
    around = {*imports(file), *(other for other in corpus.file_numbers.values() if file in imports(other))}
    return {corpus.file_path(other) for other in around}


def _stem(path: str) -> str:
    """A file's name without its endings and the marks of a test."""
    return _TEST_MARKS.sub("", path.rpartition("/")[2].lstrip(".").partition(".")[0])


_TEST_MARKS: Final = re.compile(r"^test_|_(test|tests|spec)$")


def _learned_between_files(
    memory: StoredMemory | None, active: str, prefix: str, path: str, now: float
) -> tuple[dict[str, Linked], dict[str, float]]:
    """(other file → the strongest edge between it and `path`, file → its strongest edge to any other file), as a
    reader of `active` sees them at `now`."""
    if memory is None:
        return {}, {}
    numbers: dict[str, int] = {}
    file_of = np.full(memory.n_nodes, -1, np.int64)
    for node, name in memory.names.items():
        if name.startswith(prefix):
            file_of[node] = numbers.setdefault(path_of(name[len(prefix) :]), len(numbers))
    paths, mine = list(numbers), numbers.get(path, -2)
    strongest = np.zeros(len(paths))
    learned: dict[str, Linked] = {}
    for namespace, rows, weights in memory.parts(read_factors(active), active, now):
        a, b = file_of[rows.a], file_of[rows.b]
        # What only questions have lifted tells nothing; what was once taught strongly does, however faded.
        counts = ((weights > QUERY_CAP) | (rows.strong > 0)) & (a != b)
        for ends in (a, b):
            inside = counts & (ends >= 0)
            np.maximum.at(strongest, ends[inside], weights[inside])
        lasting = rows.lasting
        for row in np.flatnonzero(counts & (a >= 0) & (b >= 0) & ((a == mine) | (b == mine))).tolist():
            other = paths[int(b[row] if a[row] == mine else a[row])]
            weight = float(weights[row])
            if other not in learned or learned[other].weight < weight:
                learned[other] = Linked(
                    other, weight, namespace, int(rows.count[row]), bool(lasting[row]), utc_text(float(rows.at[row]))
                )
    return learned, dict(zip(paths, strongest.tolist(), strict=True))


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
    return [Linked(identity, weight, STRUCTURAL, 0, False, None) for identity, weight in found.items()]


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
