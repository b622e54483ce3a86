"""What one write transaction of the synapse store does to nodes, edges, transitions and namespaces.

The transaction itself is the caller's (`SynapseStore`); nothing here commits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nm_lsp.storage import synapse_schema as sql
from nm_lsp.synapses.rules import TRANSITION_CAP, Synapse, transition_at


class SynapseWrite:
    """The statements of one write transaction. Rows that it writes bear its `revision`."""

    def __init__(self, connection: sqlite3.Connection, revision: int) -> None:
        self.connection = connection
        self._revision = revision
        self._nodes: dict[str, int] = {}

    def known_node(self, name: str) -> int | None:
        row = self.connection.execute(sql.NODE_ID, (storable(name),)).fetchone()
        return int(row[0]) if row else None

    def node(self, name: str) -> int:
        number = self._nodes.get(name)
        if number is None:
            number = self.known_node(name)
            if number is None:
                number = int(self.connection.execute(sql.NEW_NODE, (storable(name),)).fetchone()[0])
            self._nodes[name] = number
        return number

    def known_namespace(self, name: str) -> int | None:
        row = self.connection.execute(sql.NAMESPACE_ID, (storable(name),)).fetchone()
        return int(row[0]) if row else None

    def namespace(self, name: str) -> int:
        known = self.known_namespace(name)
        if known is not None:
            return known
        return int(self.connection.execute(sql.NEW_NAMESPACE, (storable(name),)).fetchone()[0])

    def is_new(self, key: bytes, source: str, at: float) -> bool:
        is_known = self.connection.execute(sql.SEEN, (key,)).fetchone() is not None
        self.connection.execute(sql.PUT_SEEN, (key, source, at))
        return not is_known

    def get(self, ns: int, a: int, b: int) -> Synapse:
        row = self.connection.execute(sql.EDGE, (ns, a, b)).fetchone()
        return Synapse(*row) if row else Synapse()

    def put(self, ns: int, a: int, b: int, synapse: Synapse) -> None:
        weight = min(max(synapse.weight, 0.0), 1.0)
        self.connection.execute(
            sql.PUT_EDGE, (ns, a, b, weight, synapse.at, synapse.count, synapse.strong, self._revision)
        )

    def change(self, ns: int, a: str, b: str, how: Callable[[Synapse], Synapse | None]) -> int:
        if a == b:
            return 0
        low, high = sorted((self.node(a), self.node(b)))
        changed = how(self.get(ns, low, high))
        if changed is None:
            return 0
        self.put(ns, low, high, changed)
        return 1

    def step(self, ns: int, namespace: str, a: str, b: str, now: float) -> int:
        self.add_steps(ns, namespace, self.node(a), self.node(b), 1.0, now)
        return 1

    def add_steps(self, ns: int, namespace: str, a: int, b: int, n: float, now: float) -> None:
        row = self.connection.execute(sql.TRANSITION, (ns, a, b)).fetchone()
        before = transition_at(row[0], now - row[1], namespace) if row else 0.0
        self.connection.execute(sql.PUT_TRANSITION, (ns, a, b, min(before + n, TRANSITION_CAP), now))

    def raise_step(self, ns: int, namespace: str, a: str, b: str, n: float, at: float) -> int:
        ends = self.node(a), self.node(b)
        row = self.connection.execute(sql.TRANSITION, (ns, *ends)).fetchone()
        if row is not None and transition_at(row[0], at - row[1], namespace) >= n:
            return 0
        self.connection.execute(sql.PUT_TRANSITION, (ns, *ends, min(n, TRANSITION_CAP), at))
        return 1

    def learned_at(self, default: float) -> float:
        return fact(self.connection, "learned", default)

    def count(self, counters: Mapping[str, int]) -> None:
        self.connection.executemany(sql.COUNT, [(name, value) for name, value in counters.items() if value])


@dataclass(frozen=True, slots=True)
class Reinforce:
    """Both were touched together, with that strength (0 to 1)."""

    strength: float
    now: float
    namespace: str

    def __call__(self, edge: Synapse) -> Synapse:
        return edge.reinforced(self.strength, self.now, self.namespace)


@dataclass(frozen=True, slots=True)
class Lift:
    """A question's hits. `now` is when something was learned last, so that asking moves no clock."""

    now: float
    namespace: str

    def __call__(self, edge: Synapse) -> Synapse | None:
        return edge.lifted(self.now, self.namespace)


