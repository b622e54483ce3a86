"""`nm-lsp wakeup`: what to know about a workspace before the first question."""

from __future__ import annotations

from nm_lsp.base.wording import counted
from nm_lsp.cli.options import Budget, Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import WakeupParams
from nm_lsp.wire.decode import decode

app = command_app()


@app.command()
def wakeup(budget: Budget = None, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Print what to know about this code before the first question (layers L0 and L1)."""
    output = Output(as_json=as_json, verbose=verbose)
    params = decode(WakeupParams, {"budget": budget})
    with session(folder, output) as opened:
        result = opened.host.wakeup(params, opened.cancel)
        if not opened.emit(result):
            output.text(clean(result.text))
            output.note(counted(result.tokens, "token"))
