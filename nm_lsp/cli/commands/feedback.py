"""`nm-lsp feedback`: say whether a hit was useful."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.memory_output import CALLER
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import FeedbackParams

app = command_app()


@app.command()
def feedback(
    symbol: Annotated[str, typer.Argument(help="The node id of a hit.")],
    useful: Annotated[bool, typer.Option("--useful/--useless", help="Whether it was of use.")],
    context: Annotated[
        list[str] | None, typer.Option("--with", help="A node it was useful with; may be given several times.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say whether a hit was useful, so that later answers are better."""
    output = Output(as_json=as_json, verbose=verbose)
    params = FeedbackParams(id=symbol, useful=useful, context=tuple(context) if context else None)
    with session(folder, output) as opened:
        result = opened.host.memory.feedback(params, opened.cancel, CALLER)
        if not opened.emit(result):
            done = "strengthened" if useful else "weakened"
            output.text(f"{result.edges} pairs of {result.id} {done} in {result.namespace}")
