"""Which folder a command works on. Imports nothing of the engine, so that light commands stay light."""

from __future__ import annotations

import os
from pathlib import Path

from nm_lsp.base.errors import NotFound
from nm_lsp.cli.output import Output


def workspace_folder(given: Path | None, output: Output) -> Path:
    """The folder a command works on: `given`, else the repository around the current folder, else that folder."""
    if given is not None:
        folder = given.expanduser().resolve()
        if not folder.is_dir():
            raise NotFound(f"--folder: {given} is no folder.", hint="Name an existing folder, or leave the option out.")
        return folder
    current = Path.cwd()
    root = _repository_around(current)
    source = "the repository around the current folder" if root else "the current folder"
    output.detail(f"folder: {root or current} ({source})")
    return root or current


def from_here(typed: str, given: Path | None) -> str:
    """A path, or `path::symbol`, as it is typed in a folder of the workspace (`given` or that around the current
    folder), relative to the workspace. What lies in the current folder is meant; anything else stays as it is."""
    here = Path.cwd()
    root = given.expanduser().resolve() if given is not None else _repository_around(here) or here
    name, mark, symbol = typed.partition("::")
    if not name or here == root or not here.is_relative_to(root):
        return typed
    place = Path(os.path.normpath(here / name))
    if not os.path.lexists(place) or not place.is_relative_to(root):
        return typed
    slash = "/" if name.endswith("/") else ""
    return f"{place.relative_to(root).as_posix()}{slash}{mark}{symbol}"


def _repository_around(current: Path) -> Path | None:
    return next((folder for folder in (current, *current.parents) if (folder / ".git").exists()), None)
