"""What was learned as plain data that another clone can take in: versioned, sorted, checked field by field.

    {"format": "nm-lsp-synapses", "version": 1, "time": "2026-01-31T12:00:00.000000Z",
     "namespaces": {"personal": {"edges": [[a, b, weight, count, strong]], "transitions": [[a, b, count]]}}}

Nodes are repository-relative ids; weights and counts are those at `time`. Pure: no file is read here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from nm_lsp.base.errors import InvalidInput
from nm_lsp.synapses.rules import TRANSITION_CAP, check_weight

FORMAT: Final = "nm-lsp-synapses"
VERSION: Final = 1
MAX_ROWS: Final = 200_000
"""Edges and transitions of a bundle together."""
MAX_ID: Final = 2_000
"""Characters of a node id."""
MAX_COUNT: Final = 10**9

BundleEdge = tuple[str, str, float, int, int]
"""Two node ids, the weight, how often it was activated, and how often strongly."""
BundleStep = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class Learned:
    """What one namespace holds."""

    edges: Sequence[BundleEdge]
    steps: Sequence[BundleStep]


@dataclass(frozen=True, slots=True)
class Bundle:
    """`at` in Unix seconds."""

    at: float
    namespaces: Mapping[str, Learned]


def to_json(bundle: Bundle) -> dict[str, object]:
    """Plain data, ready for `json.dumps`; the same for the same content."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "time": f"{datetime.fromtimestamp(bundle.at, UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        "namespaces": {
            name: {
                "edges": sorted([*edge[:2], round(edge[2], 4), *edge[3:]] for edge in learned.edges),
                "transitions": sorted([a, b, round(n, 2)] for a, b, n in learned.steps),
            }
            for name, learned in sorted(bundle.namespaces.items())
        },
    }


def from_json(data: object) -> Bundle:
    """The bundle in plain data. Raises `InvalidInput`, whose field is a path such as `namespaces.personal.edges[3]`."""
    whole = _object(data, "bundle", ("format", "version", "time", "namespaces"))
    if whole["format"] != FORMAT:
        raise InvalidInput("format", f"is not {FORMAT!r}", hint="Give a JSON export of `nm-lsp memory export`.")
    if whole["version"] != VERSION:
        raise InvalidInput("version", f"{whole['version']!r} is not {VERSION}, the one that is known here")
    namespaces = whole["namespaces"]
    if not isinstance(namespaces, dict):
        raise InvalidInput("namespaces", "is no object")
    n_rows = 0
    found = {}
    for name, content in namespaces.items():
        where = f"namespaces.{name}"
        part = _object(content, where, ("edges", "transitions"))
        edges, steps = _rows(part["edges"], f"{where}.edges"), _rows(part["transitions"], f"{where}.transitions")
        n_rows += len(edges) + len(steps)
        if n_rows > MAX_ROWS:
            raise InvalidInput(where, f"brings the rows to {n_rows:,}; a bundle has at most {MAX_ROWS:,}")
        found[name] = Learned(
            [_edge(row, f"{where}.edges[{at}]") for at, row in enumerate(edges)],
            [_step(row, f"{where}.transitions[{at}]") for at, row in enumerate(steps)],
        )
    return Bundle(_time(whole["time"]), found)


def _object(data: object, where: str, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InvalidInput(where, "is no object")
    for key in keys:
        if key not in data:
            raise InvalidInput(where, f"{key!r} is missing")
    unknown = sorted(map(str, data.keys() - set(keys)))
    if unknown:
        raise InvalidInput(where, f"{unknown[0][:80]!r} is no field of it")
    return data


def _rows(data: object, where: str) -> list[object]:
    if not isinstance(data, list):
        raise InvalidInput(where, "is no list")
    return data


def _edge(row: object, where: str) -> BundleEdge:
    if not isinstance(row, list) or len(row) != 5:
        raise InvalidInput(where, "is not [node, node, weight, count, strong]")
    a, b = _ends(row, where)
    weight = _number(row[2], f"{where}[2]")
    check_weight(weight, f"{where}[2]")
    count, strong = _count(row[3], f"{where}[3]"), _count(row[4], f"{where}[4]")
    if strong > count:
        raise InvalidInput(f"{where}[4]", f"{strong} strong activations are more than the {count} of all")
    return a, b, weight, count, strong


def _step(row: object, where: str) -> BundleStep:
    if not isinstance(row, list) or len(row) != 3:
        raise InvalidInput(where, "is not [node, node, count]")
    a, b = _ends(row, where)
    n = _number(row[2], f"{where}[2]")
    if not (math.isfinite(n) and 0 <= n <= TRANSITION_CAP):
        raise InvalidInput(f"{where}[2]", f"{n} is no number from 0 to {TRANSITION_CAP:g}")
    return a, b, n


def _ends(row: list[Any], where: str) -> tuple[str, str]:
    a, b = _node(row[0], f"{where}[0]"), _node(row[1], f"{where}[1]")
    if a == b:
        raise InvalidInput(f"{where}[1]", "is the node it starts from")
    return a, b


def _node(data: object, where: str) -> str:
    if not isinstance(data, str) or not data or len(data) > MAX_ID or not data.isprintable():
        raise InvalidInput(where, "is no node id, which is text on one line")
    path = data.partition("::")[0]
    if path.startswith("/") or "\\" in path or {"", ".", ".."} & set(path.split("/")):
        raise InvalidInput(where, f"{data[:80]!r} does not begin with a path inside the repository")
    return data


def _number(data: object, where: str) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise InvalidInput(where, "is no number")
    try:
        return float(data)
    except OverflowError:
        raise InvalidInput(where, "is too great a number") from None


def _count(data: object, where: str) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or not 0 <= data <= MAX_COUNT:
        raise InvalidInput(where, f"is no whole number from 0 to {MAX_COUNT:,}")
    return data


def _time(data: object) -> float:
    try:
        at = datetime.fromisoformat(data) if isinstance(data, str) else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidInput("time", "is no ISO 8601 time with its zone")
    return at.timestamp()
