"""`nm-lsp demo`: a decision recorded, doubted and restored on a copy of this folder, through the language server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from nm_lsp.cli.folders import workspace_folder
from nm_lsp.cli.interrupts import interruptible
from nm_lsp.cli.options import Folder, Json, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.progress import ProgressBar
from nm_lsp.engine.demo import play

app = command_app()

COLOURS = {"active": "green", "stale": "yellow"}


@app.command()
def demo(
    question: Annotated[list[str], typer.Argument(help="What to decide about; the first function it finds is taken.")],
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Record a decision about real code, commit a comment and a change, and restore it. Works on a copy."""
    output = Output(as_json=as_json)
    root = workspace_folder(folder, output)
    scenes = []
    bar = ProgressBar(shown=False if as_json else None)
    bar.open()
    with interruptible() as cancel:
        for scene in play(root, " ".join(question), cancel, bar.update):
            bar.close()
            scenes.append(asdict(scene))
            if not as_json:
                state = output.style(scene.status.upper().ljust(7), COLOURS[scene.status])
                output.text(f"{state} {clean(scene.done)}")
                if scene.reason:
                    output.text(f"        {clean(scene.reason)}")
    if as_json:
        output.document({"scenes": scenes})
