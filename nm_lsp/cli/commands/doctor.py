"""`nm-lsp doctor`: is every part healthy, and what repairs the one that is not."""

from __future__ import annotations

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import workspace_folder
from nm_lsp.cli.interrupts import interruptible
from nm_lsp.cli.memory_output import CALLER
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.session import session
from nm_lsp.engine.doctor import checks, examined
from nm_lsp.engine.doctor_checks import Check, Health
from nm_lsp.engine.memory_requests import InspectParams
from nm_lsp.engine.requests import Nothing, StatusResult
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces

app = command_app()

COLOURS = {Health.OK: "green", Health.LIMITED: "yellow", Health.BROKEN: "red"}

INDEX_WITHIN_S = 30.0
"""How long an index that is being built is waited for before it is told as it stands."""
PART_WIDTH = len("workspace folder")


@app.command()
def doctor(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Check every part and name the command that repairs it. Exits with 1 if something is broken."""
    output = Output(as_json=as_json, verbose=verbose)
    root = workspace_folder(folder, output)

    def status() -> StatusResult:
        with session(root, output, ready=False, quiet=True) as opened:
            found = opened.status_within(INDEX_WITHIN_S)
            if found.ready:
                # Opens what was learned, so that the status tells what is wrong with it.
                opened.host.memory.inspect(InspectParams(), opened.cancel, CALLER)
                found = opened.host.status(Nothing(), opened.cancel)
            return found

    with interruptible() as cancel:
        found = []
        for check in checks(root, status, cancel):
            found.append(check)
            if not as_json:
                _print(output, check)
    result = examined(found)
    if as_json:
        output.document(encode(result, FolderPlaces(root)))
    if not result.healthy:
        raise typer.Exit(Exit.NOTHING)


def _print(output: Output, check: Check) -> None:
    health = output.style(check.health.value.ljust(7), COLOURS[check.health])
    output.text(f"{health}  {check.part.ljust(PART_WIDTH)}  {clean(check.detail)}")
    if check.repair:
        output.text(f"{' ' * 9}{' ' * PART_WIDTH}  → {clean(check.repair)}")
