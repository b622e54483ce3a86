"""The server on standard input and output in a Python whose SQLite lacks FTS5: whatever names it fails as it would."""

from __future__ import annotations

import re
import sqlite3
from functools import partial
from typing import Any

# The virtual table itself: neither its name as a text nor its shadows, which are tables like any other.
_TABLE = re.compile(r"(?<!')\bdecision_text\b")


class WithoutFts5(sqlite3.Connection):
    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if "USING fts5" in sql or (_TABLE.search(sql) and self._has_table()):
            error = sqlite3.OperationalError("no such module: fts5")
            error.sqlite_errorcode = sqlite3.SQLITE_ERROR
            raise error
        return super().execute(sql, *parameters)

    def _has_table(self) -> bool:
        found = super().execute("SELECT count(*) FROM sqlite_schema WHERE name = 'decision_text'")
        return found.fetchone() != (0,)


def main() -> None:
    # Before the stores are imported: they take `connect` from the module when they open a file.
    sqlite3.connect = partial(sqlite3.connect, factory=WithoutFts5)
    from nm_lsp.server.main import serve_stdio

    serve_stdio()


if __name__ == "__main__":
    main()
