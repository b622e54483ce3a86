"""The tables of `memory.db`: events, the view folded from them, the audit chain, and what helps to find and show.

Migrations are append-only: a released one is never edited.
"""

from __future__ import annotations

from typing import Final

from nm_lsp.storage.migrations import Migration, Schema

SCHEMA: Final = Schema(
    name="decision",
    application_id=0x6E6D4C6D,  # "nmLm"
    migrations=(
        Migration(
            "events, view, audit chain",
            (
                # `marks` holds the payloads with the digests of what was redacted from `event`, where something was.
                """CREATE TABLE events (
                    sequence INTEGER PRIMARY KEY,
                    id TEXT NOT NULL UNIQUE,
                    decision TEXT,
                    kind TEXT NOT NULL,
                    event TEXT NOT NULL,
                    marks TEXT
                ) STRICT""",
                "CREATE INDEX events_of_decision ON events (decision, sequence)",
                """CREATE TABLE decisions (
                    number INTEGER PRIMARY KEY,
                    id TEXT NOT NULL UNIQUE,
                    revision INTEGER NOT NULL,
                    title TEXT NOT NULL,
                    rationale TEXT NOT NULL,
                    tags TEXT NOT NULL,
                    alternatives TEXT NOT NULL,
                    record TEXT NOT NULL
                ) STRICT""",
                # Columns in the order of the key: the quick check of SQLite 3.40 takes another order for damage.
                """CREATE TABLE anchors (
                    decision TEXT NOT NULL REFERENCES decisions (id),
                    path TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    symbol TEXT NOT NULL,
                    PRIMARY KEY (decision, path, kind, symbol)
                ) STRICT, WITHOUT ROWID""",
                # The payloads of a decision's event are those of the event itself and stand only there.
                """CREATE TABLE audit (
                    sequence INTEGER PRIMARY KEY,
                    time TEXT NOT NULL,
                    actor TEXT NOT NULL,
                    face TEXT NOT NULL,
                    action TEXT NOT NULL,
                    subject TEXT NOT NULL,
                    event INTEGER UNIQUE REFERENCES events (sequence),
                    before TEXT,
                    after TEXT,
                    previous TEXT NOT NULL,
                    hash TEXT NOT NULL UNIQUE
                ) STRICT""",
                """CREATE TABLE findings (
                    decision TEXT NOT NULL,
                    confirmation TEXT NOT NULL,
                    commit_id TEXT NOT NULL,
                    path TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    detail TEXT NOT NULL,
                    time TEXT NOT NULL,
                    PRIMARY KEY (decision, confirmation, commit_id, path)
                ) STRICT, WITHOUT ROWID""",
                """CREATE TABLE embeddings (
                    decision TEXT NOT NULL,
                    model TEXT NOT NULL,
                    content BLOB NOT NULL,
                    vector BLOB NOT NULL,
                    PRIMARY KEY (model, decision)
                ) STRICT""",
                # Which revision of a decision the full-text index holds.
                "CREATE TABLE indexed (number INTEGER PRIMARY KEY, revision INTEGER NOT NULL) STRICT",
                "CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
                # Against mistakes of ours; whoever means it can drop them, and `audit verify` sees what is gone.
                """CREATE TRIGGER events_are_kept BEFORE DELETE ON events
                BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END""",
                """CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
                BEGIN SELECT RAISE(ABORT, 'audit records are never deleted'); END""",
            ),
        ),
    ),
)
