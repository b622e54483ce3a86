"""Three servers, the command line and git's hooks on one repository at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, Session, private_env
from lengths import Length, lengths

PATIENCE_S = 60.0
PROGRAM = [sys.executable, "-P", "-m", "nm_lsp"]
N_SERVERS = 3
NO_HOOKS = "hooks are shell scripts"


def cli(repo: Repo, env: dict[str, str], *arguments: str) -> str:
    run = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=repo.path,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, (arguments, run.returncode, run.stderr)
    assert "Traceback" not in run.stderr
    return run.stdout


def together(*works: Callable[[], Any]) -> None:
    """Run all at once; the first failure of any is raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 (raised below, in the test's own thread)
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S * 3)
        assert not thread.is_alive(), "it hangs"
    if failures:
        raise failures[0]


@pytest.mark.skipif(os.name == "nt", reason=NO_HOOKS)
@lengths(1, share=10)
def test_everybody_at_once(length: Length, tmp_path: Path) -> None:
    """All record, restore, ask and commit at the same time: nothing that was answered is missing anywhere, all see the
    same, the chain is whole, and one of the servers alone writes the index."""
    repo = Repo(tmp_path / "repo", {f"m{n}.py": GOV for n in range(N_SERVERS)} | {"gov.py": GOV})
    env = private_env(tmp_path / "home")
    cli(repo, env, "hooks", "install")
    settings = {"index": {"enabled": True}}
    sessions = [Session(repo.path, env=env, settings=settings) for _ in range(N_SERVERS)]
    titles: dict[str, str] = {}
    learned: list[int] = []
    try:
        for session in sessions:
            session.until(lambda session=session: session.call("status")["ready"], PATIENCE_S)

        def by_server(number: int) -> None:
            session = sessions[number]
            for n in range(length.rounds):
                title = f"Server {number}, rule {n}"
                identity = session.record(f"m{number}.py", title=title)
                titles[identity] = title
                path = repo.path / f"m{number}.py"
                path.write_text(GOV + f"\nX = {n}\n")
                changes = [{"uri": path.as_uri(), "type": 2}]
                session.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
                session.call("search", query="governed values doubled")
                useful = session.call("feedback", id="gov.py::governed", useful=True, context=["gov.py::other"])
                learned.append(useful["edges"])

        def by_command_line() -> None:
            for n in range(length.rounds):
                title = f"Command line, rule {n}"
                given = ("gov.py", "--title", title, "--rationale", "So.", "--json")
                titles[json.loads(cli(repo, env, "decisions", "record", *given))["decision"]["id"]] = title

        def by_git() -> None:
            for n in range(length.rounds):
                # The others write files and the commit's hooks start programs of ours.
                repo.commit(f"commit {n}", {f"new{n}.py": GOV})
                time.sleep(0.1)

        together(*[lambda number=n: by_server(number) for n in range(N_SERVERS)], by_command_line, by_git)
        repo.commit("the last")
        seen = []
        for session in sessions:
            session.scan()
            rows = session.call("decisions.list", limit=1_000)["decisions"]
            assert {row["id"]: row["title"] for row in rows} == titles
            verdict = session.call("audit.verify")
            assert verdict["valid"], verdict
            seen.append(({row["id"]: row["status"] for row in rows}, verdict["records"], verdict["head"]))
        assert all(each == seen[0] for each in seen)
        assert [session.call("status")["isIndexWriter"] for session in sessions].count(True) == 1
        pairs = sessions[0].call("synapses.inspect", limit=100)["pairs"]
        used = {frozenset((row["a"], row["b"])): row["count"] for row in pairs}
        # What was said while a server read its index may still wait for that.
        assert sum(learned) <= used[frozenset(("gov.py::governed", "gov.py::other"))] <= len(learned)
        for session in sessions:
            session.stop()
    finally:
        for session in sessions:
            session.client.kill()
