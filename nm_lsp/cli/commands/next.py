"""`nm-lsp next`: what is usually touched after a symbol."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import from_here
from nm_lsp.cli.memory_output import CALLER, spot_line
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import NextParams

app = command_app()


@app.command(name="next")
def next_command(
    symbol: Annotated[str, typer.Argument(help="A node id, a file, or a name that is unique.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="At most so many.")] = 10,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what is usually touched after a symbol."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        params = NextParams(symbol=from_here(symbol, folder), limit=limit)
        result = opened.host.memory.next(params, opened.cancel, CALLER)
        if not opened.emit(result) and result.steps:
            rows = [(f"{row.share:.0%}", f"{row.count:.1f}", row.id, spot_line(row.place)) for row in result.steps]
            output.table(("share", "times", "symbol", "where"), rows, right=(0, 1))
    if not result.steps:
        output.note("nothing was ever touched after it")
        raise typer.Exit(Exit.NOTHING)
