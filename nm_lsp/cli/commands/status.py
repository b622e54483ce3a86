"""`nm-lsp status`: how far the index is, what was left out of it and why."""

from __future__ import annotations

from nm_lsp.base.wording import counted
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import Nothing, StatusResult

app = command_app()


@app.command()
def status(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Show how far the index is and what it left out."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output, quiet=True) as opened:
        result = opened.host.status(Nothing(), opened.cancel)
        if not opened.emit(result):
            _print(output, result)


def _print(output: Output, result: StatusResult) -> None:
    ready = output.style("ready", "green") if result.ready else output.style("not ready", "yellow")
    output.text(f"{output.style(result.folder, 'bold')}: {ready}, {result.phase.value}")
    output.text(
        f"index: revision {result.index_revision}, {counted(result.files, 'file')}, {counted(result.symbols, 'symbol')}"
    )
    output.text(f"vectors: {result.vectors.done:,} of {result.vectors.total:,}")
    if result.head:
        output.text(f"git: {result.branch or 'detached'} at {result.head[:12]}")
    if not result.is_index_writer:
        output.text("another process builds this index; this one follows it")
    for problem in result.problems:
        hint = f" {problem.hint}" if problem.hint else ""
        output.text(f"{output.style('problem', 'yellow')}: {problem.message}{hint}")
    if result.skipped:
        output.text()
        output.text(f"{counted(result.n_skipped, 'file')} left out:")
        output.table(("path", "reason"), [(row.path, row.reason) for row in result.skipped])
        if result.n_skipped > len(result.skipped):
            output.text(f"… and {result.n_skipped - len(result.skipped):,} more")
