"""Keyword search over decisions: FTS5 where this SQLite has it, plain matching where not.

Guarantees: a store made with FTS5 works without it and the other way round; what was written while FTS5 was missing is
found once it is back, because the index knows which revision of a decision it holds. A damaged index is made anew.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from nm_lsp.decisions.model import DecisionId
from nm_lsp.storage import damage

_CREATE = """
CREATE VIRTUAL TABLE IF NOT EXISTS decision_text
USING fts5 (title, rationale, tags, alternatives, tokenize = 'unicode61 remove_diacritics 2')
"""
_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = 'decision_text'"
_PROBE = "SELECT rowid FROM decision_text WHERE decision_text MATCH 'probe' LIMIT 1"
_BEHIND = """
SELECT d.number, d.revision, d.title, d.rationale, d.tags, d.alternatives
FROM decisions AS d LEFT JOIN indexed AS i ON i.number = d.number WHERE i.revision IS NULL OR i.revision <> d.revision
"""
_ONE = "SELECT number, revision, title, rationale, tags, alternatives FROM decisions WHERE id = ?"
_FORGET = "DELETE FROM decision_text WHERE rowid = ?"
_INDEX = "INSERT INTO decision_text (rowid, title, rationale, tags, alternatives) VALUES (?, ?, ?, ?, ?)"
_NOTE = "INSERT OR REPLACE INTO indexed (number, revision) VALUES (?, ?)"
_FORGET_NOTE = "DELETE FROM indexed WHERE number = ?"
_FORGET_NOTES = "DELETE FROM indexed"
_CLEAN = "INSERT INTO decision_text (decision_text) VALUES ('optimize')"
_DROP = "DROP TABLE IF EXISTS decision_text"
# An index without content, as FTS5 itself makes it: lengths of nothing, and a structure without segments. Written to
# its own tables where FTS5 is missing or cannot read what is there.
_EMPTY_SHADOWS = (
    "DELETE FROM decision_text_content",
    "DELETE FROM decision_text_docsize",
    "DELETE FROM decision_text_idx",
    "DELETE FROM decision_text_data",
    "INSERT INTO decision_text_data (id, block) VALUES (1, x''), (10, x'00000000000000')",
)
# Title, rationale, tags, alternatives.
_SEARCH = """
SELECT d.id, -bm25(decision_text, 4.0, 1.0, 3.0, 1.0)
FROM decision_text JOIN decisions AS d ON d.number = decision_text.rowid
WHERE decision_text MATCH ? ORDER BY bm25(decision_text, 4.0, 1.0, 3.0, 1.0), d.number
"""
_LIKE = """
SELECT id, 4 * (title LIKE ?1 ESCAPE '\\') + 3 * (tags LIKE ?1 ESCAPE '\\') + (rationale LIKE ?1 ESCAPE '\\')
    + (alternatives LIKE ?1 ESCAPE '\\') AS score
FROM decisions WHERE score > 0 ORDER BY number
"""
_WORD = re.compile(r"\w+")
_MAX_WORDS = 32


@dataclass(frozen=True, slots=True)
class Match:
    """`score` orders the matches of one search; it means nothing across searches."""

    decision: DecisionId
    score: float


def prepare(connection: sqlite3.Connection) -> bool:
    """Create the index if need be and bring it up to date, in the caller's transaction; False without FTS5.

    A damaged index fails the transaction (`StoreProblem`, reason index); `make_anew` in another one repairs it.
    """
    try:
        connection.execute(_CREATE)
        connection.execute(_PROBE).fetchone()
        _catch_up(connection)
    except sqlite3.DatabaseError as error:
        if not _is_missing(error):
            raise
        return False
    return True


def make_anew(connection: sqlite3.Connection) -> bool:
    """Drop the index and build it from the view, in a transaction that has not touched it yet; False without FTS5."""
    try:
        # FTS5 does not even drop a table whose structure it cannot read.
        if exists(connection):
            _empty(connection)
        connection.execute(_DROP)
    except sqlite3.DatabaseError as error:
        if not _is_missing(error):
            raise
        return False
    return prepare(connection)


def _empty(connection: sqlite3.Connection) -> None:
    for statement in _EMPTY_SHADOWS:
        connection.execute(statement)
    connection.execute(_FORGET_NOTES)


def exists(connection: sqlite3.Connection) -> bool:
    """Whether the index was ever made; it may still be unreadable here."""
    return connection.execute(_EXISTS).fetchone() is not None


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether some decision is not in the index as it now reads."""
    return connection.execute(_BEHIND + " LIMIT 1").fetchone() is not None


