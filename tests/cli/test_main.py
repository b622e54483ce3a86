"""The table of commands and the top level, without an engine."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import nm_lsp.cli.commands
from nm_lsp import __version__
from nm_lsp.cli import main
from nm_lsp.cli.exits import LEGEND, Exit

runner = CliRunner()


def test_every_module_is_a_command_and_every_command_a_module() -> None:
    files = Path(nm_lsp.cli.commands.__file__).parent.glob("*.py")
    applications = {path.stem for path in files if "\napp = " in path.read_text(encoding="utf-8")}
    assert applications == set(main.COMMANDS)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_documents_itself_its_options_and_its_exit_codes(name: str) -> None:
    module = importlib.import_module(f"nm_lsp.cli.commands.{name}")
    commands = [typer.main.get_command(module.app)]
    assert commands[0].help
    # A group has commands of its own.
    commands = list(getattr(commands[0], "commands", {}).values()) or commands
    for command in commands:
        assert command.help, command.name
        silent = [p.name for p in command.params if not getattr(p, "help", None) and p.name != "help"]
        assert not silent, f"{command.name}: no help for {silent}"
    shown = runner.invoke(main.app, [name, "--help"]).output
    assert LEGEND.splitlines()[1] in shown


def test_the_legend_names_every_exit_code() -> None:
    assert all(f" {code.value} " in f" {LEGEND}".replace("\n", " ") for code in Exit)


def test_help_lists_all_commands_without_importing_one() -> None:
    code = "import sys; from nm_lsp.cli.main import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    *text, modules = shown.splitlines()
    assert all(any(line.strip().startswith(name) for line in text) for name in main.COMMANDS)
    loaded = set(modules.split())
    assert not {name for name in loaded if name.startswith(("nm_lsp.cli.commands.", "nm_lsp.engine", "nm_lsp.server"))}
    assert not loaded & {"rich", "numpy", "pygls", "onnxruntime", "tree_sitter"}


def test_the_version() -> None:
    assert runner.invoke(main.app, ["--version"]).output == f"nm-lsp {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["--nonsense"], ["--tcp", "many"], ["--ws", "host:70000"], ["--stdio", "--tcp", "1"], ["search"]],
)
def test_a_wrong_command_line_is_usage(arguments: list[str]) -> None:
    result = runner.invoke(main.app, arguments)
    assert result.exit_code == Exit.USAGE
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("typed", "meant"), [(["qury", "x"], "query"), (["decision"], "decisions"), (["decisions", "shw"], "show")]
)
def test_a_misspelt_command_gets_the_one_that_was_meant(typed: list[str], meant: str) -> None:
    result = runner.invoke(main.app, typed)
    assert result.exit_code == Exit.USAGE
    assert f"Did you mean '{meant}'" in result.output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", ("127.0.0.1", 0)),
        (":8765", ("127.0.0.1", 8765)),
        ("localhost:8765", ("localhost", 8765)),
        ("[::1]:8765", ("::1", 8765)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert main.address(text, "--tcp") == expected


@pytest.mark.parametrize("arguments", [[], ["--stdio"], ["--stdio", "--clientProcessId=12"]])
def test_without_a_terminal_it_is_a_stdio_server(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    served: list[tuple[str, str]] = []
    monkeypatch.setattr(main, "_serve", lambda tcp, ws: served.append((tcp, ws)))
    assert runner.invoke(main.app, arguments).exit_code == Exit.OK
    assert served == [("", "")]


def test_on_a_terminal_it_shows_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "on_terminal", lambda: True)
    assert "search" in runner.invoke(main.app, []).output


@pytest.mark.parametrize("option", ["--tcp", "--ws"])
def test_an_address_is_passed_on(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    served: list[tuple[str, str]] = []
    monkeypatch.setattr(main, "_serve", lambda tcp, ws: served.append((tcp, ws)))
    runner.invoke(main.app, [option, "8765"])
    assert served == [("8765", "") if option == "--tcp" else ("", "8765")]
