"""`nm-lsp audit`: is the record of all changes whole."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.desk import desk_session
from nm_lsp.cli.exits import Exit
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.engine.decision_requests import AuditAnchorResult, AuditExportResult, AuditRotateResult, VerifyResult

app = command_app()


@app.callback()
def audit() -> None:
    """Check, anchor, export or rotate the audit chain: who changed what, when, before and after."""


@app.command()
def verify(
    head: Annotated[
        str | None, typer.Option("--head", metavar="HASH", help="What `audit anchor` printed, or its hash alone.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Check the chain and its text copy. Exits with 1 if a record was altered, cut or is missing."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: VerifyResult = opened.ask("audit.verify", {"head": head})
        if not opened.emit(result):
            for problem in result.problems:
                output.text(clean(problem))
            verdict = output.style("valid", "green") if result.valid else output.style("not valid", "red")
            output.text(f"{verdict}: {counted(result.records, 'record')}, head {clean(result.head)}")
            for n, words in (
                (result.dropped, "could not be written when they were made"),
                (result.waiting, "not in the text copy yet"),
                (result.redacted, "with redacted texts"),
            ):
                if n:
                    output.note(f"{counted(n, 'record')} {words}")
    if not result.valid:
        raise typer.Exit(Exit.NOTHING)


@app.command()
def anchor(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Print the head of the chain, to be kept elsewhere: a later `verify --head` then sees any cut."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: AuditAnchorResult = opened.ask("audit.anchor", {})
        if not opened.emit(result):
            output.text(clean(result.text))


@app.command()
def export(
    rewrite: Annotated[
        bool,
        typer.Option("--rewrite", help="Write audit.jsonl anew from the table and set the old copy aside."),
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Print the chain as text, one record a line."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: AuditExportResult = opened.ask("audit.export", {"rewrite": rewrite})
        if opened.emit(result):
            return
        if result.text is not None:
            output.text((clean(result.text) if output.on_terminal else result.text).rstrip("\n"))
        aside = f"; the old copy is kept as {result.set_aside}" if result.set_aside else ""
        output.note(f"{counted(result.records, 'record')}{aside}")


@app.command()
def rotate(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Close audit.jsonl under an archive's name and go on in a new file; `audit verify` reads both."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: AuditRotateResult = opened.ask("audit.rotate", {})
        if not opened.emit(result):
            output.text(clean(result.archive))
            output.note(f"it ends with record {result.sequence}, hash {clean(result.head)}")
