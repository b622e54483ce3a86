"""`nm-lsp relevance`: every score and factor behind a ranking, one candidate a line."""

from __future__ import annotations

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.hits import spot
from nm_lsp.cli.options import Folder, Json, Limit, Question, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import Relevance, RelevanceParams
from nm_lsp.wire.decode import decode

app = command_app()

HEADINGS = ("score", "fused", "keyword", "vector", "place", "symbol", "adjustments")


@app.command()
def relevance(
    question: Question, limit: Limit = 50, folder: Folder = None, as_json: Json = False, verbose: Verbose = False
) -> None:
    """Show every score and factor behind a question's ranking."""
    output = Output(as_json=as_json, verbose=verbose)
    params = decode(RelevanceParams, {"query": " ".join(question), "limit": limit})
    with session(folder, output, question=params.query) as opened:
        result = opened.host.relevance(params, opened.cancel)
        if not opened.emit(result):
            output.table(HEADINGS, [_row(node) for node in result.nodes], right=(0, 1, 2, 3))
            opened.tell_partial(result.partial)
    if not result.nodes:
        raise typer.Exit(Exit.NOTHING)


def _row(node: Relevance) -> tuple[str, ...]:
    trace = node.trace
    return (
        f"{trace.score:.4f}",
        f"{trace.fused:.4f}",
        _leg(trace.keyword_rank, trace.keyword_score),
        _leg(trace.vector_rank, trace.vector_score),
        spot(node.place),
        node.id.partition("::")[2] or node.id,
        ", ".join(f"{name} ×{factor:.2f}" for name, factor in trace.adjustments),
    )


def _leg(rank: int | None, score: float | None) -> str:
    """`3 (12.41)`: rank and raw score in one leg, a dash where the leg did not return it."""
    return "–" if rank is None else f"{rank} ({score or 0:.2f})"
