"""`nm-lsp explain`: why each hit of a question is there, in sentences."""

from __future__ import annotations

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.options import Folder, Json, Question, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import ExplainParams
from nm_lsp.wire.decode import decode

app = command_app()


@app.command()
def explain(question: Question, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Say why each hit of a question is there."""
    output = Output(as_json=as_json, verbose=verbose)
    params = decode(ExplainParams, {"query": " ".join(question)})
    with session(folder, output) as opened:
        result = opened.host.explain(params, opened.cancel)
        if not opened.emit(result):
            output.text(clean(result.text))
            opened.tell_partial(result.partial)
    if not result.hits:
        raise typer.Exit(Exit.NOTHING)
