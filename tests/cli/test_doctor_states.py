"""Every damaged state: doctor names it with a command, the command repairs it, and doctor is then content."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, private_env

import nm_lsp.engine.doctor as doctor
from nm_lsp.cli import main
from nm_lsp.engine.settings import CONFIG_FILE
from nm_lsp.storage.locations import index_folder, page_folder, token_folder, vector_cache_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="repairs are commands of a POSIX shell")


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    scripts = tmp_path / "bin"
    scripts.mkdir()
    (scripts / "nm-lsp").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m nm_lsp "$@"\n')
    (scripts / "nm-lsp").chmod(0o755)
    found = {
        **private_env(tmp_path / "home"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    (tmp_path / "run").mkdir(mode=0o700)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def repo(tmp_path: Path, env: dict[str, str]) -> Repo:
    made = Repo(tmp_path / "repo", {"gov.py": GOV})
    shell("nm-lsp decisions record gov.py --title Doubled --rationale 'Half was too little.'", made)
    return made


def shell(command: str, repo: Repo) -> str:
    done = subprocess.run(["sh", "-c", command], cwd=repo.path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


Look = Callable[[], dict[str, dict[str, Any]]]


@pytest.fixture
def look(repo: Repo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Look:
    """What `nm-lsp doctor` finds that is not as it should be, by part; weights and annoy are another matter."""
    # A server of its own is started once, in `test_everything_at_once`.
    monkeypatch.setattr(doctor, "check_server", lambda _folder, _cancel: 0.1)
    monkeypatch.chdir(repo.path)

    def run() -> dict[str, dict[str, Any]]:
        with pytest.raises(SystemExit):
            main.run(["doctor", "--json"])
        return ill(json.loads(capsys.readouterr().out))

    return run


def ill(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {row["part"]: row for row in answer["checks"] if row["health"] != "ok"}
    assert all(row["repair"] for row in found.values())
    return {part: row for part, row in found.items() if part not in {"model", "annoy"}}


def store(repo: Repo) -> Path:
    return repo.path / ".neuralmind" / "lsp"


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def titles(repo: Repo) -> list[str]:
    return [row["title"] for row in json.loads(shell("nm-lsp decisions list --json", repo))["decisions"]]


def test_everything_at_once(repo: Repo, env: dict[str, str]) -> None:
    """What does not lie in the way of anything else, through processes of their own."""
    shell("nm-lsp hooks install && nm-lsp index", repo)
    hook = repo.path / ".git" / "hooks" / "post-commit"
    hook.write_text(hook.read_text().replace("\n", "\n# edited\n", 2))
    (repo.path / CONFIG_FILE).write_text("[index\n")
    text = store(repo) / "audit.jsonl"
    text.write_text(text.read_text().replace("Doubled", "Halved"))
    (store(repo) / "audit.dropped").write_text('{"time": "", "action": "index", "subject": "", "why": "disk full"}\n')
    with (store(repo) / "events.jsonl").open("wb") as file:
        file.truncate(50_000_000)
    (store(repo) / "synapses.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (index_folder(repo.path) / "manifest.json").write_bytes(b"\xff{")
    vector_cache_file().parent.mkdir(parents=True, exist_ok=True)
    vector_cache_file().write_bytes(b"not a database")
    token_folder().mkdir(parents=True, exist_ok=True)
    (token_folder() / "server-1.token").write_text("dead\n")
    (page_folder(repo.path) / "999999999-1").mkdir(parents=True)

    told = subprocess.run(["nm-lsp", "doctor", "--json"], cwd=repo.path, capture_output=True, text=True, timeout=90)
    assert told.returncode == 1, told.stderr
    assert "RuntimeDirWarning" not in told.stderr
    found = ill(json.loads(told.stdout))
    assert set(found) == {"settings", "audit", "event log", "hooks", "leftovers", "synapses-set-aside"}
    assert "not valid TOML" in found["settings"]["detail"]
    assert "1 record that could not be written" in found["audit"]["detail"]
    assert list(store(repo).glob("synapses.db.corrupt-*")), "kept"
    assert found["settings"]["repair"].startswith(f"Correct {repo.path / CONFIG_FILE}")
    (repo.path / CONFIG_FILE).write_text("[index]\n")
    for part in ("audit", "event log", "hooks", "leftovers"):
        shell(found[part]["repair"], repo)
    told = subprocess.run(["nm-lsp", "doctor", "--json"], cwd=repo.path, capture_output=True, text=True, timeout=90)
    assert ill(json.loads(told.stdout)) == {}, "the index and the vectors were made anew, all else was repaired"
    assert told.returncode == 0
    verdict = json.loads(shell("nm-lsp audit verify --json", repo))
    assert (verdict["valid"], verdict["dropped"]) == (True, 0)
    assert '"dropped":1' in shell("nm-lsp audit export", repo).replace(" ", ""), "the loss is part of the chain"
    assert "Doubled" in text.read_text()


def _damaged(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 9000)


def _gone(path: Path) -> None:
    path.unlink()


def _foreign(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("PRAGMA application_id = 7")


def _with_trigger(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM anchors; END")


def _altered(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("UPDATE decisions SET title = 'Halved', record = replace(record, 'Doubled', 'Halved')")
        connection.execute("UPDATE events SET event = replace(event, 'Doubled', 'Halved')")


@pytest.mark.parametrize(
    ("spoil", "part", "words", "n_repairs"),
    [
        (_damaged, "decisions", "it is kept as memory.db.corrupt-", 1),
        (_gone, "decisions", "it is missing", 1),
        pytest.param(_foreign, "decisions", "is not a decision database of nm-lsp", 2, marks=pytest.mark.slow),
        (_with_trigger, "decisions", "trigger 'evil'", 2),
        (_altered, "audit", "table line 1", 1),
    ],
)
def test_a_store_that_cannot_be_trusted(
    repo: Repo, look: Look, spoil: Callable[[Path], None], part: str, words: str, n_repairs: int
) -> None:
    spoil(store(repo) / "memory.db")
    found = look()
    for _ in range(n_repairs):
        assert set(found) == {part}, found
        assert words in found[part]["detail"]
        command = re.search(r"`(nm-lsp [^`]+)`", found[part]["repair"])
        shell(command[1] if command else found[part]["repair"], repo)
        found, part, words = look(), "decisions", "it is missing"
    assert found == {}
    assert titles(repo) == ["Doubled"]


def test_what_another_program_learned_is_set_aside(repo: Repo, look: Look) -> None:
    with opened(store(repo) / "synapses.db") as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    found = look()
    assert set(found) == {"synapses-set-aside"}
    assert "begins anew" in found["synapses-set-aside"]["detail"]
    assert list(store(repo).glob("synapses.db.*-*"))
    assert look() == {}


def test_a_newer_store_names_the_update_and_is_left_alone(repo: Repo, look: Look) -> None:
    with opened(store(repo) / "memory.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (store(repo) / "memory.db").read_bytes()
    found = look()["decisions"]
    assert "format 99" in found["detail"]
    assert found["repair"] == "pip install --upgrade nm-lsp"
    assert (store(repo) / "memory.db").read_bytes() == before


@pytest.mark.slow
def test_a_store_that_another_program_does_not_let_go_of(repo: Repo, look: Look) -> None:
    database = store(repo) / "memory.db"
    with opened(database) as connection:
        connection.execute("BEGIN IMMEDIATE")
        found = look()["decisions"]
        connection.execute("ROLLBACK")
    assert "is locked by another process" in found["detail"]
    assert f"fuser -v {database}" in found["repair"]
    assert look() == {}


def test_a_text_copy_that_a_crash_left_behind_is_repaired_by_looking(repo: Repo, look: Look) -> None:
    text = store(repo) / "audit.jsonl"
    whole = text.read_bytes()
    text.write_bytes(whole[:-20])
    with opened(store(repo) / "memory.db") as connection:
        connection.execute("UPDATE state SET value = '0' WHERE name = 'text written'")
    assert look() == {}
    assert text.read_bytes() == whole


@pytest.mark.parametrize("kept", [-20, 0])
def test_a_text_copy_that_somebody_cut(repo: Repo, look: Look, kept: int) -> None:
    text = store(repo) / "audit.jsonl"
    text.write_bytes(text.read_bytes()[:kept])
    found = look()
    assert set(found) == {"audit"}
    assert "the text was cut" in found["audit"]["detail"]
    shell(found["audit"]["repair"], repo)
    assert look() == {}


def test_a_damaged_search_index_is_repaired_by_looking(repo: Repo, look: Look) -> None:
    with opened(store(repo) / "memory.db") as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'found%data'")]
        for table in tables:
            connection.execute(f"UPDATE {table} SET block = x'00ff00ff'")
    shell("nm-lsp decisions search doubled", repo)
    assert look() == {}
    assert "Doubled" in shell("nm-lsp decisions search doubled", repo)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_files_that_cannot_be_written(repo: Repo, look: Look) -> None:
    path = store(repo) / "audit.jsonl"
    path.chmod(0o400)
    shell(look()["permissions"]["repair"], repo)
    assert look() == {}


def test_storage_that_must_be_encrypted_is_told(repo: Repo, look: Look) -> None:
    (repo.path / CONFIG_FILE).write_text("[storage]\nrequireEncrypted = true\n")
    found = look()
    if found:
        assert "storage.requireEncrypted is on" in found["decisions"]["detail"]
        assert "set storage.requireEncrypted to false" in found["decisions"]["repair"]
        (repo.path / CONFIG_FILE).write_text("")
        assert look() == {}
