"""The decisions of a NeuralMind store come over; its file never changes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import StoreProblem
from nm_lsp.engine.decision_requests import GetParams

from .conftest import CALLER, Bench

SCHEMA = """
CREATE TABLE decisions (id TEXT PRIMARY KEY, title TEXT NOT NULL, rationale TEXT NOT NULL, commit_sha TEXT NOT NULL,
    files_affected TEXT NOT NULL DEFAULT '[]', decision_type TEXT NOT NULL DEFAULT 'ARCHITECTURE',
    confidence REAL NOT NULL DEFAULT 1.0, status TEXT NOT NULL DEFAULT 'ACTIVE', author TEXT, created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL, evidence TEXT NOT NULL DEFAULT '[]', rejected_alternatives TEXT NOT NULL DEFAULT '[]',
    dependency_constraints TEXT NOT NULL DEFAULT '[]', tags TEXT NOT NULL DEFAULT '[]');
CREATE TABLE decision_fingerprints (decision_id TEXT NOT NULL, path TEXT NOT NULL, blob TEXT NOT NULL,
    PRIMARY KEY (decision_id, path));
"""
LISTS = ("files_affected", "evidence", "rejected_alternatives", "dependency_constraints", "tags")


def blob(text: str) -> str:
    return hashlib.sha1(b"blob %d\0" % len(text) + text.encode()).hexdigest()


class Neighbour:
    """A NeuralMind store."""

    def __init__(self, root: Path) -> None:
        self.path = root / ".neuralmind" / "memory.db"
        self.path.parent.mkdir(exist_ok=True)
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.executescript(SCHEMA)

    def add(self, identity: str, title: str, blobs: dict[str, str] | None = None, **values: Any) -> None:
        row = {
            "id": identity,
            "title": title,
            "rationale": "Because.",
            "commit_sha": "",
            "created_at": "2026-01-01T00:00:01+00:00",
            "updated_at": "2026-01-01T00:00:01+00:00",
            **{name: json.dumps(value) if name in LISTS else value for name, value in values.items()},
        }
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO decisions ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        for path, text in (blobs or {}).items():
            self.connection.execute("INSERT INTO decision_fingerprints VALUES (?, ?, ?)", (identity, path, blob(text)))


@pytest.fixture
def neighbour(bench: Bench) -> Neighbour:
    return Neighbour(bench.root)


def details(bench: Bench, ids: tuple[str, ...]) -> dict[str, Any]:
    found = bench.desk.get(GetParams(ids=ids), Cancellation(), CALLER).decisions
    return {one.row.title: one for one in found}


def test_decisions_come_over_with_their_standing(bench: Bench, neighbour: Neighbour) -> None:
    first = bench.git("rev-parse", "HEAD")
    common = {"commit_sha": first[:12], "decision_type": "DEPENDENCY", "tags": ["db"], "confidence": 0.7}
    neighbour.add("u1", "Holds", {"a.py": "x = 1\n"}, files_affected=["./a.py"], author="Ada", **common)
    neighbour.add("u2", "Changed", {"b.py": "y = 1\n"}, files_affected=["b.py"], commit_sha=first)
    neighbour.add(
        "u3",
        "Wrong",
        files_affected=[str(bench.root / "c.py")],
        status="INVALIDATED",
        commit_sha=first,
        evidence=["Marked STALE: commit 1a2b changed c.py", "Invalidated: measured slower"],
    )
    neighbour.add("u4", "Depends", files_affected=["c.py"], commit_sha=first, dependency_constraints=["u2", "numpy<2"])
    bench.commit({"b.py": "y = 2\n"})
    result = bench.import_(".neuralmind/memory.db")
    assert (len(result.imported), result.problems) == (4, ())
    rows = details(bench, result.imported)
    assert {title: one.row.status for title, one in rows.items()} == {
        "Holds": "active",
        "Changed": "stale",
        "Wrong": "invalidated",
        "Depends": "stale",
    }
    assert rows["Wrong"].invalidated_reason == "measured slower"
    assert (rows["Holds"].row.type, rows["Holds"].row.tags) == ("dependency", ("db",))
    assert (rows["Holds"].row.author, rows["Holds"].row.confidence) == ("Ada", 0.7)
    assert rows["Depends"].row.reason == "dependency"


def test_their_status_is_not_believed_where_the_repository_says_otherwise(bench: Bench, neighbour: Neighbour) -> None:
    first = bench.git("rev-parse", "HEAD")
    # A commit that was never scanned; and a STALE whose file holds what was seen.
    neighbour.add("u1", "Missed", {"a.py": "x = 1\n"}, files_affected=["a.py"], commit_sha=first)
    neighbour.add("u2", "False alarm", {"b.py": "y = 1\n"}, files_affected=["b.py"], commit_sha=first, status="STALE")
    bench.commit({"a.py": "x = 2\n"})
    rows = details(bench, bench.import_(".neuralmind/memory.db").imported)
    assert {title: one.row.status for title, one in rows.items()} == {"Missed": "stale", "False alarm": "active"}


def test_without_a_commit_the_time_says_which(bench: Bench, neighbour: Neighbour) -> None:
    neighbour.add("u1", "Unanchored", files_affected=["a.py"])
    rows = details(bench, bench.import_(".neuralmind/memory.db").imported)
    assert rows["Unanchored"].row.status == "active"
    bench.commit({"a.py": "x = 2\n"})
    assert bench.search("unanchored").hits == ()


def test_a_recording_that_its_commit_lands_holds(bench: Bench, neighbour: Neighbour) -> None:
    first = bench.git("rev-parse", "HEAD")
    neighbour.add("u1", "Landed", {"new.py": "n = 1\n"}, files_affected=["new.py"], commit_sha=first)
    bench.commit({"new.py": "n = 1\n"})
    assert details(bench, bench.import_(".neuralmind/memory.db").imported)["Landed"].row.status == "active"


def test_the_file_never_changes_and_a_second_import_neither(bench: Bench, neighbour: Neighbour) -> None:
    neighbour.add("u1", "Lately", files_affected=["a.py"])
    before = {path.name: path.read_bytes() for path in neighbour.path.parent.iterdir() if path.is_file()}
    assert "memory.db-wal" in before
    assert len(bench.import_(neighbour.path).imported) == 1
    again = bench.import_(".neuralmind/memory.db")
    assert (again.imported, again.merged, again.unchanged) == ((), (), 1)
    after = {path.name: path.read_bytes() for path in neighbour.path.parent.iterdir() if path.is_file()}
    assert after == before


def test_what_cannot_come_over_says_why(bench: Bench, neighbour: Neighbour) -> None:
    neighbour.add("u1", "Good", files_affected=["a.py"])
    neighbour.add("u2", "No file")
    neighbour.add("u3", "Elsewhere", files_affected=["../x.py"])
    neighbour.add("u4", "Unknown status", files_affected=["a.py"], status="MAYBE")
    neighbour.add("u5", "x" * 1_000_000, files_affected=["a.py"])
    neighbour.add("u6", "Bidi \u202e", files_affected=["a.py"])
    neighbour.add("u7", "Never there", files_affected=["ghost.py"])
    result = bench.import_(".neuralmind/memory.db")
    assert len(result.imported) == 1
    assert len(result.problems) == 6
    for identity, word in {"u2": "none", "u3": "none", "u4": "MAYBE", "u5": "characters", "u7": "ghost.py"}.items():
        assert any(f"decision {identity}:" in problem and word in problem for problem in result.problems), identity


def test_a_circle_of_theirs_is_listed(bench: Bench, neighbour: Neighbour) -> None:
    neighbour.add("u1", "One", files_affected=["a.py"], dependency_constraints=["u2"])
    neighbour.add("u2", "Two", files_affected=["b.py"], dependency_constraints=["u1"])
    result = bench.import_(".neuralmind/memory.db")
    assert len(result.imported) == 2
    assert sum("cycle" in problem for problem in result.problems) == 2


def test_other_databases_are_refused(bench: Bench, tmp_path: Path) -> None:
    bench.record("Mine", "a.py")
    with pytest.raises(StoreProblem, match="nm-lsp itself"):
        bench.import_(bench.root / ".neuralmind/lsp/memory.db")
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(StoreProblem, match="no decisions"):
        bench.import_(other)
    other.write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    with pytest.raises(StoreProblem, match="cannot be read"):
        bench.import_(other)
