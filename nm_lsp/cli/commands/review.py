"""`nm-lsp review`: what usually changes together with the present changes and did not."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.memory_output import CALLER, spot_line
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import ReviewParams

app = command_app()


@app.command()
def review(
    against: Annotated[str | None, typer.Option("--against", help="A commit or branch; HEAD by default.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="At most so many.")] = 10,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what usually changes with the present changes and did not."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        result = opened.host.memory.review(ReviewParams(against=against, limit=limit), opened.cancel, CALLER)
        if opened.emit(result):
            return
        if not result.changed:
            output.note("nothing differs")
        elif not result.missing:
            output.note(f"nothing is known to go with the {counted(len(result.changed), 'changed symbol')}")
        else:
            rows = [(f"{row.energy:.2f}", row.id, spot_line(row.place), row.because) for row in result.missing]
            output.table(("energy", "usually changes too", "where", "because of"), rows, right=(0,))
