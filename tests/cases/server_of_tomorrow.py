"""The server on standard input and output as a later release may be: one more migration of the decisions' database."""

from __future__ import annotations

from nm_lsp.storage.decision_schema import SCHEMA
from nm_lsp.storage.migrations import Migration

TABLE = "tomorrow"


def main() -> None:
    more = Migration("what tomorrow needs", (f"CREATE TABLE {TABLE} (n INTEGER PRIMARY KEY) STRICT",))
    # One object, whoever imported it.
    object.__setattr__(SCHEMA, "migrations", (*SCHEMA.migrations, more))
    from nm_lsp.server.main import serve_stdio

    serve_stdio()


if __name__ == "__main__":
    main()
