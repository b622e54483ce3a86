"""`nm-lsp neighbors`: what goes with a symbol, as use has taught and as imports and calls say."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import from_here
from nm_lsp.cli.memory_output import CALLER, spot_line
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import NeighborsParams

app = command_app()


@app.command()
def neighbors(
    symbol: Annotated[str, typer.Argument(help="A node id (`path::Class.name`), a file, or a name that is unique.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="At most so many.")] = 10,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what is edited, committed and used together with a symbol."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        params = NeighborsParams(symbol=from_here(symbol, folder), limit=limit)
        result = opened.host.memory.neighbors(params, opened.cancel, CALLER)
        if not opened.emit(result) and result.neighbors:
            output.table(
                ("weight", "from", "times", "symbol", "where"),
                [
                    (
                        f"{row.weight:.2f}",
                        row.source + (" ★" if row.lasting else ""),
                        str(row.count),
                        row.id,
                        spot_line(row.place),
                    )
                    for row in result.neighbors
                ],
                right=(0, 2),
            )
    if not result.neighbors:
        output.note(f"nothing goes with {result.id} yet")
        raise typer.Exit(Exit.NOTHING)
