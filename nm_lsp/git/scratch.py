"""A repository of our own in an empty folder, written commit by commit: for evaluations, never for anybody's work.

Guarantees: fixed author and dates, so that equal contents give equal commits; nothing outside the folder is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nm_lsp.git.process import Git

_BRANCH: Final = "refs/heads/main"
_EPOCH: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
_PERSON: Final = "Eval <eval@example.org>"


class ScratchRepository:
    """`commit` moves HEAD and the work tree; time passes by an hour a commit."""

    def __init__(self, folder: Path, *, executable: str = "git") -> None:
        self.folder = folder
        self._git = Git(folder, executable=executable)
        self._git.run("init", "-q", "--template=", "-b", "main")
        self._git.run("config", "user.name", "Eval")
        self._git.run("config", "user.email", "eval@example.org")
        self._n_commits = 0

    def commit(self, files: Mapping[str, str | None], message: str = "change") -> None:
        """One commit that sets each path to its text, or removes it where that is None."""
        when = f"{_PERSON} {_EPOCH + 3600 * self._n_commits} +0000"
        parts = [f"commit {_BRANCH}", f"committer {when}", _data(message)]
        if self._n_commits:
            parts.append(f"from {_BRANCH}^0")
        for path, text in sorted(files.items()):
            parts += [f"D {path}"] if text is None else [f"M 100644 inline {path}", _data(text)]
        self._git.run("fast-import", "--quiet", stdin="\n".join([*parts, ""]).encode("utf-8"))
        self._git.run("reset", "-q", "--hard")
        self._n_commits += 1


def _data(text: str) -> str:
    return f"data {len(text.encode('utf-8'))}\n{text}"
