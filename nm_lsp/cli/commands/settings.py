"""`nm-lsp settings`: every setting with its default and meaning."""

from __future__ import annotations

from typing import Annotated

import typer

from nm_lsp.cli.options import command_app
from nm_lsp.cli.output import Output
from nm_lsp.engine.settings import settings_markdown, settings_schema

app = command_app()


@app.command()
def settings(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON schema instead of the Markdown table.")
    ] = False,
) -> None:
    """Print the settings with their defaults. They are read from `.neuralmind/lsp/config.toml` and from the editor."""
    output = Output(as_json=as_json)
    if as_json:
        output.document(settings_schema())
    else:
        output.text(settings_markdown().rstrip())
