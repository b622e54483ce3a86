"""`nm-lsp probe`: ask for documented symbols by their documentation and see which are not found."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.memory_output import CALLER, spot_line
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import ProbeParams

app = command_app()


@app.command()
def probe(
    sample: Annotated[int, typer.Option("--sample", min=1, max=1_000, help="How many symbols to ask for.")] = 50,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Ask for symbols by what their documentation says; list those that are not found."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        result = opened.host.memory.probe(ProbeParams(sample=sample), opened.cancel, CALLER)
        if opened.emit(result):
            return
        if result.blind_spots:
            rows = [
                ("–" if row.rank is None else str(row.rank), row.id, spot_line(row.place), row.question[:80])
                for row in result.blind_spots
            ]
            output.table(("rank", "symbol", "where", "asked"), rows, right=(0,))
            output.text()
            for spot in result.blind_spots:
                output.text(f"{output.style(spot.id, 'bold')}: {spot.advice}")
        found = f"{result.found_first} of {result.asked} came first, {result.found_in_ten} among the first ten"
        output.note(f"{found}; mean reciprocal rank {result.mrr:.2f}")
