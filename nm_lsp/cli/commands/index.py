"""`nm-lsp index`: bring the index of a folder up to date and wait for it."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.exits import Exit
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import Nothing, RebuildParams

app = command_app()


@app.command()
def index(
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Also wait for all vectors.")] = True,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build anew instead of what changed.")] = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Build or refresh the index. What stays undone when this is cancelled is taken up next time."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output, ready=not rebuild, vectors=vectors and not rebuild) as opened:
        if rebuild:
            opened.host.rebuild(RebuildParams(), opened.cancel)
            opened.wait(vectors=vectors)
        result = opened.host.status(Nothing(), opened.cancel)
        if not opened.emit(result):
            left_out = f", {result.n_skipped:,} left out (see `nm-lsp status`)" if result.n_skipped else ""
            output.text(f"{counted(result.files, 'file')}, {counted(result.symbols, 'symbol')}{left_out}")
            output.text(f"vectors: {result.vectors.done:,} of {result.vectors.total:,}")
            for problem in result.problems:
                output.warn(f"{problem.message} {problem.hint or ''}".rstrip())
    if not result.ready:
        raise typer.Exit(Exit.NOTHING)
