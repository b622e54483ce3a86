"""A database that another program wrote, or that was given a life of its own, in the place of ours."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from decision_session import Repo, private_env, session
from lsp_harness import LspError

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import StoreProblem
from nm_lsp.engine.decision_requests import Caller, ListParams, RecordParams
from nm_lsp.engine.decisions.alone import open_desk
from nm_lsp.engine.settings import Settings
from nm_lsp.storage.decision_schema import SCHEMA

PARAMS = RecordParams(title="Doubled", rationale="Half was too little.", files=("gov.py",))

Spoil = Callable[[sqlite3.Connection], None]


def _foreign(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA application_id = 252006674")  # fossil's


def _another_programs(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        connection.execute(f"DROP TABLE IF EXISTS {name}") if not name.startswith(("sqlite_", "found_")) else None
    connection.execute("PRAGMA application_id = 0")
    connection.execute("CREATE TABLE bookmarks (url TEXT)")


def _with_trigger(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TRIGGER evil AFTER INSERT ON events BEGIN UPDATE decisions SET title = 'forged'; END")


def _with_own_trigger_changed(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TRIGGER events_are_kept")
    connection.execute("CREATE TRIGGER events_are_kept AFTER INSERT ON events BEGIN DELETE FROM anchors; END")


def _with_view(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE anchors RENAME TO kept")
    connection.execute("CREATE VIEW anchors AS SELECT decision, 'forged' AS path, kind, symbol FROM kept")


def _newer(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA user_version = {SCHEMA.version + 7}")


SPOILS: dict[str, tuple[Spoil, str]] = {
    "foreign": (_foreign, "is not a decision database of nm-lsp"),
    "another program's": (_another_programs, "is not a decision database of nm-lsp"),
    "with a trigger": (_with_trigger, "holds what is none of ours: trigger 'evil'"),
    "with our trigger changed": (_with_own_trigger_changed, "holds what is none of ours: trigger 'events_are_kept'"),
    "with a view": (_with_view, "holds what is none of ours: view 'anchors'"),
    "newer": (_newer, "this program knows formats up to"),
}


def store_of(repo: Repo, kind: str) -> Path:
    """A store of ours that somebody spoiled, in one file."""
    with open_desk(repo.path, Settings()) as desk:
        desk.record(PARAMS, Cancellation(), Caller("cli"))
    database = repo.path / ".neuralmind" / "lsp" / "memory.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        SPOILS[kind][0](connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    return database


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in private_env(tmp_path / "home").items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("kind", SPOILS)
def test_a_store_that_is_not_ours_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    repo = Repo(tmp_path / "repo")
    database = store_of(repo, kind)
    before = database.read_bytes()
    with open_desk(repo.path, Settings()) as desk:
        for ask in (
            lambda: desk.record(PARAMS, Cancellation(), Caller("cli")),
            lambda: desk.list(ListParams(), Cancellation(), Caller("cli")),
        ):
            with pytest.raises(StoreProblem, match=re.escape(SPOILS[kind][1])) as refusal:
                ask()
            assert refusal.value.hint
        assert any(SPOILS[kind][1] in problem for problem in desk.problems())
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.glob("memory.db.*")] == []


def test_the_server_says_so_once_and_goes_on(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    database, said = store_of(repo, "with a trigger"), SPOILS["with a trigger"][1]
    before = database.read_bytes()
    with session(repo.path, env=private_env(tmp_path / "home")) as s:
        with pytest.raises(LspError, match=re.escape(said)) as refusal:
            s.record("gov.py")
        assert (refusal.value.code, refusal.value.data["code"]) == (-32803, "store")
        s.until(lambda: any(said in text for text in s.messages()))
        assert said in json.dumps(s.call("status")["problems"])
        assert sum(said in text for text in s.messages()) == 1, "said once"
    assert database.read_bytes() == before


def test_what_was_learned_by_another_program_is_set_aside(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    place = repo.path / ".neuralmind" / "lsp"
    place.mkdir(parents=True)
    (place / "synapses.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with session(repo.path, env=private_env(tmp_path / "home"), settings={"index": {"enabled": True}}) as s:
        s.until(lambda: s.call("status")["ready"], 60)
        s.call("feedback", id="gov.py::governed", useful=True, context=["gov.py::other"])
        problems = json.dumps(s.call("status")["problems"])
        assert "begins anew" in problems
    assert list(place.glob("synapses.db.corrupt-*"))