@dataclass(frozen=True, slots=True)
class Raise:
    """An edge of a bundle: taken where it is greater than what is there."""

    theirs: Synapse
    now: float
    namespace: str

    def __call__(self, mine: Synapse) -> Synapse | None:
        is_greater = self.theirs.weight_at(self.now, self.namespace) > mine.weight_at(self.now, self.namespace)
        return self.theirs if is_greater else None


def renamed_nodes(write: SynapseWrite, renames: Mapping[str, str]) -> dict[int, int]:
    """Number of each stored node that `renames` means → that of its new name."""
    found: dict[int, int] = {}
    for old, new in ((storable(old), storable(new)) for old, new in renames.items()):
        if old == new:
            continue
        # The statement uses `substr`, since `_` and `%` in a path mean themselves.
        rows = write.connection.execute(_NODES_AT, (old,)).fetchall()
        for number, name in rows:
            found[number] = write.node(new + name[len(old) :])
    return found


def move_edges(write: SynapseWrite, ns: int, namespace: str, old: int, new: int, now: float) -> None:
    """The edges and transitions of node `old` become those of `new`, in the namespace with number `ns`."""
    for a, b, *fields in write.connection.execute(sql.EDGES_OF, (ns, old, old)).fetchall():
        other = b if a == old else a
        write.connection.execute(sql.DROP_EDGE, (ns, a, b))
        if other == new:
            continue
        low, high = sorted((new, other))
        moved, there = Synapse(*fields), write.get(ns, low, high)
        # Both may have been taught where a name was used before: what is there already joins in full.
        write.put(ns, low, high, there.joined(moved, 1.0, now, namespace, namespace) if there.count else moved)
    for a, b, n, at in write.connection.execute(sql.TRANSITIONS_OF, (ns, old, old)).fetchall():
        write.connection.execute(sql.DROP_TRANSITION, (ns, a, b))
        ends = (new if a == old else a, new if b == old else b)
        if ends[0] != ends[1]:
            write.add_steps(ns, namespace, *ends, transition_at(n, now - at, namespace), now)


def clear(connection: sqlite3.Connection, ns: int) -> None:
    """Empty the namespace with number `ns`."""
    for table in ("edges", "transitions", "renames"):
        connection.execute(f"DELETE FROM {table} WHERE ns = ?", (ns,))  # noqa: S608 - names of ours


def drop_unused_nodes(connection: sqlite3.Connection) -> None:
    """Forget the names of nodes that no edge, transition or rename has any more."""
    connection.execute(
        """DELETE FROM nodes WHERE id NOT IN (SELECT a FROM edges UNION SELECT b FROM edges UNION
        SELECT a FROM transitions UNION SELECT b FROM transitions UNION SELECT old FROM renames UNION
        SELECT new FROM renames)"""
    )


def storable(name: str) -> str:
    """The name of a file or branch as SQLite takes it: bytes that are no UTF-8 are written out. Such a name is kept
    apart from all others and recalls nothing."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def fact(connection: sqlite3.Connection, name: str, default: float) -> float:
    """One number that the store keeps about itself."""
    row = connection.execute(sql.FACT, (name,)).fetchone()
    return float(row[0]) if row else default


_NODES_AT = """SELECT id, name FROM nodes WHERE name = ?1 OR substr(name, 1, length(?1) + 2) = ?1 || '::'
    OR substr(name, 1, length(?1) + 1) = ?1 || '/'"""
