"""A machine that does not play along: a full disk, a folder that cannot be written, a clock that jumps."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, Session, private_env
from lsp_harness import LspError

PATIENCE_S = 30.0
REQUEST_FAILED, INTERNAL_ERROR = -32803, -32603
WITH_INDEX = {"index": {"enabled": True}}
NEEDS_MOUNT = "mounting a small file system needs root on Linux"


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of its own at `place`. Skips the test where none can be mounted."""
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(NEEDS_MOUNT)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], check=False)
    if mounted.returncode:
        pytest.skip(NEEDS_MOUNT)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path) -> Path:
    """Not a byte is left. Returns the file that holds them."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


def ask(session: Session, name: str, **fields: Any) -> Any:
    """The answer, or None for a refusal in words."""
    refused, answer = None, None
    try:
        answer = session.call(name, **fields)
    except LspError as error:
        refused = error
    assert refused is None or refused.code == REQUEST_FAILED, refused
    return answer


def titles(session: Session) -> set[str]:
    return {row["title"] for row in session.call("decisions.list")["decisions"]}


@pytest.mark.parametrize("full_first", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_full_disk_under_the_repository(tmp_path: Path, *, full_first: bool) -> None:
    """What cannot be written is refused in words and absent, all that was answered stays, and with space again
    everything goes on, with a whole chain."""
    with small_disk(tmp_path / "disk", "6m") as disk:
        repo = Repo(disk / "repo")
        env = private_env(tmp_path / "home")
        kept = set()
        if not full_first:
            session = Session(repo.path, env=env)
            session.record("gov.py", title="Before")
            kept.add("Before")
        ballast = fill(disk)
        if full_first:
            session = Session(repo.path, env=env)
        for n in range(20):
            if ask(session, "decisions.record", title=f"Full {n}", rationale="So.", files=["gov.py"]) is not None:
                kept.add(f"Full {n}")
        listed = ask(session, "decisions.list")
        assert listed is None or {row["title"] for row in listed["decisions"]} == kept
        session.hover(repo.uri("gov.py"))
        ballast.unlink()
        session.record("gov.py", title="After")
        assert titles(session) == kept | {"After"}
        session.until(lambda: session.call("audit.verify")["valid"], PATIENCE_S)
        assert session.client.stop() == 0
        assert b"Traceback" not in session.client.errors, session.client.errors.decode()
        again = Session(repo.path, env=env)
        assert titles(again) == kept | {"After"}
        again.stop()


def test_a_full_disk_under_the_cache(tmp_path: Path) -> None:
    """The index cannot be written: decisions work, a search is answered, the trouble is told once; with space again a
    rebuild makes the index."""
    repo = Repo(tmp_path / "repo", {f"m{n}.py": GOV for n in range(50)} | {"gov.py": GOV})
    with small_disk(tmp_path / "cache", "1m") as disk:
        env = {**private_env(tmp_path / "home"), "XDG_CACHE_HOME": str(disk)}
        ballast = fill(disk)
        session = Session(repo.path, env=env, settings=WITH_INDEX)
        session.record("gov.py")
        told = session.until(lambda: [text for text in session.messages() if "No space left" in text], PATIENCE_S)
        assert len(told) == 1
        ask(session, "search", query="governed")
        ballast.unlink()
        session.call("index.rebuild")
        session.until(lambda: session.call("search", query="governed")["hits"], PATIENCE_S)
        assert session.client.stop() == 0
        assert b"Traceback" not in session.client.errors, session.client.errors.decode()


def test_a_repository_that_cannot_be_written(tmp_path: Path) -> None:
    """A read-only file system: the store lies in the user's state folder, and the repository is as it was."""
    with small_disk(tmp_path / "disk", "6m") as disk:
        repo = Repo(disk / "repo")
        repo.commit("change", {"gov.py": GOV})
        before = {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        env = private_env(tmp_path / "home")
        for turn in range(2):
            session = Session(repo.path, env=env, settings=WITH_INDEX)
            session.until(lambda session=session: session.call("status")["ready"], PATIENCE_S)
            assert session.call("search", query="governed")["hits"]
            session.record("gov.py", title=f"Turn {turn}")
            assert titles(session) == {f"Turn {n}" for n in range(turn + 1)}
            assert session.call("audit.verify")["valid"]
            session.stop()
        assert {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()} == before


CLOCK = """
import runpy, sys, time
offset, real, real_ns = sys.argv.pop(1), time.time, time.time_ns

def shift():
    with open(offset) as file:
        return float(file.read() or 0)

time.time = lambda: real() + shift()
time.time_ns = lambda: real_ns() + int(shift() * 1e9)
sys.argv[0] = "nm-lsp"
runpy.run_module("nm_lsp.server.main", run_name="__main__", alter_sys=True)
"""


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Years forward, back to before 1970 and forth again under a running server: every decision and record is there, in
    the order of recording, verdicts and learned pairs are what they were, and the next server says the same."""
    import decision_session

    repo = Repo(tmp_path / "repo", {"gov.py": GOV, "other.py": "def second():\n    pass\n"})
    offset = tmp_path / "offset"
    monkeypatch.setattr(decision_session, "REAL", [sys.executable, "-c", CLOCK, str(offset)])
    env = private_env(tmp_path / "home")

    def jump(seconds: float) -> None:
        temporary = offset.with_suffix(".new")
        temporary.write_text(str(seconds))
        temporary.replace(offset)

    year = 365.25 * 86_400
    jump(0)
    session = Session(repo.path, env=env, settings=WITH_INDEX)
    session.until(lambda: session.call("status")["ready"], PATIENCE_S)
    ids = []
    for n, jumped in enumerate([0.0, 20 * year, -10 * year, -time.time() - 1e6, 1e4 * year, 0.0]):
        jump(jumped)
        outcome = ask(session, "decisions.record", title=f"Rule {n}", rationale="So.", files=["gov.py"])
        if outcome is not None:
            ids.append(outcome["decision"]["id"])
        session.call("feedback", id="gov.py::governed", useful=True, context=["other.py::second"])
        session.call("search", query="governed")
        session.hover(repo.uri("gov.py"))
        assert session.call("audit.verify")["valid"]
    assert len(ids) >= 4
    repo.commit("change", {"gov.py": GOV.replace("* 2", "* 3")})
    session.scan()
    rows = session.call("decisions.list", limit=100)["decisions"]
    assert {row["id"]: row["status"] for row in rows} == dict.fromkeys(ids, "stale")
    pairs = session.call("synapses.inspect")["pairs"]
    assert all(0.0 <= pair["weight"] <= 1.0 for pair in pairs)
    assert sum(pair["count"] for pair in pairs) >= 4
    session.stop()
    again = Session(repo.path, env=env)
    assert {row["id"]: row["status"] for row in again.call("decisions.list", limit=100)["decisions"]} == dict.fromkeys(
        ids, "stale"
    )
    assert again.call("audit.verify")["valid"]
    again.stop()
