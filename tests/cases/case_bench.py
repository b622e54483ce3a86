"""Where a case is played: repositories and real servers on them, and the checks that hold at the end of every case.

The vocabulary of the cases: R0 is a fresh repository (`Bench.repo`), D1 one decision on its `gov.py`, recorded at HEAD
(`Session.record("gov.py")`); a nudge is what an editor may say after something happened (`nudge`); STALE(f) is
`Session.until_stale`, CLEAN(f) is `Session.until_clean`, ALIVE is `alive`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from decision_session import GOV, Repo, Session, private_env
from lsp_harness import REAL, ProcessClient

END_S = 15.0
"""How long a process may take to end by itself, on a machine that is busy."""

MARKER = "XDG_STATE_HOME"
"""The variable by whose value every process of a case is known, whoever its parent is by now."""


class Bench:
    """All that one case uses lives below `folder`; `check` looks at it when the case is over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = private_env(folder / "home")
        self._clients: list[ProcessClient] = []
        self._left: dict[Path, set[str]] = {}
        self._excused: set[Path] = set()

    # -- what a case uses ---------------------------------------------------------------------------------------------

    def repo(self, name: str = "repo", files: dict[str, str] | None = None) -> Repo:
        """R0, or a repository with one commit of other files."""
        return Repo(self.folder / name, files)

    def linked(self, repo: Repo, name: str, branch: str) -> Repo:
        """A linked work tree of `repo` on a new branch."""
        repo.git("worktree", "add", "-q", "-b", branch, str(self.folder / name))
        return repo.beside(self.folder / name)

    @contextlib.contextmanager
    def session(self, *roots: Path, env: dict[str, str] | None = None, **more: Any) -> Iterator[Session]:
        """A real server on folders, ended properly; `env` comes on top of the bench's own."""
        opened = Session(*roots, env={**self.env, **(env or {})}, **more)
        self._clients.append(opened.client)
        try:
            yield opened
            if opened.client.process.poll() is None:
                opened.stop()
        finally:
            opened.client.kill()

    def client(self, command: list[str] = REAL, *, env: dict[str, str] | None = None, **more: Any) -> ProcessClient:
        """A bare client of a server process; whatever still runs when the case is over is killed."""
        started = ProcessClient(command, env={**self.env, **(env or {})}, **more)
        self._clients.append(started)
        return started

    def run(self, *command: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A program as the same user; the caller judges its exit code."""
        whole = {**os.environ, **self.env, **(env or {})}
        return subprocess.run(command, cwd=cwd, env=whole, capture_output=True, text=True, check=False, timeout=60)

    # -- what a case may leave ----------------------------------------------------------------------------------------

    def leaves(self, root: Path, *lines: str) -> None:
        """The lines of `git status --porcelain` that the case itself causes, such as ` M gov.py`."""
        self._left.setdefault(root, set()).update(lines)

    def excuse(self, path: Path) -> None:
        """A database, work tree or repository that the case breaks on purpose."""
        self._excused.add(path)

    # -- what holds for every case ------------------------------------------------------------------------------------

    def close(self) -> None:
        for client in self._clients:
            client.kill()

    def check(self) -> None:
        """The common checks; call it after `close`."""
        for client in self._clients:
            assert client.unframed == b"", client.unframed[:500]
            # The last frame of a process that was killed may be cut.
            assert client.cut == b"" or (client.process.returncode or 0) < 0
            assert b"Traceback" not in client.errors, client.errors[-3000:].decode(errors="replace")
        assert self._left_processes() == []
        for path in sorted(self.folder.rglob("*.db")):
            if path.name in {"memory.db", "synapses.db"} and path.is_file() and path not in self._excused:
                assert integrity(path) == "ok", path
        for root in sorted(each.parent for each in self.folder.rglob(".git")):
            if root not in self._excused:
                self._check_repository(root)

    def _left_processes(self) -> list[str]:
        """Processes with our environment that do not end by themselves within seconds."""
        if not self._clients:
            return []
        left = list(self._processes())
        _, alive = psutil.wait_procs(left, timeout=END_S) if left else ([], [])
        names = []
        for process in alive:
            with contextlib.suppress(psutil.Error):
                names.append(" ".join(process.cmdline()))
                process.kill()
        return names

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARKER) == self.env[MARKER]:
                    yield process

    def _check_repository(self, root: Path) -> None:
        fsck = self.run("git", "fsck", "--no-dangling", "--no-progress", cwd=root)
        assert (fsck.returncode, fsck.stderr) == (0, ""), (root, fsck.stdout, fsck.stderr)
        status = self.run("git", "status", "--porcelain", cwd=root)
        if status.returncode == 0:  # a bare repository has no status
            assert set(status.stdout.splitlines()) == self._left.get(root, set()), root


def integrity(path: Path) -> str:
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        return str(database.execute("PRAGMA integrity_check").fetchone()[0])


# -- vocabulary --------------------------------------------------------------------------------------------------------


def also(*values: Any) -> Any:
    """Values of a parameter for `pytest -m slow` alone: the case in full, or another way to the same."""
    return pytest.param(*values, marks=pytest.mark.slow)


def changed(factor: int) -> str:
    """gov.py with another rule: its symbol `governed` is not the same code any more."""
    return GOV.replace("* 2", f"* {factor}")


def nudge(s: Session, uri: str, how: str = "save") -> None:
    """What an editor may say after something happened: it saved, it saw a file change, or the user asked for a scan."""
    match how:
        case "save":
            s.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        case "watched":
            s.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
        case _:
            s.scan()


def alive(s: Session, repo: Repo) -> None:
    """The status is answered, and so is a hover; the time is printed, since it is that of a busy machine."""
    started = time.monotonic()
    s.client.request("neuralmind/status", {"folder": repo.path.as_uri()})
    s.hover(repo.uri("other.py"))
    print(f"alive after {time.monotonic() - started:.3f} s, load {os.getloadavg()[0]:.1f}")


def detail_of(s: Session, identity: str) -> dict[str, Any]:
    """A decision as it stands after a rescan."""
    s.scan()
    found: dict[str, Any] = s.call("decisions.get", ids=[identity])["decisions"][0]
    return found


def status_of(s: Session, identity: str) -> str:
    return str(detail_of(s, identity)["status"])


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Everything that lies below a folder, to compare with later."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def program(path: Path, text: str) -> Path:
    """A shell script, such as a git that is not quite git."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def real_git() -> str:
    found = shutil.which("git")
    assert found is not None
    return found
