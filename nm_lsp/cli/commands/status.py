"""`nm-lsp status`: how far the index is, what was left out of it and why."""

from __future__ import annotations

from nm_lsp.base.wording import counted
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import Phase, StatusResult

app = command_app()

READY_WITHIN_S = 2.0
"""How long an index that is nearly there is waited for; what takes longer is told as it stands."""


@app.command()
def status(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Show how far the index is and what it left out. Does not wait for an index that is being built."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output, ready=False, quiet=True) as opened:
        result = opened.status_within(READY_WITHIN_S)
        if not opened.emit(result):
            _print(output, result)


def _print(output: Output, result: StatusResult) -> None:
    ready = output.style("ready", "green") if result.ready else output.style("not ready", "yellow")
    # The last step of making vectors joins those that are there: for who asks, it is done.
    is_complete = result.phase is Phase.VECTORS and result.vectors.done == result.vectors.total
    phase = Phase.IDLE if is_complete else result.phase
    output.text(f"{output.style(result.folder, 'bold')}: {ready}, {phase.value}")
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
