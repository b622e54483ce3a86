"""Reads the decisions of a NeuralMind `memory.db`, which is never opened itself: a copy is read and thrown away.

Guarantees: no byte of that file or of its folder changes, not even by the side files that opening a database makes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage.decision_schema import SCHEMA

MAX_BYTES: Final = 1_000_000_000
_MAGIC: Final = b"SQLite format 3\0"
_COLUMNS: Final = (
    "id", "title", "rationale", "commit_sha", "files_affected", "decision_type", "confidence", "status", "author",
    "created_at", "updated_at", "evidence", "rejected_alternatives", "dependency_constraints", "tags",
)  # fmt: skip
_TABLE = "SELECT name FROM pragma_table_info('decisions')"
# Columns that an older version lacks read as NULL.
_ROWS = "SELECT {} FROM decisions ORDER BY created_at, id"
_FINGERPRINTS = "SELECT decision_id, path, blob FROM decision_fingerprints"


@dataclass(frozen=True, slots=True)
class NeuralMindDecision:
    """One row as it stands, lists decoded. `blobs` are git blob ids by path. Texts are unchecked."""

    id: str
    title: str
    rationale: str
    commit: str
    files: tuple[str, ...]
    type: str | None
    confidence: float | None
    status: str
    author: str | None
    created_at: str
    updated_at: str
    evidence: tuple[str, ...]
    alternatives: tuple[str, ...]
    depends_on: tuple[str, ...]
    tags: tuple[str, ...]
    blobs: dict[str, str]


def is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_neuralmind(path: Path) -> list[NeuralMindDecision]:
    """The decisions in the order of their making. Raises `StoreProblem` for a file that is not one of NeuralMind's."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise StoreProblem(f"{path} is larger than {MAX_BYTES:,} bytes.", reason="foreign")
        with tempfile.TemporaryDirectory(prefix="nm-lsp-import-") as folder:
            copy = Path(folder) / "memory.db"
            shutil.copyfile(path, copy)
            with suppress(FileNotFoundError):
                # What was written lately may stand in the log alone.
                shutil.copyfile(f"{path}-wal", f"{copy}-wal")
            with closing(sqlite3.connect(copy)) as connection:
                return _read(connection, path)
    except OSError as error:
        raise StoreProblem(f"{path} cannot be read: {error.strerror}.", reason="io") from error
    except sqlite3.Error as error:
        raise StoreProblem(f"{path} cannot be read: {error}.", reason="damaged") from error


def _read(connection: sqlite3.Connection, path: Path) -> list[NeuralMindDecision]:
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    if connection.execute("PRAGMA application_id").fetchone()[0] == SCHEMA.application_id:
        raise StoreProblem(
            f"{path} is a store of nm-lsp itself.",
            reason="foreign",
            hint="Export it there with `nm-lsp decisions export --dir`, and import that folder.",
        )
    present = {name for (name,) in connection.execute(_TABLE)}
    if not {"id", "title", "rationale", "status"} <= present:
        raise StoreProblem(f"{path} holds no decisions of NeuralMind.", reason="foreign")
    blobs: dict[str, dict[str, str]] = {}
    with suppress(sqlite3.OperationalError):
        # Older versions have no fingerprints.
        for decision, file, blob in connection.execute(_FINGERPRINTS):
            blobs.setdefault(str(decision), {})[str(file)] = str(blob)
    columns = ", ".join(name if name in present else f"NULL AS {name}" for name in _COLUMNS)
    # The names are ours, none comes from the file.
    rows = connection.execute(_ROWS.format(columns)).fetchall()
    return [_decision(row, blobs) for row in rows]


def _decision(row: tuple[object, ...], blobs: dict[str, dict[str, str]]) -> NeuralMindDecision:
    (identity, title, rationale, commit, files, kind, confidence, status, author, created, updated, *lists) = row
    evidence, alternatives, depends_on, tags = (_list(value) for value in lists)
    return NeuralMindDecision(
        id=_text(identity),
        title=_text(title),
        rationale=_text(rationale),
        commit=_text(commit).strip(),
        files=_list(files),
        type=_text(kind) or None,
        confidence=float(confidence) if isinstance(confidence, int | float) else None,
        status=_text(status).strip().upper(),
        author=_text(author) or None,
        created_at=_text(created),
        updated_at=_text(updated),
        evidence=evidence,
        alternatives=alternatives,
        depends_on=depends_on,
        tags=tags,
        blobs=blobs.get(_text(identity), {}),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _list(value: object) -> tuple[str, ...]:
    """A column that holds a JSON list of texts; a plain text counts as a list of one."""
    text = _text(value)
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        found = text
    items = found if isinstance(found, list) else [found]
    return tuple(item if isinstance(item, str) else json.dumps(item) for item in items if item not in (None, ""))
