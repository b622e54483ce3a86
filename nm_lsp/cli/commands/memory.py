"""`nm-lsp memory`: inspect, reset, export, import and settle what use has taught."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.memory_output import CALLER
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.session import session
from nm_lsp.engine.memory_requests import (
    DecayResult,
    InspectParams,
    MemoryExportParams,
    MemoryImportParams,
    MemoryImportResult,
    ResetParams,
)
from nm_lsp.engine.requests import Nothing

app = command_app()


@app.callback()
def memory() -> None:
    """Inspect, reset, export, import or settle what use has taught."""


@app.command()
def inspect(
    namespace: Annotated[str | None, typer.Option("--namespace", help="Only pairs of this namespace.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="At most so many pairs.")] = 20,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show namespaces, the strongest pairs, and whether learning works."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        params = InspectParams(namespace=namespace, limit=limit)
        result = opened.host.memory.inspect(params, opened.cancel, CALLER)
        if opened.emit(result):
            return
        output.table(
            ("namespace", "pairs", "lasting", "transitions", "factor"),
            [(r.name, str(r.edges), str(r.lasting), str(r.transitions), f"{r.factor:.1f}") for r in result.namespaces],
            right=(1, 2, 3, 4),
        )
        output.text()
        output.table(
            ("weight", "times", "namespace", "symbol", "goes with"),
            [
                (f"{r.weight:.2f}", str(r.count), r.namespace + (" ★" if r.lasting else ""), r.a, r.b)
                for r in result.pairs
            ],
            right=(0, 1),
        )
        output.note(f"learned now: {result.active}; {counted(result.bytes, 'byte')}")
        output.detail(", ".join(f"{row.name} {row.count:,}" for row in result.counters))
        if result.problem is not None:
            output.warn(result.problem)


@app.command()
def reset(
    namespace: Annotated[str, typer.Argument(help="A namespace (`personal`, `branch:<name>`, …) or `all`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Forget for good; without it nothing is forgotten.")] = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Forget everything in one namespace, or in all, for good."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output, ready=False) as opened:
        params = ResetParams(namespace=namespace, confirm=yes)
        result = opened.host.memory.reset(params, opened.cancel, CALLER)
        if not opened.emit(result):
            output.text(f"{counted(result.edges, 'pair')} forgotten in {', '.join(result.namespaces)}")


@app.command()
def export(
    to: Annotated[
        str | None, typer.Option("--to", help="A file inside the folder; standard output without it.")
    ] = None,
    form: Annotated[str, typer.Option("--form", help="`json` (a bundle) or `markdown` (the readable page).")] = "json",
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Export everything that was learned."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output, ready=False) as opened:
        params = MemoryExportParams(to=to, form=form)
        result = opened.host.memory.export(params, opened.cancel, CALLER)
        if opened.emit(result):
            return
        if result.text is not None:
            output.text(clean(result.text.rstrip("\n")))
        else:
            output.note(f"{counted(result.edges, 'pair')} written to {result.path}")


@app.command("import")
def import_(
    source: Annotated[str, typer.Argument(help="A bundle that `memory export` wrote.")],
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Take in what others learned; it counts half of what is learned here."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        result = opened.host.memory.import_(MemoryImportParams(source=source), opened.cancel, CALLER)
        if opened.emit(result):
            return
        output.text(f"{_learned(result)} taken in")
        if result.unchanged:
            output.note(f"{counted(result.unchanged, 'pair')} already there, at least as strong")
        if result.unknown:
            output.warn(f"{counted(result.unknown, 'row')} left out: symbols or files that are not here")


@app.command()
def decay(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Delete what has decayed away and what belongs to symbols that are no more."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        result = opened.host.memory.decay(Nothing(), opened.cancel, CALLER)
        if not opened.emit(result):
            output.text(f"{_learned(result)} forgotten")


def _learned(result: MemoryImportResult | DecayResult) -> str:
    return f"{counted(result.edges, 'pair')} and {counted(result.transitions, 'transition')}"
