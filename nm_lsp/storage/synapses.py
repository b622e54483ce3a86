"""`synapses.db`: what use has taught, by namespace; the counters of the learner and of savings.

Guarantees: a batch is whole or absent; counts are exact over several processes (each write reads and writes in one
transaction); weights stay in [0, 1]; what another reporter has counted already is not counted again; a file that is
damaged or not ours is set aside and a new one begun. Times are Unix seconds and arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage import damage
from nm_lsp.storage import synapse_schema as sql
from nm_lsp.storage.database import Database, Failpoint, Options, no_failpoint, open_anew_if_damaged, open_database
from nm_lsp.storage.synapse_reading import StoredMemory, read_anew, read_newer
from nm_lsp.storage.synapse_schema import SCHEMA
from nm_lsp.storage.synapse_writing import (
    Lift,
    Raise,
    Reinforce,
    SynapseWrite,
    clear,
    drop_unused_nodes,
    fact,
    move_edges,
    renamed_nodes,
    storable,
)
from nm_lsp.synapses.rules import (
    PERSONAL,
    READ_FACTORS,
    Synapse,
    check_strength,
    check_weight,
    transition_at,
)

MAX_EDGES = 100_000
"""Edges of one namespace; the weakest beyond it are forgotten when the store is settled."""
MAX_TRANSITIONS = 20_000
SEEN_KEPT_S = 3 * 86_400.0
JUMP_S = 60 * 86_400.0
"""A clock that moved further between two writes, or back by a day, deletes nothing until it has run on for a day."""
DAY_S = 86_400.0

_OPTIONS = Options(synchronous="NORMAL", busy_ms=1_000)


@dataclass(frozen=True, slots=True)
class Teaching:
    """One batch. `pairs`: node ids and strength; `lifted`: pairs that only a question named; `steps`: transitions.

    `seen` are the contents the batch came from as (key, source): pairs whose key another kind of source has counted
    are the caller's to leave out (`already_seen`). `commit`: the batch is absent if that key is known already.
    """

    namespace: str
    at: float
    pairs: Sequence[tuple[str, str, float]] = ()
    lifted: Sequence[tuple[str, str]] = ()
    steps: Sequence[tuple[str, str]] = ()
    seen: Sequence[tuple[bytes, str]] = ()
    commit: bytes | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A namespace of a branch: the commit it was last seen at, and whether it had commits of its own."""

    namespace: str
    tip: str | None
    diverged: bool


@dataclass(frozen=True, slots=True)
class Settled:
    n_edges: int
    n_transitions: int


