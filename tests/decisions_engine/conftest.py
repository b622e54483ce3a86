"""A repository of fixed authors and dates with a desk over it, and a nearness that needs no weights."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.decision_requests import (
    Caller,
    DecisionExportParams,
    DecisionExportResult,
    DecisionImportParams,
    DecisionImportResult,
    DecisionSearchParams,
    DecisionSearchResult,
    InvalidateParams,
    RecordParams,
    RecordResult,
)
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.similar import ModelNearness, Vectors
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.query_embedding import QueryEmbedder

CALLER = Caller("cli", "tests")
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


SYNONYMS = {"cookie": "session", "drop": "delete", "faster": "performance", "speed": "performance"}


class WordNearness:
    """Meaning by the words of a text, a synonym standing for its partner. Counts what it embeds."""

    def __init__(self) -> None:
        self.model: str | None = "words"
        self.embedded: list[str] = []

    def vectors(self, texts: Sequence[str]) -> Vectors | None:
        if self.model is None:
            return None
        self.embedded += texts
        rows = np.zeros((len(texts), 512), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[sum(ord(sign) * 31**at for at, sign in enumerate(SYNONYMS.get(word, word))) % 512] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


class Bench:
    """One clone and its desk. Each ends with the test that opened it (`own_state`)."""

    opened: ClassVar[list[Bench]] = []

    def __init__(self, root: Path, nearness: object | None = None, *, git: str = "git") -> None:
        self.root = root
        self.time = 1_800_000_000.0
        self.nearness = nearness or ModelNearness(QueryEmbedder(enabled=False))
        self.git_path = git
        self.repositories = Repositories(self._tick)
        self.desk = self._open()
        self.opened.append(self)

    def _tick(self) -> float:
        self.time += 1
        return self.time

    def _open(self) -> Desk:
        self.monotonic = 0.0
        self.tree = WorkTree(self.root, self.repositories, git=self.git_path, revival=False, clock=self._monotonic)
        return Desk(
            self.root,
            self.tree,
            screen=lambda _: None,
            spans=lambda _path, _symbol: None,
            nearness=self.nearness,  # type: ignore[arg-type]
            on_change=lambda: None,
        )

    def _monotonic(self) -> float:
        self.monotonic += 1
        return self.monotonic

    def reopen(self) -> None:
        """As a new process would."""
        self.close()
        self.repositories = Repositories(self._tick)
        self.desk = self._open()

    def close(self) -> None:
        self.tree.close()
        self.repositories.close()

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=ENVIRONMENT, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def record(self, title: str, *files: str, rationale: str = "Because.", **fields: object) -> str:
        return self.recorded(title, *files, rationale=rationale, **fields).decision.row.id

    def recorded(self, title: str, *files: str, rationale: str = "Because.", **fields: object) -> RecordResult:
        params = RecordParams(title=title, rationale=rationale, files=files or ("a.py",), **fields)  # type: ignore[arg-type]
        return self.desk.record(params, Cancellation(), CALLER)

    def invalidate(self, identity: str, reason: str = "It was wrong.") -> None:
        self.desk.invalidate(InvalidateParams(id=identity, reason=reason), Cancellation(), CALLER)

    def search(self, query: str, **fields: object) -> DecisionSearchResult:
        params = DecisionSearchParams(query=query, **fields)  # type: ignore[arg-type]
        return self.desk.search(params, Cancellation(), CALLER)

    def export(self, **fields: object) -> DecisionExportResult:
        return self.desk.export(DecisionExportParams(**fields), Cancellation(), CALLER)  # type: ignore[arg-type]

    def import_(self, source: str | Path, **fields: object) -> DecisionImportResult:
        params = DecisionImportParams(source=str(source), **fields)  # type: ignore[arg-type]
        return self.desk.import_(params, Cancellation(), CALLER)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Backups, caches and processes of a test stay with it; git sees no settings of the machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    yield
    while Bench.opened:
        Bench.opened.pop().close()


@pytest.fixture
def make_bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(name: str = "project", nearness: object | None = None, files: dict[str, str] | None = None) -> Bench:
        root = tmp_path / name
        root.mkdir()
        bench = Bench(root, nearness)
        bench.git("init", "-q", "-b", "main")
        bench.git("config", "user.name", "Ada")
        bench.git("config", "user.email", "ada@example.org")
        bench.commit(files or {"a.py": "x = 1\n", "b.py": "y = 1\n", "c.py": "z = 1\n"}, "first")
        return bench

    return make


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
