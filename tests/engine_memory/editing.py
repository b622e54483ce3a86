"""A person at work without a server: a real repository, documents, an injected clock, and the brain that watches.

Everything runs on the caller's thread; `pass_time` is the only thing that takes time, and it takes none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from retrieval_corpus import build, read_folder

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.memory.desk import MemoryDesk
from nm_lsp.engine.memory.keeper import MemoryKeepers
from nm_lsp.engine.memory_requests import InspectParams
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.ranking import search
from nm_lsp.synapses.rules import read_factors

GO = Cancellation()
CALLER = Caller("cli", "tests")
START = 1_800_000_000.0
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
SETTINGS = (("user.name", "Ada"), ("user.email", "ada@example.org"), ("init.defaultBranch", "main"))


class Editing:
    """One clone, one editor. `index` is taken anew from the disk by `reindex`."""

    def __init__(self, root: Path, files: Mapping[str, str], *, git: bool = True) -> None:
        self.root = root
        self.now = START
        self.enabled = True
        self.is_indexed = True
        self.cause: str | None = None
        self.screen: dict[str, tuple[str, int]] = {}
        root.mkdir(parents=True, exist_ok=True)
        self.write(files)
        if git:
            self.git("init", "-q", "-b", "main")
            for name, value in SETTINGS:
                self.git("config", name, value)
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", "first")
        self.keepers = MemoryKeepers(lambda: self.now, threaded=False)
        self.repositories = Repositories(lambda: self.now)
        self.desk = self._open()
        self.reindex()
        self.tick()

    def _open(self) -> MemoryDesk:
        self.tree = WorkTree(self.root, self.repositories, git="git", revival=False, clock=lambda: self.now)
        return MemoryDesk(
            self.root,
            self.tree,
            self.keepers,
            corpus=lambda: self.corpus,
            ready=lambda: self.is_indexed,
            cause=lambda: self.cause,
            find=lambda question, _: [c.node.id for c in search(self.corpus, question).candidates],
            enabled=lambda: self.enabled,
            writes_page=lambda: True,
        )

    def reopen(self) -> None:
        """Another process, after what happened meanwhile."""
        self.desk.close()
        self.tree.close()
        self.desk = self._open()
        self.reindex()
        self.tick()
        self.tick()

    def close(self) -> None:
        self.desk.close()
        self.keepers.close()
        self.tree.close()
        self.repositories.close()

    # -- the disk -----------------------------------------------------------------------------------------------------

    def git(self, *arguments: str, at: float | None = None) -> str:
        """`at` is the time of what is committed."""
        dates = {f"GIT_{who}_DATE": f"@{at:.0f} +0000" for who in ("AUTHOR", "COMMITTER")} if at is not None else {}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=ENVIRONMENT | dates, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")

    def read(self, path: str) -> str:
        return (self.root / path).read_text("utf-8")

    def reindex(self) -> Corpus:
        self.corpus = build(
            {path: text for path, text in read_folder(self.root).items() if not path.startswith(".neuralmind")}
        ).corpus
        return self.corpus

    # -- the editor ---------------------------------------------------------------------------------------------------

    def open(self, *paths: str) -> None:
        for path in paths:
            if path not in self.screen:
                self.screen[path] = (self.read(path), 1)
                self.desk.document_opened(path)

    def change(self, path: str, text: str, *, version: int | None = None) -> None:
        """The client sends the whole text of a change."""
        if path not in self.screen:
            self.screen[path] = (self.read(path), 1)
        before, before_version = self.screen[path]
        after_version = before_version + 1 if version is None else version
        self.screen[path] = (text, after_version)
        self.desk.document_changed(path, before, text, after_version, before_version)

    def edit(self, path: str, symbol: str = "", *, mark: str = "x") -> None:
        """Add a line to the body of `symbol` (a name after `def`), or to the end of the file."""
        text = self.screen[path][0] if path in self.screen else self.read(path)
        lines = text.splitlines(keepends=True)
        at = next((n for n, line in enumerate(lines) if f"def {symbol}(" in line), None) if symbol else None
        indent = " " * (len(lines[at]) - len(lines[at].lstrip()) + 4) if at is not None else ""
        lines.insert(len(lines) if at is None else at + 1, f"{indent}{mark} = {len(text)}\n")
        self.change(path, "".join(lines))

    def save(self, *paths: str) -> None:
        for path in paths or tuple(self.screen):
            self.write({path: self.screen[path][0]})
            self.desk.document_saved(path)

    def close_documents(self) -> None:
        self.screen.clear()

    def reload(self, *paths: str) -> None:
        """The editor follows the disk, as VS Code does after a checkout."""
        for path in paths:
            text = self.read(path)
            if self.screen[path][0] != text:
                self.change(path, text)

    def pass_time(self, seconds: float, *, step: float = 0.5) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + step)
            self.desk.tick()
        self.flush()

    def tick(self) -> None:
        self.desk.tick()
        self.flush()

    def flush(self) -> None:
        self.desk.keeper.flush()

    def commit(self, message: str = "work") -> None:
        self.git("commit", "-q", "-a", "-m", message)
        self.tick()
        self.tick()

    # -- what was learned ---------------------------------------------------------------------------------------------

    def weights(self, namespace: str | None = None, *, files: bool = False) -> dict[tuple[str, str], float]:
        """Pair → weight now, as the production read gives it (or of one namespace alone, by its own weight).

        Of symbols, also with a file that stands for itself; with `files` the pairs of two files instead.
        """
        memory = self.desk.keeper.memory()
        if memory is None:
            return {}
        active = self.desk.namespace
        if namespace is None:
            parts = memory.parts(read_factors(active), active, self.now)
        else:
            parts = memory.parts({namespace: 1.0}, namespace, self.now)
        found: dict[tuple[str, str], float] = {}
        for _, rows, read in parts:
            for a, b, weight in zip(rows.a.tolist(), rows.b.tolist(), read.tolist(), strict=True):
                low, high = sorted((memory.names[a], memory.names[b]))
                if files is ("::" not in low + high):
                    found[low, high] = max(found.get((low, high), 0.0), round(weight, 4))
        return found

    def counters(self) -> dict[str, int]:
        rows = self.desk.inspect(InspectParams(), GO, CALLER).counters
        return {row.name: row.count for row in rows}
