"""What is printed: no escape sequence where none belongs, nothing from a repository that moves the cursor."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from nm_lsp.base.errors import (
    Cancelled,
    Conflict,
    GitUnavailable,
    InternalError,
    InvalidInput,
    ModelProblem,
    NmError,
    NotFound,
    Refused,
    StoreProblem,
)
from nm_lsp.cli.exits import Exit, exit_code
from nm_lsp.cli.output import Output, clean


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("limit", "too large"), 2),
        (NotFound("no such file"), 2),
        (Refused("not now"), 5),
        (Conflict("older revision"), 5),
        (GitUnavailable("no git"), 4),
        (StoreProblem("locked"), 4),
        (ModelProblem("no weights"), 4),
        (Cancelled("withdrawn"), 130),
        (InternalError("bug"), 70),
    ],
)
def test_exit_codes_scripts_may_rely_on(error: NmError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nline", "plain\ttext\nline"),
        ("\x1b[31mred\x1b[0m", "�[31mred�[0m"),
        ("bell\x07 c1\x9b2J", "bell� c1�2J"),
        ("re\u202everse\u2066", "re�verse�"),
        ("windows\r\nline", "windows\nline"),
        ("over\rwrite", "over�write"),
        ("naïve 😀", "naïve 😀"),
    ],
)
def test_control_characters_never_reach_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (io.StringIO, {}, False),
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"NO_COLOR": ""}, True),
        (Terminal, {"TERM": "dumb"}, False),
    ],
)
def test_colours_only_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], environment: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", out := stream())
    output = Output()
    output.text(output.style("word", "bold"))
    assert ("\x1b[" in out.getvalue()) is coloured


def test_a_table_is_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    Output().table(("n", "name"), [("1", "a"), ("1,000", long)], right=(0,))
    assert capsys.readouterr().out == f"    n  name\n    1  a\n1,000  {long}\n"


def test_errors_go_to_stderr_with_their_hint(capsys: pytest.CaptureFixture[str]) -> None:
    code = Output().failure(ModelProblem("There are no weights.", hint="Run `nm-lsp model install`."))
    captured = capsys.readouterr()
    assert (code, captured.out) == (Exit.ENVIRONMENT, "")
    assert captured.err == "error: There are no weights.\nhint: Run `nm-lsp model install`.\n"


def test_errors_are_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).failure(InvalidInput("limit", "0 is too small"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err) == {
        "error": {"code": "invalid-input", "message": "limit: 0 is too small", "hint": None}
    }


def test_an_old_encoding_gets_question_marks_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    Output().text("naïve")
    assert raw.getvalue() == b"na?ve\n"


def test_a_reader_that_went_away_ends_the_program_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as ended:
            Output().text("anything")
    assert ended.value.code == Exit.READER_GONE
