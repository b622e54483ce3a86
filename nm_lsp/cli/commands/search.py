"""`nm-lsp search`: symbols that match a question, best first."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import from_here
from nm_lsp.cli.hits import print_hits
from nm_lsp.cli.options import Folder, Json, Limit, Question, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import SearchParams
from nm_lsp.wire.decode import decode

app = command_app()


@app.command()
def search(
    question: Question,
    limit: Limit = 10,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="function, method, class, …; may be repeated.")
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="Only in this file or folder.")] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find symbols, best first: by name, signature, documentation and body."""
    output = Output(as_json=as_json, verbose=verbose)
    below = from_here(path, folder) if path is not None else None
    params = decode(SearchParams, {"query": " ".join(question), "limit": limit, "kinds": kinds, "path": below})
    with session(folder, output, question=params.query) as opened:
        result = opened.host.search(params, opened.cancel)
        if not opened.emit(result):
            print_hits(output, result.hits)
            opened.tell_partial(result.partial)
    if not result.hits:
        output.note("nothing here matches")
        raise typer.Exit(Exit.NOTHING)
