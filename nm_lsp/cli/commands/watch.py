"""`nm-lsp watch`: learn from edits of programs that speak no LSP, until Ctrl-C."""

from __future__ import annotations

import time

from nm_lsp.base.wording import counted
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session

app = command_app()

LOOK_S = 0.2


@app.command()
def watch(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Watch the folder and learn what is edited together, for editors and agents that speak no LSP."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        ended = opened.host.watch_files()
        if opened.output.as_json:
            stop = opened.host.memory.subscribe(
                lambda event: output.document({"id": event.id, "kind": event.kind, "data": event.data})
            )
        else:
            stop = opened.host.memory.subscribe(lambda event: output.text(f"{event.kind}: {_short(event.data)}"))
        output.note(f"learning from changes in {opened.folder}; Ctrl-C ends it")
        try:
            while not opened.cancel.cancelled:
                time.sleep(LOOK_S)
        finally:
            stop()
            ended()


def _short(data: dict[str, object]) -> str:
    files, pairs = data.get("files"), data.get("pairs")
    if isinstance(files, list):
        return ", ".join(str(file) for file in files)
    return counted(len(pairs), "pair") if isinstance(pairs, list) else ""
