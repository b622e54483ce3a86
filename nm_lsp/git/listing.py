"""The files of a folder as git sees them, for the index: tracked, and untracked but not ignored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from nm_lsp.git import parse
from nm_lsp.git.process import Git, NotARepository

_LIST_TIMEOUT_S = 120.0
_MAX_NESTING = 3
_MODULE_PATH = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)


def folder_files(folder: Path, paths: Sequence[str] | None, *, executable: str = "git") -> list[str] | None:
    """Paths relative to `folder`, each once: of everything below it, or of `paths` (files or folders) only.

    Files deleted from the disk are among them as long as they are tracked. Repositories inside (submodules, clones that
    nobody ignores) are listed by their own rules. None where `folder` is in no repository, or is itself ignored by the
    one around it. Raises `GitUnavailable`.
    """
    git = Git(folder, executable=executable)
    try:
        found = _listed(git, paths, _MAX_NESTING)
        if not found and git.run("check-ignore", ".", ok=(0, 1)):
            return None
    except NotARepository:
        return None
    return found


def _listed(git: Git, paths: Sequence[str] | None, depth: int) -> list[str]:
    chosen = ("--", *paths) if paths is not None else ()
    output = git.run("ls-files", "-z", "-c", "-o", "--exclude-standard", *chosen, timeout_s=_LIST_TIMEOUT_S)
    names = [parse.name(raw) for raw in dict.fromkeys(output.split(b"\0")) if raw]
    if depth == 0:
        return [name for name in names if not name.endswith("/")]
    inner = [name.rstrip("/") for name in names if name.endswith("/")]
    inner += [module for module in _submodules(git.folder) if module in names]
    if not inner:
        return names
    nested = set(inner)
    found = [name for name in names if name.rstrip("/") not in nested]
    for name in inner:
        if (git.folder / name / ".git").exists():
            found += [f"{name}/{path}" for path in _listed(git.at(git.folder / name), None, depth - 1)]
    return found


def _submodules(folder: Path) -> list[str]:
    try:
        text = (folder / ".gitmodules").read_text("utf-8", "replace")
    except OSError:
        return []
    return _MODULE_PATH.findall(text)
