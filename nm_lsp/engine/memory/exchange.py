"""What was learned, out of the store and into that of another clone: as a bundle (see `synapses.bundle`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.base.uris import checked_path
from nm_lsp.engine.exporting import export_target, write_target
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.synapses.bundle import FORMAT, Bundle, BundleStep, Learned, from_json, to_json
from nm_lsp.synapses.network import NO_EDGES
from nm_lsp.synapses.page import FIRST_LINE
from nm_lsp.synapses.rules import PERSONAL, PRUNE_BELOW, SHARED, Synapse, transition_at

MAX_BYTES: Final = 100_000_000
TAKEN_IN: Final = (PERSONAL, SHARED)
"""Of a bundle, what these namespaces hold. What somebody learned on a branch is theirs until that is merged."""


def bundle_of(memory: StoredMemory | None, now: float) -> Bundle:
    """Everything learned: edges at their weight now, transitions at their count now."""
    namespaces = {}
    for name in {*memory.edges, *memory.steps} if memory is not None else ():
        assert memory is not None
        rows, names = memory.edges.get(name, NO_EDGES), memory.names
        edges = []
        for a, b, weight, count, strong in zip(
            rows.a.tolist(),
            rows.b.tolist(),
            rows.weights_at(now, name).tolist(),
            rows.count.tolist(),
            rows.strong.tolist(),
            strict=True,
        ):
            low, high = sorted((names[a], names[b]))
            edges.append((low, high, weight, count, strong))
        taken = memory.steps.get(name, {}).items()
        steps = [(names[a], names[b], transition_at(n, now - at, name)) for (a, b), (n, at) in taken]
        namespaces[name] = Learned(edges, steps)
    return Bundle(now, namespaces)


def bundle_text(bundle: Bundle) -> str:
    return json.dumps(to_json(bundle), ensure_ascii=False, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Incoming:
    """What of a bundle can be taken in; `n_unknown` rows name a node that is not here."""

    edges: list[tuple[str, str, Synapse]]
    steps: list[BundleStep]
    at: float
    n_unknown: int


def incoming(bundle: Bundle, is_known: Callable[[str], bool], now: float) -> Incoming:
    """`is_known` tells of a repository-relative node whether it exists. A bundle of the future is one of now."""
    at = min(bundle.at, now)
    edges: list[tuple[str, str, Synapse]] = []
    steps: list[BundleStep] = []
    n_unknown = 0
    known: dict[str, bool] = {}

    def both(a: str, b: str) -> bool:
        return all(known[node] if node in known else known.setdefault(node, is_known(node)) for node in (a, b))

    for learned in (bundle.namespaces[name] for name in TAKEN_IN if name in bundle.namespaces):
        for a, b, weight, count, strong in learned.edges:
            if not both(a, b):
                n_unknown += 1
            elif weight >= PRUNE_BELOW:
                edges.append((a, b, Synapse(weight, at, count, strong)))
        for step in learned.steps:
            if both(*step[:2]):
                steps.append(step)
            else:
                n_unknown += 1
    return Incoming(edges, steps, at, n_unknown)


def read_bundle(folder: Path, source: str, *, may_leave: bool) -> Bundle:
    """The bundle in a file, relative to the folder; elsewhere only if it `may_leave` it. Raises `NotFound`, `Refused`
    and, with the field that is wrong, `InvalidInput`."""
    path = (folder / Path(checked_path(source, "source")).expanduser()).resolve() if source.strip() else folder
    if not may_leave and not path.is_relative_to(folder):
        raise Refused(f"{source!r} lies outside the folder.", hint="Import it with nm-lsp.")
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise Refused(f"{path.name} has {size:,} bytes; a bundle has at most {MAX_BYTES:,}.")
        data = json.loads(path.read_text("utf-8", "surrogateescape"))
    except FileNotFoundError:
        raise NotFound(f"There is no {source!r} here.") from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("source", f"{path.name} is no JSON: {error}") from None
    return from_json(data)


def write_export(folder: Path, to: str, text: str) -> str:
    """Write inside the folder, over nothing but an export of ours; returns the folder-relative path."""
    target = export_target(folder, to)
    try:
        present = target.read_text("utf-8", "replace")[:500] if target.exists() else None
    except OSError as error:
        raise Refused(f"{target} cannot be read: {error.strerror}.") from error
    if present is not None and FORMAT not in present and not present.startswith(FIRST_LINE):
        raise Refused(f"{to} exists and is no export of ours.", hint="Name another file, or remove that one.")
    write_target(target, text)
    return target.relative_to(folder).as_posix()
