"""One command's session with the decisions of a folder: the table of commands, called as the server calls it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import typer

from nm_lsp import __version__
from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NotFound
from nm_lsp.cli.folders import workspace_folder
from nm_lsp.cli.interrupts import interruptible, prompting
from nm_lsp.cli.output import Output
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.decisions.alone import open_desk
from nm_lsp.engine.settings import resolve_settings
from nm_lsp.wire.commands import BY_NAME
from nm_lsp.wire.decode import decode
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces

_MAX_NAMED = 3

CALLER = Caller("cli", f"nm-lsp {__version__}")


class Decisions(Protocol):
    """What is needed of a desk beside its calls."""

    def repo_to_abs(self, repo_path: str) -> Path: ...

    def check_files(self, files: Sequence[str]) -> None: ...


class DeskSession:
    """An opened desk; in the table of commands it stands in for a host, of which only the decisions are asked."""

    def __init__(self, desk: Decisions, folder: Path, output: Output, cancel: Cancellation) -> None:
        self.decisions = desk
        self.folder = folder
        self.output = output
        self.cancel = cancel

    def ask(self, name: str, fields: Mapping[str, object]) -> Any:
        """The result of the command `name`. `fields` are named as on the wire; those that are None are left out.

        Raises `InvalidInput` with the field's name, and what the engine raises.
        """
        command = BY_NAME[name]
        params: object = decode(command.params, {name: value for name, value in fields.items() if value is not None})
        return command.call(self, params, self.cancel, CALLER)

    def check_files(self, files: Sequence[str]) -> None:
        """Raises what recording a decision for `files` would raise; a bare name of a symbol gets its id as a hint."""
        for text in files:
            try:
                self.decisions.check_files([text])
            except NotFound as error:
                # Imported here because only a hint needs the index.
                from nm_lsp.engine.symbol_names import kept_symbols_called

                named = kept_symbols_called(self.folder, text.rpartition("::")[2])
                if named:
                    error.hint = f"Did you mean {' or '.join(named[:_MAX_NAMED])}?"
                raise

    def emit(self, result: object) -> bool:
        """Print `result` in its wire form if `--json` asks for it; say whether that was done."""
        if self.output.as_json:
            places = FolderPlaces(self.folder, repository=self.decisions.repo_to_abs("."))
            self.output.document(encode(result, places))
        return self.output.as_json


@contextmanager
def desk_session(folder: Path | None, output: Output) -> Iterator[DeskSession]:
    """Open the decisions of `folder`. Raises what the engine raises."""
    root = workspace_folder(folder, output)
    settings, wrong = resolve_settings(None, root)
    for problem in wrong:
        output.warn(str(problem))
    with interruptible() as cancel, open_desk(root, settings) as desk:
        yield DeskSession(desk, root, output, cancel)


def may_prompt(output: Output) -> bool:
    """Whether a person sits in front of it who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not output.as_json


def prompt(question: str, **settings: Any) -> str:
    """What a person types; `settings` are typer's. Raises `Cancelled` for Ctrl-C and at the end of the input."""
    with prompting():
        return str(typer.prompt(question, err=True, **settings))


def reason_or_prompt(output: Output, reason: str | None, question: str) -> str:
    """`--reason`, or what a person answers on a terminal. Raises `typer.BadParameter` where nobody can be asked."""
    if reason is not None:
        return reason
    if not may_prompt(output):
        raise typer.BadParameter("--reason is needed: say why")
    return prompt(question)


def confirmed(output: Output, question: str, *, yes: bool) -> bool:
    """Whether to go on: `--yes`, or a person's answer. Raises `typer.BadParameter` where nobody can be asked."""
    if yes:
        return True
    if not may_prompt(output):
        raise typer.BadParameter("--yes is needed where nobody can be asked")
    with prompting():
        return bool(typer.confirm(question, err=True))
