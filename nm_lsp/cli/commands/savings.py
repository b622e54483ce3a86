"""`nm-lsp savings`: what answers cost beside reading the files behind them."""

from __future__ import annotations

from nm_lsp.base.wording import counted
from nm_lsp.cli.memory_output import CALLER, TOO_SMALL
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import Nothing

app = command_app()


@app.command()
def savings(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Show how many tokens answers have saved, with the formula."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output, ready=False) as opened:
        result = opened.host.memory.savings(Nothing(), opened.cancel, CALLER)
        if opened.emit(result):
            return
        output.text(f"{counted(result.queries, 'question')} answered with {result.tokens_given:,} tokens")
        output.text(
            f"{counted(result.tokens_of_files, 'token')} in the files behind the answers: {result.saved:,} saved"
        )
        if result.saved < 0:
            output.note(TOO_SMALL)
        output.text(result.formula)
