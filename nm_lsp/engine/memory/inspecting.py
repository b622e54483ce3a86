"""What the store holds, put into the rows that faces show. Reads `StoredMemory`; writes nothing but an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nm_lsp.base.errors import GitUnavailable, InvalidInput, Refused
from nm_lsp.engine.decisions.keeper import login_name
from nm_lsp.engine.memory.page import page_of
from nm_lsp.engine.memory_requests import NamespaceRow, PairRow
from nm_lsp.git import Repository as GitRepository
from nm_lsp.graph.model import Confidence
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.storage.times import utc_text
from nm_lsp.synapses.network import NO_EDGES
from nm_lsp.synapses.page import FIRST_LINE, memory_page
from nm_lsp.synapses.rules import (
    PERSONAL,
    QUERY_CAP,
    READ_FACTORS,
    STRUCTURAL,
    TRANSITION_PRUNE,
    read_factors,
    transition_at,
)

BUNDLE_FORMAT: Final = "nm-lsp-synapses"
BUNDLE_VERSION: Final = 1
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


def namespace_rows(memory: StoredMemory | None, factors: Mapping[str, float]) -> tuple[NamespaceRow, ...]:
    if memory is None:
        return ()
    names = sorted({*memory.edges, *(name for name, steps in memory.steps.items() if steps)})
    rows = []
    for name in names:
        edges = memory.edges.get(name, NO_EDGES)
        n_steps = len(memory.steps.get(name, ()))
        rows.append(NamespaceRow(name, len(edges), int(edges.lasting.sum()), n_steps, factors.get(name, 0.0)))
    return tuple(rows)


def pair_rows(memory: StoredMemory | None, namespace: str | None, limit: int, now: float) -> tuple[PairRow, ...]:
    """The strongest pairs, repository-relative, at their own weight now."""
    if memory is None:
        return ()
    found: list[PairRow] = []
    for name in sorted(memory.edges) if namespace is None else [namespace]:
        rows = memory.edges[name]
        weights, lasting = rows.weights_at(now, name), rows.lasting
        for row in np.argsort(-weights, kind="stable")[:limit].tolist():
            a, b = sorted((memory.names[int(rows.a[row])], memory.names[int(rows.b[row])]))
            weight = round(float(weights[row]), 4)
            last = utc_text(float(rows.at[row]))
            found.append(PairRow(name, a, b, weight, int(rows.count[row]), bool(lasting[row]), last))
    found.sort(key=lambda pair: (-pair.weight, pair.a, pair.b, pair.namespace))
    return tuple(found[:limit])


def bundle(memory: StoredMemory | None, now: float) -> dict[str, object]:
    """Everything learned as plain data: edges at their weight now, transitions at their count now."""
    namespaces: dict[str, object] = {}
    for name in sorted({*memory.edges, *memory.steps}) if memory is not None else ():
        assert memory is not None
        rows = memory.edges.get(name, NO_EDGES)
        weights = rows.weights_at(now, name)
        edges = []
        for row in range(len(rows)):
            a, b = sorted((memory.names[int(rows.a[row])], memory.names[int(rows.b[row])]))
            edges.append([a, b, round(float(weights[row]), 4), int(rows.count[row]), int(rows.strong[row])])
        steps = [
            [memory.names[a], memory.names[b], round(transition_at(n, now - at, name), 2)]
            for (a, b), (n, at) in memory.steps.get(name, {}).items()
        ]
        namespaces[name] = {"edges": sorted(edges), "transitions": sorted(steps)}
    return {"format": BUNDLE_FORMAT, "version": BUNDLE_VERSION, "time": utc_text(now), "namespaces": namespaces}


def page(memory: StoredMemory | None, namespace: str) -> str:
    return page_of(memory, namespace) if memory is not None else memory_page(PERSONAL, (), ())


def write_export(folder: Path, to: str, text: str) -> str:
    """Write inside the folder, over nothing but an export of ours; returns the folder-relative path."""
    target = (folder / to).resolve()
    if not target.is_relative_to(folder):
        raise InvalidInput("to", f"{to!r} lies outside the folder", hint=f"Give a path below {folder}.")
    if target.is_dir():
        raise InvalidInput("to", f"{to!r} is a folder", hint="Give the name of a file.")
    try:
        if target.exists():
            present = target.read_text("utf-8", "replace")[:500]
            if BUNDLE_FORMAT not in present and not present.startswith(FIRST_LINE):
                raise Refused(f"{to} exists and is no export of ours.", hint="Name another file, or remove that one.")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + ".partial")
        temporary.write_text(text, "utf-8", "surrogateescape")
        temporary.replace(target)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}.") from error
    return target.relative_to(folder).as_posix()


def actor_of(git: GitRepository | None) -> str:
    """Who acts: the repository's user, else the system login."""
    try:
        user = git.user() if git is not None else None
    except GitUnavailable:
        user = None
    return user or login_name()