def _catch_up(connection: sqlite3.Connection) -> None:
    for row in connection.execute(_BEHIND).fetchall():
        _index(connection, row)


def update(connection: sqlite3.Connection, decision: DecisionId, *, changed_behind: bool = False) -> None:
    """Index the decision as it now reads, in the caller's transaction; without FTS5 it stays for later.

    `changed_behind`: its text changed at the same revision, as by a redaction.
    """
    row = connection.execute(_ONE, (decision,)).fetchone()
    if changed_behind:
        connection.execute(_FORGET_NOTE, (row[0],))
    try:
        _index(connection, row)
    except sqlite3.DatabaseError as error:
        # After a damaged index has failed once, SQLite would fail the commit as well: the transaction must end.
        if not _is_missing(error):
            raise


def forget_old_terms(connection: sqlite3.Connection) -> None:
    """Rewrite the index so that the words of removed texts are gone from it, not only marked as deleted.

    Without FTS5 nothing can rewrite it: its tables are emptied, and it is made anew once FTS5 is back.
    """
    try:
        connection.execute(_CLEAN)
    except sqlite3.DatabaseError as error:
        if not _is_missing(error):
            raise
        if exists(connection):
            _empty(connection)


def _index(connection: sqlite3.Connection, row: tuple[int, int, str, str, str, str]) -> None:
    number, revision, *texts = row
    connection.execute(_FORGET, (number,))
    connection.execute(_INDEX, (number, *texts))
    connection.execute(_NOTE, (number, revision))


def search(connection: sqlite3.Connection, text: str) -> tuple[list[Match], bool]:
    """All decisions that hold a word of `text`, best first, and whether FTS5 answered.

    With FTS5: BM25 with the title weighing 4, tags 3, rationale and alternatives 1, words also as prefixes. Without:
    the same weights for each word found anywhere, letters of ASCII in either case.
    """
    words = list(dict.fromkeys(_WORD.findall(text)))[:_MAX_WORDS]
    if not words:
        return [], True
    try:
        # Quoted, so that no word of the question is taken for an operator.
        rows = connection.execute(_SEARCH, (" OR ".join(f'"{word}" *' for word in words),)).fetchall()
        return [Match(DecisionId(row[0]), float(row[1])) for row in rows], True
    except sqlite3.DatabaseError as error:
        if not _is_missing(error) and error.sqlite_errorcode != sqlite3.SQLITE_CORRUPT_VTAB:
            raise
    return _search_plainly(connection, words), False


def _search_plainly(connection: sqlite3.Connection, words: Iterable[str]) -> list[Match]:
    scores: dict[str, float] = {}
    for word in words:
        escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        for decision, score in connection.execute(_LIKE, (f"%{escaped}%",)):
            scores[decision] = scores.get(decision, 0.0) + score
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return [Match(DecisionId(decision), score) for decision, score in ranked]


def _is_missing(error: sqlite3.DatabaseError) -> bool:
    """This SQLite has no FTS5, or the index could not be made for that reason."""
    return damage.primary_code(error) == sqlite3.SQLITE_ERROR and any(
        words in str(error) for words in ("no such module", "no such table: decision_text")
    )
