"""What the store holds, put into the rows that faces show. Reads `StoredMemory`; writes nothing but an export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from nm_lsp.base.errors import GitUnavailable, InvalidInput, Refused
from nm_lsp.engine.decisions.keeper import login_name
from nm_lsp.engine.memory.page import page_of
from nm_lsp.engine.memory_requests import NamespaceRow, PairRow
from nm_lsp.git import Repository as GitRepository
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.storage.times import utc_text
from nm_lsp.synapses.network import NO_EDGES
from nm_lsp.synapses.page import FIRST_LINE, memory_page
from nm_lsp.synapses.rules import PERSONAL, transition_at

BUNDLE_FORMAT: Final = "nm-lsp-synapses"
BUNDLE_VERSION: Final = 1


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
