"""What the store holds, put into the rows that faces show. Reads `StoredMemory`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.engine.decisions.keeper import login_name
from nm_lsp.engine.memory.page import page_of
from nm_lsp.engine.memory_requests import NamespaceRow, PairRow
from nm_lsp.git import Repository as GitRepository
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.storage.times import utc_text
from nm_lsp.synapses.network import NO_EDGES
from nm_lsp.synapses.page import memory_page
from nm_lsp.synapses.rules import PERSONAL


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


def page(memory: StoredMemory | None, namespace: str) -> str:
    return page_of(memory, namespace) if memory is not None else memory_page(PERSONAL, (), ())


def actor_of(git: GitRepository | None) -> str:
    """Who acts: the repository's user, else the system login."""
    try:
        user = git.user() if git is not None else None
    except GitUnavailable:
        user = None
    return user or login_name()
