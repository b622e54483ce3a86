"""`nm-lsp guard`: do the decisions that govern these files still hold? For hooks of agents, for CI, for people."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.guarding import guard_command
from nm_lsp.cli.options import Json, command_app

app = command_app()


@app.command()
def guard(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Files, also ones that do not exist yet; PATH::SYMBOL asks for its whole file."
        ),
    ] = None,
    hook: Annotated[
        bool,
        typer.Option(
            "--hook",
            help="Read a PreToolUse call of a coding agent from stdin and answer in its protocol; exits with 0.",
        ),
    ] = False,
    ask_person: Annotated[
        bool, typer.Option("--ask", help="With --hook: let a person decide where a decision does not hold.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")] = False,
    as_json: Json = False,
) -> None:
    """Print the decisions that govern files, with status and reasons. Exits with 3 if one is stale, or invalidated
    without another in its place; with 4 if nobody knows."""
    if not paths and not hook:
        raise typer.BadParameter("name at least one path")
    raise typer.Exit(guard_command(paths or [], as_json=as_json, quiet=quiet, hook=hook, ask_person=ask_person))