class SynapseStore:
    """Thread-safe. `set_aside` is where an unusable file went when this one was opened, if it was."""

    def __init__(self, database: Database, set_aside: Path | None) -> None:
        self._database = database
        self.set_aside = set_aside
        self._memory: StoredMemory | None = None

    @classmethod
    def open(cls, path: Path, now: float, *, failpoint: Failpoint = no_failpoint) -> SynapseStore:
        """Open or create. Raises `StoreProblem` where the folder cannot be used or the file is a newer program's."""
        try:
            return cls(*open_anew_if_damaged(path, SCHEMA, _OPTIONS, now, failpoint=failpoint))
        except StoreProblem as problem:
            if problem.reason != "foreign":
                raise
        aside = damage.set_aside(path, now, lambda: _is_foreign(path))
        return cls(open_database(path, SCHEMA, _OPTIONS, failpoint=failpoint), aside)

    @property
    def path(self) -> Path:
        return self._database.path

    def stamp(self) -> tuple[int, int, int]:
        return self._database.stamp()

    def close(self) -> None:
        self._database.close()

    # -- reading ------------------------------------------------------------------------------------------------------

    def memory(self) -> StoredMemory:
        """All that is stored, as of now; costs little where little changed since the last call."""
        stamp = self.stamp()
        known = self._memory
        if known is not None and known.stamp == stamp:
            return known
        with self._database.reading() as connection:
            memory = read_newer(connection, known, stamp) if known is not None else None
            self._memory = memory or read_anew(connection, stamp)
        return self._memory

    def already_seen(self, keys: Sequence[bytes], source: str | None = None) -> set[bytes]:
        """Those of `keys` that another kind of source than `source` has counted; without one, that any has."""
        with self._database.reading() as connection:
            rows = {key: connection.execute(sql.SEEN, (key,)).fetchone() for key in keys}
        return {key for key, row in rows.items() if row is not None and row[0] != source}

    def counters(self) -> dict[str, int]:
        with self._database.reading() as connection:
            return dict(connection.execute("SELECT name, value FROM counters ORDER BY name").fetchall())

    def tip(self, namespace: str) -> str | None:
        """The commit that HEAD was last seen at while `namespace` was written."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT tip FROM namespaces WHERE name = ?", (namespace,)).fetchone()
        return str(row[0]) if row is not None and row[0] is not None else None

    def branches(self) -> list[BranchRow]:
        """The namespaces of branches that hold anything."""
        with self._database.reading() as connection:
            rows = connection.execute(_BRANCHES).fetchall()
        return [BranchRow(name, tip, bool(diverged)) for name, tip, diverged in rows]

    def n_bytes(self) -> int:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            ).fetchone()
        return int(row[0])

    # -- learning -----------------------------------------------------------------------------------------------------

    def teach(self, batch: Teaching) -> int:
        """Take in one batch; returns the rows of edges and transitions written. 0 for a commit that is known."""
        for _, _, strength in batch.pairs:
            check_strength(strength)
        with self._writing(batch.at, learned=bool(batch.pairs or batch.steps)) as write:
            if batch.commit is not None and not write.is_new(batch.commit, "commit", batch.at):
                return 0
            for key, source in batch.seen:
                write.connection.execute(sql.PUT_SEEN, (key, source, batch.at))
            n_rows = 0
            namespace = write.namespace(batch.namespace) if batch.pairs or batch.lifted or batch.steps else 0
            for a, b, strength in batch.pairs:
                n_rows += write.change(namespace, a, b, Reinforce(strength, batch.at, batch.namespace))
            for a, b in batch.lifted:
                n_rows += write.change(namespace, a, b, Lift(write.learned_at(batch.at), batch.namespace))
            for a, b in batch.steps:
                n_rows += write.step(namespace, batch.namespace, a, b, batch.at)
            write.count(batch.counters)
        return n_rows

    def count(self, counters: Mapping[str, int], now: float) -> None:
        """Add to counters."""
        with self._writing(now, learned=False) as write:
            write.count(counters)

    def weaken(self, namespace: str, node: str, now: float) -> int:
        """Negative feedback: all edges of `node` in `namespace` × 0.5, never below a lasting floor; how many."""
        with self._writing(now) as write:
            number, ns = write.known_node(node), write.known_namespace(namespace)
            if number is None or ns is None:
                return 0
            rows = write.connection.execute(sql.EDGES_OF, (ns, number, number)).fetchall()
            for a, b, *fields in rows:
                write.put(ns, a, b, Synapse(*fields).halved(now, namespace))
        return len(rows)

    def take_in(
        self,
        namespace: str,
        edges: Sequence[tuple[str, str, Synapse]],
        steps: Sequence[tuple[str, str, float]],
        at: float,
        now: float,
    ) -> tuple[int, int]:
        """What a bundle of the time `at` holds: of each edge and transition the greater stays, so that a bundle can be
        taken in twice. Returns the edges and transitions that changed. Raises `InvalidInput` for an impossible weight,
        before anything is written."""
        for _, _, synapse in edges:
            check_weight(synapse.weight)
        with self._writing(now) as write:
            ns = write.namespace(namespace)
            n_edges = sum(write.change(ns, a, b, Raise(synapse, now, namespace)) for a, b, synapse in edges)
            n_steps = sum(write.raise_step(ns, namespace, a, b, n, at) for a, b, n in steps)
        return n_edges, n_steps

    # -- names and namespaces -----------------------------------------------------------------------------------------

    def rename(self, namespace: str, renames: Mapping[str, str], now: float) -> int:
        """Nodes are called otherwise from now on, as `namespace` sees it; a file or folder stands for all in it.

        The edges of `namespace` itself are rewritten; what it reads of other namespaces is read under the new names.
        Returns how many nodes were renamed.
        """
        with self._writing(now, deletes=True) as write:
            ns = write.namespace(namespace)
            numbers = renamed_nodes(write, renames)
            for old, new in numbers.items():
                move_edges(write, ns, namespace, old, new, now)
                if namespace != PERSONAL:
                    write.connection.execute("UPDATE renames SET new = ? WHERE ns = ? AND new = ?", (new, ns, old))
                    write.connection.execute("DELETE FROM renames WHERE ns = ? AND old = ?", (ns, new))
                    write.connection.execute("INSERT OR REPLACE INTO renames VALUES (?, ?, ?)", (ns, old, new))
        return len(numbers)

    def note_branch(self, namespace: str, tip: str | None, *, diverged: bool, now: float) -> None:
        with self._writing(now, learned=False) as write:
            write.connection.execute(
                "UPDATE namespaces SET tip = ?, diverged = ? WHERE name = ?", (tip, int(diverged), storable(namespace))
            )

    def join(self, branch: str, now: float) -> int:
        """A merged branch: its edges and transitions join `personal` at its read weight and leave their own namespace.

        Returns the number of edges that moved. `branch` is the namespace.
        """
        factor = READ_FACTORS[PERSONAL]
        with self._writing(now, deletes=True) as write:
            source, target = write.known_namespace(branch), write.namespace(PERSONAL)
            if source is None:
                return 0
            for old, new in write.connection.execute("SELECT old, new FROM renames WHERE ns = ?", (source,)).fetchall():
                move_edges(write, target, PERSONAL, old, new, now)
            rows = write.connection.execute(sql.EDGES_SINCE, (source, -1)).fetchall()
            for a, b, *fields in rows:
                theirs = Synapse(*fields)
                mine = write.get(target, a, b)
                write.put(target, a, b, mine.joined(theirs, factor, now, PERSONAL, branch))
            for a, b, n, at in write.connection.execute(sql.TRANSITIONS, (source,)).fetchall():
                write.add_steps(target, PERSONAL, a, b, transition_at(n, now - at, branch) * factor, now)
            clear(write.connection, source)
            write.connection.execute("UPDATE namespaces SET tip = NULL, diverged = 0 WHERE id = ?", (source,))
        return len(rows)

    def reset(self, namespaces: Sequence[str] | None, now: float) -> int:
        """Forget everything in `namespaces` (None: in all). Counters stay. Returns how many edges there were."""
        with self._writing(now, deletes=True) as write:
            known = dict(write.connection.execute("SELECT name, id FROM namespaces").fetchall())
            n_edges = 0
            for name in known if namespaces is None else namespaces:
                ns = known.get(name)
                if ns is not None:
                    n_edges += write.connection.execute("SELECT count(*) FROM edges WHERE ns = ?", (ns,)).fetchone()[0]
                    clear(write.connection, ns)
            drop_unused_nodes(write.connection)
        return n_edges

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def is_time_credible(self, now: float) -> bool:
        """Whether the clock has run without a jump for a day, so that what it says may delete something."""
        with self._database.reading() as connection:
            seen, since = fact(connection, "seen", now), fact(connection, "since", now)
        is_jump = now - seen > JUMP_S or now < seen - DAY_S
        return not is_jump and now - since >= DAY_S

    def settle(
        self,
        now: float,
        *,
        only: Sequence[str] | None = None,
        is_gone: Callable[[str], bool] | None = None,
        gone_since_s: float = 3_600.0,
    ) -> Settled:
        """Delete what has decayed away by `now`: edges below 0.01, transitions below 0.5, the weakest beyond the
        limits, and, in the namespaces `only`, edges of nodes that `is_gone` says are no more.

        `only` restricts all of it; None means every namespace.
        """
        memory = self.memory()
        names = list(memory.edges) if only is None else [name for name in only if name in memory.edges]
        dropped: dict[str, list[tuple[int, int]]] = {}
        for name in names:
            gone = (
                frozenset(n for n, node in memory.names.items() if is_gone(node)) if is_gone and only else frozenset()
            )
            pairs = memory.forgotten(name, now, MAX_EDGES, gone, gone_since_s)
            if pairs:
                dropped[name] = pairs
        steps = {name: memory.forgotten_steps(name, now, MAX_TRANSITIONS) for name in names}
        n_steps = sum(map(len, steps.values()))
        n_edges = sum(map(len, dropped.values()))
        if n_edges or n_steps:
            with self._writing(now, learned=False, deletes=True) as write:
                for name in names:
                    ns = write.namespace(name)
                    write.connection.executemany(sql.DROP_EDGE, [(ns, a, b) for a, b in dropped.get(name, ())])
                    write.connection.executemany(sql.DROP_TRANSITION, [(ns, a, b) for a, b in steps[name]])
                write.connection.execute("DELETE FROM seen WHERE at < ? AND source <> 'commit'", (now - SEEN_KEPT_S,))
                drop_unused_nodes(write.connection)
        return Settled(n_edges, n_steps)

    # -- inside -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self, now: float, *, learned: bool = True, deletes: bool = False) -> Iterator[SynapseWrite]:
        with self._database.atomic() as connection:
            revision = int(fact(connection, "revision", 0)) + 1
            connection.execute(sql.PUT_FACT, ("revision", revision))
            seen = fact(connection, "seen", now)
            if connection.execute(sql.FACT, ("since",)).fetchone() is None or (
                now - seen > JUMP_S or now < seen - DAY_S
            ):
                connection.execute(sql.PUT_FACT, ("since", now))
            connection.execute(sql.PUT_FACT, ("seen", now))
            if learned:
                connection.execute(sql.PUT_FACT, ("learned", now))
                connection.execute(sql.PUT_FACT, ("taught", fact(connection, "taught", 0) + 1))
            if deletes:
                connection.execute(sql.PUT_FACT, ("epoch", fact(connection, "epoch", 0) + 1))
            yield SynapseWrite(connection, revision)


_BRANCHES = """SELECT name, tip, diverged FROM namespaces AS n WHERE name LIKE 'branch:%'
    AND (EXISTS (SELECT 1 FROM edges WHERE ns = n.id) OR EXISTS (SELECT 1 FROM transitions WHERE ns = n.id))
    ORDER BY name"""


def _is_foreign(path: Path) -> bool:
    try:
        open_database(path, SCHEMA).close()
    except StoreProblem as problem:
        return problem.reason == "foreign"
    return False
