"""Filters (`filter.<name>.clean`, `.process`) are programs; those that a repository itself configures are not run.

git runs them whenever a file's blob id is asked for, so a repository that came with a `.git` folder could run anything
by being opened. A filter of the user's or the system's configuration (as git-lfs installs it) is the user's own choice
and is run. So is every filter of a repository that the user's configuration names:

    git config --global --add nm-lsp.trustedRepository /path/to/it

Must not know: what the files are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.git.process import Git, quoted

TRUST_KEY: Final = "nm-lsp.trustedRepository"

_PATTERN: Final = r"^(filter\..*\.(clean|process)|nm-lsp\.trustedrepository)$"
_OWN_SCOPES: Final = frozenset({"local", "worktree"})


class FilterNotRun(GitUnavailable):
    """The content of a file is not known because only a program of its repository could tell."""

    def __init__(self, path: str, name: str, repository: Path) -> None:
        super().__init__(
            f"{path!r} goes through the filter {name!r}, a program that only its repository names; it was not run.",
            hint=f"If you trust the repository, run: git config --global --add {TRUST_KEY} {quoted(repository)}",
        )


def untrusted(git: Git, root: Path) -> frozenset[str]:
    """The names of the filters that the configuration of the repository at `root` would have run.

    One process. Raises `GitUnavailable`.
    """
    asked = ("--includes", "--get-regexp", _PATTERN)
    try:
        words = _words(git.run("config", "-z", "--show-scope", *asked, ok=(0, 1)))
    except GitUnavailable as error:
        if "show-scope" not in error.message:
            raise
        # A git before 2.26 cannot say where a value stands: then no repository is trusted.
        own = _words(git.run("config", "-z", "--local", *asked, ok=(0, 1)))
        words = [word for row in own for word in ("local", row)]
    found = set()
    for scope, row in zip(words[::2], words[1::2], strict=False):
        key, _, value = row.partition("\n")
        if key == TRUST_KEY.lower():
            if scope not in _OWN_SCOPES and _is_same(value, root):
                return frozenset()
        elif scope in _OWN_SCOPES:
            found.add(key.removeprefix("filter.").rpartition(".")[0])
    return frozenset(found)


def filters_of(git: Git, paths: Iterable[str]) -> dict[str, str]:
    """Path → the name of the filter that its attributes ask for, where they ask for one. One process."""
    sent = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = _words(git.run("check-attr", "-z", "--stdin", "filter", stdin=sent))
    rows = zip(words[::3], words[2::3], strict=False)
    return {path: value for path, value in rows if value not in {"unspecified", "unset", "set"}}


def _words(output: bytes) -> list[str]:
    return output.decode("utf-8", "surrogateescape").split("\0")[:-1]


def _is_same(value: str, root: Path) -> bool:
    return Path(value).expanduser().resolve() == root
