"""Small repositories with fixed author and dates, built by git itself and read by `nm_lsp.git`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nm_lsp.git import Repository, discover


class Sandbox:
    """A work tree and the user's side of it: commands as a person types them."""

    def __init__(self, root: Path, *init: str) -> None:
        self.root = root
        self._clock = 1_700_000_000
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        self._clock += 60
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        date = f"{self._clock} +0000"
        env |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        env |= {"GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(
            ["git", *arguments], cwd=at or self.root, env=env, capture_output=True, check=True, stdin=subprocess.DEVNULL
        )
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, message: str = "change", **files: str) -> str:
        for path, text in files.items():
            self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def open(self, folder: Path | None = None) -> Repository:
        place = discover(folder or self.root)
        assert place is not None
        return Repository(place)


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path / "repo")


@pytest.fixture
def opened(sandbox: Sandbox) -> Iterator[Callable[[], Repository]]:
    repositories: list[Repository] = []

    def build() -> Repository:
        repositories.append(sandbox.open())
        return repositories[-1]

    yield build
    for repository in repositories:
        repository.close()
