"""Numbered, append-only migrations, and the schema a file really has.

A schema is the list of its migrations; number n is the n-th of them and never changes once released. What a
file needs is decided by its content: the newest migration whose tables and columns the file has. The marker
(`PRAGMA user_version`) only tells a file of a newer program from a damaged one, so that a marker that lies
neither skips a migration nor repeats one. Must not know what any table is for.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from dataclasses import dataclass

from nm_lsp.base.errors import StoreProblem


@dataclass(frozen=True, slots=True)
class Migration:
    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """`application_id` marks our files: a database that bears another one, or none, is never written."""

    name: str
    application_id: int
    migrations: tuple[Migration, ...]

    @property
    def version(self) -> int:
        return len(self.migrations)


Column = tuple[str, str, int, str | None, int]
"""Name, type, not null, default, place in the primary key."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a schema consists of. Tables beyond it (search shadows, say) are no difference; columns are."""

    tables: dict[str, tuple[Column, ...]]
    indexes: dict[str, tuple[str, int, tuple[str | None, ...]]]
    triggers: frozenset[str]

    def lacks(self, wanted: Shape) -> list[str]:
        """What of `wanted` this shape does not have, in words, sorted."""
        missing: list[str] = []
        for table, columns in wanted.tables.items():
            if table not in self.tables:
                missing.append(f"table {table}")
            elif self.tables[table] != columns:
                ours = {column[0] for column in self.tables[table]}
                gone = [column[0] for column in columns if column[0] not in ours]
                missing += [f"column {table}.{name}" for name in gone] or [f"the right columns of {table}"]
        missing += [f"index {name}" for name, index in wanted.indexes.items() if self.indexes.get(name) != index]
        missing += [f"trigger {name}" for name in wanted.triggers - self.triggers]
        return sorted(missing)


_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?) ORDER BY cid'
_INDEXES = "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
_INDEX_UNIQUE = 'SELECT "unique" FROM pragma_index_list(?) WHERE name = ?'
_INDEX_COLUMNS = "SELECT name FROM pragma_index_info(?) ORDER BY seqno"
_TRIGGERS = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
_PROGRAMS = "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')"


def shape_of(connection: sqlite3.Connection) -> Shape:
    """The tables, columns, indexes and triggers a database has now."""
    tables = {
        name: tuple(tuple(row) for row in connection.execute(_COLUMNS, (name,)).fetchall())
        for (name,) in connection.execute(_TABLES).fetchall()
        if not _is_shadow(connection, name)
    }
    indexes: dict[str, tuple[str, int, tuple[str | None, ...]]] = {}
    for name, table in connection.execute(_INDEXES).fetchall():
        unique = connection.execute(_INDEX_UNIQUE, (table, name)).fetchone()
        columns = tuple(row[0] for row in connection.execute(_INDEX_COLUMNS, (name,)).fetchall())
        indexes[name] = (table, unique[0], columns)
    triggers = frozenset(row[0] for row in connection.execute(_TRIGGERS).fetchall())
    return Shape(tables, indexes, triggers)


_KIND = "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?"


def _is_shadow(connection: sqlite3.Connection, table: str) -> bool:
    # The columns of a virtual table cannot be read where its module is missing.
    row = connection.execute(_KIND, (table,)).fetchone()
    return row is not None and row[0] in {"virtual", "shadow"}


@functools.cache
def wanted_shape(schema: Schema, version: int) -> Shape:
    """The shape after the first `version` migrations, by running them in memory."""
    with_all = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for migration in schema.migrations[:version]:
            for statement in migration.statements:
                with_all.execute(statement)
        return shape_of(with_all)
    finally:
        with_all.close()


def version_by_content(connection: sqlite3.Connection, schema: Schema) -> int:
    """The newest version whose shape the file has; 0 for a file without tables.

    Raises `StoreProblem` (newer) for a marker beyond our migrations and (schema) for a content that is none
    of our versions.
    """
    marker = connection.execute("PRAGMA user_version").fetchone()[0]
    if marker > schema.version:
        raise StoreProblem(
            f"the {schema.name} database has format {marker}; this program knows formats up to {schema.version}",
            reason="newer",
            hint="Update nm-lsp; the file was left as it is.",
        )
    _refuse_foreign_programs(connection, schema)
    actual = shape_of(connection)
    if not actual.tables:
        return 0
    for version in range(schema.version, 0, -1):
        if not actual.lacks(wanted_shape(schema, version)):
            return version
    missing = ", ".join(actual.lacks(wanted_shape(schema, max(marker, 1)))[:5])
    raise StoreProblem(
        f"the {schema.name} database lacks {missing}",
        reason="schema",
        hint="Restore a backup (`nm-lsp doctor` lists them); the file was left as it is.",
    )


def _refuse_foreign_programs(connection: sqlite3.Connection, schema: Schema) -> None:
    """Triggers and views are what a file can do by itself: one that is not ours could change what we read or write."""
    found = set(connection.execute(_PROGRAMS).fetchall())
    foreign = sorted(f"{kind} {name!r}" for kind, name, _ in found - _own_programs(schema))
    if foreign:
        raise StoreProblem(
            f"the {schema.name} database holds what is none of ours: {', '.join(foreign[:5])}",
            reason="schema",
            hint="Restore a backup (`nm-lsp doctor` lists them); the file was left as it is.",
        )


@functools.cache
def _own_programs(schema: Schema) -> frozenset[tuple[str, str, str]]:
    """The triggers and views of every version, by kind, name and text."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        found: set[tuple[str, str, str]] = set()
        for migration in schema.migrations:
            for statement in migration.statements:
                connection.execute(statement)
            found.update(connection.execute(_PROGRAMS).fetchall())
        return frozenset(found)


def migrate(connection: sqlite3.Connection, schema: Schema) -> tuple[int, int]:
    """Bring the file up to date inside the caller's open transaction; return the versions before and after."""
    before = version_by_content(connection, schema)
    for migration in schema.migrations[before:]:
        for statement in migration.statements:
            connection.execute(statement)
    missing = shape_of(connection).lacks(wanted_shape(schema, schema.version))
    if missing:
        raise StoreProblem(
            f"the {schema.name} database lacks {', '.join(missing[:5])} after migration", reason="schema"
        )
    # Pragmas take no bound parameters; both values are integers of ours.
    connection.execute(f"PRAGMA application_id = {int(schema.application_id)}")
    connection.execute(f"PRAGMA user_version = {int(schema.version)}")
    return before, schema.version
