"""Which folder a command works on. Imports nothing of the engine, so that light commands stay light."""

from __future__ import annotations

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
    root = next((folder for folder in (current, *current.parents) if (folder / ".git").exists()), None)
    source = "the repository around the current folder" if root else "the current folder"
    output.detail(f"folder: {root or current} ({source})")
    return root or current
