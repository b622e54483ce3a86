"""`nm-lsp query`: the right context for a question, ready for a person or an agent to read."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.exits import Exit
from nm_lsp.cli.hits import spot
from nm_lsp.cli.options import Budget, Folder, Json, Question, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.session import Session, session
from nm_lsp.engine.requests import QueryParams, QueryResult
from nm_lsp.wire.decode import decode

app = command_app()


@app.command()
def query(
    question: Question,
    budget: Budget = None,
    trace: Annotated[bool, typer.Option("--trace", help="Add how every candidate was ranked.")] = False,
    through_server: Annotated[
        bool, typer.Option("--through-server", help="Ask a language server started for it, as an editor would.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Ask how something works; get the right code in about 1,000 tokens."""
    output = Output(as_json=as_json, verbose=verbose)
    asked = {"query": " ".join(question), "budget": budget, "trace": trace}
    params = decode(QueryParams, asked)
    if through_server:
        # Imported here because an ordinary question needs no server.
        from nm_lsp.cli.through_server import ask

        found = ask(folder, {name: value for name, value in asked.items() if value}, output)
    else:
        with session(folder, output, question=params.query) as opened:
            result = opened.host.query(params, opened.cancel)
            if not opened.emit(result) and result.hits:
                _print(opened, result)
        found = bool(result.hits)
    if not found:
        output.note("nothing here matches")
        raise typer.Exit(Exit.NOTHING)


def _print(opened: Session, result: QueryResult) -> None:
    output = opened.output
    output.text(clean(result.text))
    if result.trace is not None:
        output.text()
        output.table(
            ("score", "fused", "keyword", "vector", "symbol", "adjustments"),
            [
                (
                    f"{row.score:.4f}",
                    f"{row.fused:.4f}",
                    "–" if row.keyword_rank is None else str(row.keyword_rank),
                    "–" if row.vector_rank is None else str(row.vector_rank),
                    row.id,
                    ", ".join(f"{name} ×{factor:.2f}" for name, factor in row.adjustments),
                )
                for row in result.trace.candidates
            ],
            right=(0, 1, 2, 3),
        )
    output.note(f"{counted(result.tokens, 'token')}, {counted(len(result.hits), 'hit')}")
    output.detail("\n".join(f"  {spot(hit.place)}  {hit.name}" for hit in result.hits))
    opened.tell_partial(result.partial)
