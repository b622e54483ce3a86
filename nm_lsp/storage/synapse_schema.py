"""The tables of `synapses.db` and the rows' way in and out of them.

Nodes are numbered, so that an edge costs some thirty bytes whatever its ends are called. An edge's ends are in the
order of their names' numbers. `rev` is the revision that wrote a row last: readers fetch only what is newer; whatever
deletes rows raises the epoch, which makes them read anew.
"""

from __future__ import annotations

from nm_lsp.storage.migrations import Migration, Schema

SCHEMA = Schema(
    name="synapse",
    application_id=0x6E6D4C73,  # "nmLs"
    migrations=(
        Migration(
            "what was learned, by namespace",
            (
                "CREATE TABLE nodes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT",
                """CREATE TABLE namespaces (
                    id INTEGER PRIMARY KEY,
                    name TEXT NOT NULL UNIQUE,
                    tip TEXT,
                    diverged INTEGER NOT NULL DEFAULT 0
                ) STRICT""",
                """CREATE TABLE edges (
                    ns INTEGER NOT NULL REFERENCES namespaces (id),
                    a INTEGER NOT NULL REFERENCES nodes (id),
                    b INTEGER NOT NULL REFERENCES nodes (id),
                    weight REAL NOT NULL CHECK (weight BETWEEN 0 AND 1),
                    at REAL NOT NULL,
                    count INTEGER NOT NULL,
                    strong INTEGER NOT NULL,
                    rev INTEGER NOT NULL,
                    PRIMARY KEY (ns, a, b),
                    CHECK (a < b)
                ) STRICT, WITHOUT ROWID""",
                """CREATE TABLE transitions (
                    ns INTEGER NOT NULL REFERENCES namespaces (id),
                    a INTEGER NOT NULL REFERENCES nodes (id),
                    b INTEGER NOT NULL REFERENCES nodes (id),
                    n REAL NOT NULL CHECK (n >= 0),
                    at REAL NOT NULL,
                    PRIMARY KEY (ns, a, b)
                ) STRICT, WITHOUT ROWID""",
                # What a branch calls otherwise than the namespaces it reads beside its own.
                """CREATE TABLE renames (
                    ns INTEGER NOT NULL REFERENCES namespaces (id),
                    old INTEGER NOT NULL REFERENCES nodes (id),
                    new INTEGER NOT NULL REFERENCES nodes (id),
                    PRIMARY KEY (ns, old)
                ) STRICT, WITHOUT ROWID""",
                # What was dealt with already, whoever reports it again: commits, and contents of files by source.
                """CREATE TABLE seen (
                    key BLOB PRIMARY KEY,
                    source TEXT NOT NULL,
                    at REAL NOT NULL
                ) STRICT, WITHOUT ROWID""",
                "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
                "CREATE TABLE facts (name TEXT PRIMARY KEY, value REAL NOT NULL) STRICT, WITHOUT ROWID",
            ),
        ),
    ),
)

NODE_ID = "SELECT id FROM nodes WHERE name = ?"
NEW_NODE = "INSERT INTO nodes (name) VALUES (?) RETURNING id"
NAMESPACE_ID = "SELECT id FROM namespaces WHERE name = ?"
NEW_NAMESPACE = "INSERT INTO namespaces (name) VALUES (?) RETURNING id"

EDGE = "SELECT weight, at, count, strong FROM edges WHERE ns = ? AND a = ? AND b = ?"
PUT_EDGE = """INSERT INTO edges (ns, a, b, weight, at, count, strong, rev) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (ns, a, b) DO UPDATE SET weight = excluded.weight, at = excluded.at, count = excluded.count,
    strong = excluded.strong, rev = excluded.rev"""
DROP_EDGE = "DELETE FROM edges WHERE ns = ? AND a = ? AND b = ?"
EDGES_SINCE = "SELECT a, b, weight, at, count, strong FROM edges WHERE ns = ? AND rev > ? ORDER BY a, b"
EDGES_OF = "SELECT a, b, weight, at, count, strong FROM edges WHERE ns = ? AND (a = ? OR b = ?)"

TRANSITION = "SELECT n, at FROM transitions WHERE ns = ? AND a = ? AND b = ?"
PUT_TRANSITION = """INSERT INTO transitions (ns, a, b, n, at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (ns, a, b) DO UPDATE SET n = excluded.n, at = excluded.at"""
DROP_TRANSITION = "DELETE FROM transitions WHERE ns = ? AND a = ? AND b = ?"
TRANSITIONS = "SELECT a, b, n, at FROM transitions WHERE ns = ? ORDER BY a, b"
TRANSITIONS_OF = "SELECT a, b, n, at FROM transitions WHERE ns = ? AND (a = ? OR b = ?)"

FACT = "SELECT value FROM facts WHERE name = ?"
PUT_FACT = "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
COUNT = (
    "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
)
SEEN = "SELECT source FROM seen WHERE key = ?"
PUT_SEEN = "INSERT INTO seen (key, source, at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET at = excluded.at"
