"""`nm-lsp feedback`: say whether a hit was useful."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.memory_output import CALLER
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import FeedbackParams

app = command_app()


@app.command()
def feedback(
    symbol: Annotated[str, typer.Argument(help="The node id of a hit.")],
    useful: Annotated[bool, typer.Option("--useful", help="It was of use, together with what --with names.")] = False,
    useless: Annotated[bool, typer.Option("--useless", help="It was of no use.")] = False,
    context: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NODE", help="A node it was useful with. Repeat for several."),
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say whether a hit was useful, so that later answers are better."""
    if useful == useless:
        raise typer.BadParameter("give one of --useful and --useless")
    if useful and not context:
        # In an editor it goes with the last question; this process has answered none.
        raise typer.BadParameter("--useful needs --with NODE: name what it was useful with, such as another hit")
    output = Output(as_json=as_json, verbose=verbose)
    params = FeedbackParams(id=symbol, useful=useful, context=tuple(context) if context else None)
    with session(folder, output) as opened:
        result = opened.host.memory.feedback(params, opened.cancel, CALLER)
        if not opened.emit(result):
            done = "strengthened" if useful else "weakened"
            output.text(f"{counted(result.edges, 'pair')} of {result.id} {done} in {result.namespace}")
