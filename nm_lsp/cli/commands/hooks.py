"""`nm-lsp hooks`: git hooks that tell the server at once when HEAD moved. Nothing is lost without them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import workspace_folder
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.engine import hooks as engine
from nm_lsp.engine.settings import resolve_settings
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces

app = command_app()

COLOURS = {"installed": "green", "outdated": "yellow", "missing": "dim", "disabled": "red"}
Force = Annotated[
    bool, typer.Option("--force", help="Also in a folder that is shared with a team or with other repositories.")
]


@app.callback()
def hooks() -> None:
    """Install git hooks that append one line and start nothing; the server then looks at once."""


@app.command()
def install(force: Force = False, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Add our lines to post-commit, post-merge, post-rewrite and post-checkout; hooks that are there keep working."""
    output, root, git = _opened(folder, as_json=as_json, verbose=verbose)
    _print(output, root, engine.install(root, force=force, git=git))


@app.command()
def uninstall(force: Force = False, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Take our lines out again; every file is as it was before."""
    output, root, git = _opened(folder, as_json=as_json, verbose=verbose)
    _print(output, root, engine.uninstall(root, force=force, git=git))


@app.command()
def status(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Say of each hook whether it is installed and runs. Exits with 1 if not all do."""
    output, root, git = _opened(folder, as_json=as_json, verbose=verbose)
    result = engine.status(root, git=git)
    _print(output, root, result)
    if not result.active:
        raise typer.Exit(Exit.NOTHING)


def _opened(folder: Path | None, *, as_json: bool, verbose: bool) -> tuple[Output, Path, str]:
    output = Output(as_json=as_json, verbose=verbose)
    root = workspace_folder(folder, output)
    settings, _ = resolve_settings(None, root)
    return output, root, settings.git.path


def _print(output: Output, root: Path, result: engine.HooksResult) -> None:
    if output.as_json:
        output.document(encode(result, FolderPlaces(root)))
        return
    for row in result.hooks:
        beside = f"  beside {row.beside}" if row.beside else ""
        output.text(f"{output.style(row.state.ljust(9), COLOURS[row.state])}  {row.hook.ljust(13)}{clean(beside)}")
    output.note(f"in {result.hooks_path}")
    for note in result.notes:
        output.note(note)
