"""`nm-lsp decisions eval`: how well decisions are found, and that none is found that does not hold."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nm_lsp.cli.interrupts import interruptible
from nm_lsp.cli.options import Json, Verbose
from nm_lsp.cli.output import Output

GOAL = "goals: stale influence rate 0, recall@5 at least 0.9"


def eval_(
    queries: Annotated[
        Path | None,
        typer.Option("--queries", metavar="FILE", help="A query set of your own; by default the packaged one."),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure search over decisions in repositories made for it; yours is not touched."""
    # Imported here: the other commands of the group need neither the evaluation nor the model.
    from nm_lsp.engine.decisions.evaluation import Evaluation, evaluate
    from nm_lsp.engine.decisions.similar import ModelNearness
    from nm_lsp.engine.query_embedding import QueryEmbedder

    output = Output(as_json=as_json, verbose=verbose)
    with interruptible() as cancel:
        result: Evaluation = evaluate(ModelNearness(QueryEmbedder(enabled=True)), cancel, queries=queries)
    if as_json:
        output.document(asdict(result))
        return
    output.text(output.style("maintenance", "bold"))
    headings = ("mode", "stale influence", "recall@5", "precision", "tasks")
    rows = [
        (m.mode, f"{m.stale_influence_rate:.3f}", f"{m.recall_at_5:.3f}", f"{m.precision:.3f}", str(len(m.tasks)))
        for m in result.maintenance
    ]
    output.table(headings, rows, right=(1, 2, 3, 4))
    for score in result.maintenance:
        for task in score.tasks:
            for title in task.intruders:
                output.warn(f"{score.mode}, {task.name}: found “{title}”, which does not hold")
            for title in task.missed:
                output.detail(f"{score.mode}, {task.name}: missed “{title}”")
    output.text()
    output.text(output.style("queries", "bold"))
    ks = tuple(result.queries[0].recall)
    table = [
        (q.mode, *(f"{q.recall[k]:.3f}" for k in ks), f"{q.mrr:.3f}", str(q.n_questions), str(q.n_misfires))
        for q in result.queries
    ]
    output.table(
        ("mode", *(f"recall@{k}" for k in ks), "MRR", "questions", "misfires"),
        table,
        right=tuple(range(1, len(ks) + 4)),
    )
    output.note(GOAL)
    if result.model is None:
        output.note("by words alone: there are no weights for vector search (`nm-lsp model install`)")


def add_to(app: typer.Typer) -> None:
    app.command("eval")(eval_)
