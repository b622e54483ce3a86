"""`nm-lsp graph`: the code graph as a file, and whether a file is one."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.exits import Exit
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import GraphExportParams, GraphValidateParams
from nm_lsp.wire.decode import decode

app = command_app()


@app.callback()
def graph() -> None:
    """Export or validate the code graph."""


@app.command()
def export(
    to: Annotated[
        str | None, typer.Option("--to", metavar="PATH", help="A file inside the folder; stdout when left out.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write the code graph as schema-versioned JSON."""
    output = Output(as_json=as_json, verbose=verbose)
    params = decode(GraphExportParams, {"to": to})
    with session(folder, output) as opened:
        result = opened.host.graph_export(params, opened.cancel)
        if opened.emit(result):
            return
        if result.graph is not None:
            output.document(result.graph)
        where = f" in {result.path}" if result.path else ""
        output.note(f"{counted(result.nodes, 'node')}, {counted(result.edges, 'edge')}{where}")


@app.command()
def validate(
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="A graph.json; the folder's own graph when left out.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Check a graph.json against the contract. Needs no weights."""
    output = Output(as_json=as_json, verbose=verbose)
    params = decode(GraphValidateParams, {"path": path})
    # A file is judged by itself; only the folder's own graph needs the index.
    with session(folder, output, ready=path is None) as opened:
        result = opened.host.graph_validate(params, opened.cancel)
        if not opened.emit(result):
            for problem in result.problems:
                output.text(clean(problem))
            verdict = output.style("valid", "green") if result.valid else output.style("not valid", "red")
            output.text(f"{verdict}: {counted(result.nodes, 'node')}, {counted(result.edges, 'edge')}")
    if not result.valid:
        raise typer.Exit(Exit.NOTHING)
