"""Errors name the options and arguments that a person types, not the fields of the protocol."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import pytest
import typer

from nm_lsp.base.errors import InvalidInput, NmError, Refused
from nm_lsp.cli.main import COMMANDS
from nm_lsp.cli.naming import translate
from nm_lsp.wire.commands import BY_NAME
from nm_lsp.wire.naming import wire_fields

Run = Callable[..., Any]

OTHER_NAMES = {"decisions.show": "decisions.get", "decisions.as-of": "decisions.asOf"}
ONLY_ON_THE_WIRE = {("decisions.restore", "expect"), ("decisions.acknowledge", "expect")}
"""Fields that no option stands for."""


def twins() -> dict[str, Any]:
    """The commands of the command line by the names they have on the wire."""
    found = {}
    for name in COMMANDS:
        command: Any = typer.main.get_command(importlib.import_module(f"nm_lsp.cli.commands.{name}").app)
        leaves = {f"{name}.{word}": leaf for word, leaf in getattr(command, "commands", {}).items()} or {name: command}
        for leaf_name, leaf in leaves.items():
            found[OTHER_NAMES.get(leaf_name, re.sub(r"^memory\.", "synapses.", leaf_name))] = leaf
    return {name: command for name, command in found.items() if name in BY_NAME}


TWINS = twins()


@pytest.mark.parametrize("name", TWINS)
def test_every_field_has_an_option_or_argument(name: str) -> None:
    typed = [re.escape(option) for parameter in TWINS[name].params for option in parameter.opts if "--" in option]
    for field in wire_fields(BY_NAME[name].params):
        if (name, field.wire_name) in ONLY_ON_THE_WIRE:
            continue
        error = InvalidInput(field.wire_name, "is wrong.")
        translate(error, name.rpartition(".")[2], TWINS[name].params)
        assert re.fullmatch(rf"({'|'.join(typed)}|[A-Z]+|amend): is wrong\.", error.message), error.message
        assert error.message != f"{field.wire_name}: is wrong."


@pytest.mark.parametrize(
    ("name", "error", "message", "hint"),
    [
        ("search", InvalidInput("kinds", "'x' is none"), "--kind: 'x' is none", None),
        ("search", InvalidInput("path", "is none"), "--path: is none", None),
        ("decisions.amend", InvalidInput("set", "changes nothing."), "amend: changes nothing.", None),
        ("decisions.amend", InvalidInput("set.tags[2]", "is empty."), "--tag: is empty.", None),
        ("decisions.record", InvalidInput("files[0]", "is none.", hint="Hm."), "FILE: is none.", "Hm."),
        ("synapses.reset", Refused("For good.", hint="Say `confirm: true`."), "For good.", "Say `--yes`."),
        ("synapses.import", InvalidInput("version", "'2' is not 1"), "version: '2' is not 1", None),
    ],
)
def test_messages_and_hints_are_translated(name: str, error: NmError, message: str, hint: str | None) -> None:
    translate(error, name.rpartition(".")[2], TWINS[name].params)
    assert (error.message, error.hint) == (message, hint)


def test_an_error_of_the_engine_names_the_option(engine: Any, nm_lsp: Run) -> None:
    engine.answers["search"] = InvalidInput("kinds", "'loaf' is no kind of symbol", hint="Known kinds: function.")
    ended = nm_lsp("search", "bread", "--kind", "loaf")
    assert ended.code == 2
    assert ended.err == "error: --kind: 'loaf' is no kind of symbol\nhint: Known kinds: function.\n"


@pytest.mark.parametrize("option", ["--tcp", "--ws"])
def test_an_address_that_is_refused_names_its_option(nm_lsp: Run, option: str) -> None:
    ended = nm_lsp(option, "0.0.0.0:0")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {option}: 0.0.0.0 can be reached")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give one of --useful and --useless"),
        (("--useful", "--useless"), "give one of --useful and --useless"),
        (("--useful",), "--useful needs --with NODE"),
    ],
)
def test_feedback_says_what_it_needs(nm_lsp: Run, options: tuple[str, ...], words: str) -> None:
    ended = nm_lsp("feedback", "a.py::f", *options)
    assert ended.code == 2
    assert words in ended.err
