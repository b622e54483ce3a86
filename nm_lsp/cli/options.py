"""Options that every command spells the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nm_lsp.cli.naming import Command

Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "-C",
        metavar="PATH",
        help="Workspace folder. By default the repository that contains the current folder, else the current folder.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, in the form the language server sends.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr what is done.")]
Question = Annotated[list[str], typer.Argument(metavar="QUESTION...", help="A question or words; quotes are optional.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many, at most.")]
Budget = Annotated[
    int | None, typer.Option("--budget", metavar="TOKENS", help="Tokens of the answer.", show_default="1100")
]


class _Commands(typer.Typer):
    def command(self, name: str | None = None, **settings: Any) -> Any:
        """As in the base class; errors of the command name its options."""
        return super().command(name, **{"cls": Command, **settings})


def command_app() -> typer.Typer:
    """An empty application with the settings that every command shares."""
    return _Commands(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
