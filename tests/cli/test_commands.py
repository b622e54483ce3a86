"""Each command against canned answers: what it asks, what it prints where, how it ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nm_lsp.base.errors import InternalError, StoreProblem
from nm_lsp.engine import requests as r

Run = Callable[..., Any]

ASKING = [
    ("search", "bread"),
    ("query", "bread"),
    ("wakeup",),
    ("explain", "bread"),
    ("relevance", "bread"),
    ("index",),
    ("status",),
    ("stats",),
    ("graph", "export"),
    ("graph", "validate"),
    ("benchmark",),
]


@pytest.mark.parametrize("arguments", ASKING)
def test_json_is_one_document_on_stdout_and_nothing_else(engine: Any, nm_lsp: Run, arguments: tuple[str, ...]) -> None:
    ended = nm_lsp(*arguments, "--json")
    assert ended.code == 0, ended.err
    assert isinstance(json.loads(ended.out), dict)
    assert ended.err == ""


@pytest.mark.parametrize("arguments", ASKING)
def test_text_for_a_pipe_has_no_escape_sequences(engine: Any, nm_lsp: Run, arguments: tuple[str, ...]) -> None:
    ended = nm_lsp(*arguments)
    assert ended.code == 0, ended.err
    assert ended.out
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize("arguments", [command for command in ASKING if command[0] != "status"])
def test_an_error_of_the_engine_is_a_message_and_a_code(engine: Any, nm_lsp: Run, arguments: tuple[str, ...]) -> None:
    engine.answers = {name: StoreProblem("The index is locked.", hint="Wait.") for name in engine.answers}
    ended = nm_lsp(*arguments)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == "error: The index is locked.\nhint: Wait.\n"


def test_search_prints_places_as_editors_read_them(engine: Any, nm_lsp: Run) -> None:
    ended = nm_lsp("search", "how", "is", "bread", "baked", "-n", "3", "--kind", "function", "--path", "src")
    assert ended.out.splitlines() == [
        "src/köln.py:3  function src/köln.py::bake  0.88",
        "    def bake(flour)",
        "        Turn flour �[31minto loaves.",
    ]
    assert engine.asked[-1] == (
        "search",
        r.SearchParams(query="how is bread baked", limit=3, kinds=("function",), path="src"),
    )
    assert "nm-lsp model install" in ended.err


def test_search_json_is_the_wire_form(engine: Any, nm_lsp: Run, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "köln.py").write_text("#\n#\nö😀ö bake\n")
    (hit,) = json.loads(nm_lsp("search", "bread", "--json").out)["hits"]
    assert hit["uri"] == f"{tmp_path.as_uri()}/src/k%C3%B6ln.py"
    # Six bytes are ö and 😀: three UTF-16 units.
    assert hit["range"]["start"] == {"line": 2, "character": 3}


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("search", "x"), ("search", r.SearchResult((), ()))),
        (("query", "x"), ("query", r.QueryResult("", 0, (), (), (), ()))),
        (("explain", "x"), ("explain", r.ExplainResult("x", "", (), (), (), ()))),
        (("relevance", "x"), ("relevance", r.RelevanceResult((), ()))),
        (("graph", "validate"), ("graph_validate", r.GraphValidateResult(False, ("no schema",), 0, 0))),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_nothing_found_is_a_code_of_its_own(
    engine: Any, nm_lsp: Run, arguments: tuple[str, ...], answer: tuple[str, object], form: tuple[str, ...]
) -> None:
    engine.answers[answer[0]] = answer[1]
    assert nm_lsp(*arguments, *form).code == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("search", "x", "-n", "0"), "--limit"),
        (("query", "x", "--budget", "5000"), "--budget"),
        (("search", "x" * 30_000), "QUESTION"),
    ],
)
def test_a_wrong_value_names_its_field_before_anything_is_opened(
    engine: Any, nm_lsp: Run, arguments: tuple[str, ...], field: str
) -> None:
    ended = nm_lsp(*arguments)
    assert ended.code == 2
    assert ended.err.startswith(f"error: {field}:")
    assert engine.opened == []


def test_query_prints_the_answer_alone_on_stdout(engine: Any, nm_lsp: Run) -> None:
    ended = nm_lsp("query", "bread")
    assert ended.out == "def bake(flour)\n"
    assert ended.err == "12 tokens, 1 hit\n"


def test_status_shows_what_is_left_out_and_what_helps(engine: Any, nm_lsp: Run) -> None:
    out = nm_lsp("status").out
    assert "big.js  minified" in out
    assert "There are no weights. Run `nm-lsp model install`." in out


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({}, "ready, idle"),
        ({"phase": r.Phase.VECTORS}, "ready, idle"),
        ({"phase": r.Phase.VECTORS, "vectors": r.Progress(1, 2)}, "ready, vectors"),
        ({"phase": r.Phase.KEYWORD, "ready": False}, "not ready, keyword"),
    ],
)
def test_status_says_at_once_what_is_going_on(engine: Any, nm_lsp: Run, change: dict[str, Any], shown: str) -> None:
    engine.answers["status"] = replace(engine.answers["status"], **change)
    ended = nm_lsp("status")
    assert ended.out.splitlines()[0] == f"/somewhere: {shown}"
    assert engine.host.waited_s == 2


def test_index_waits_for_vectors_unless_told_otherwise(engine: Any, nm_lsp: Run) -> None:
    nm_lsp("index")
    assert ("wait_ready", True) in engine.asked
    nm_lsp("index", "--no-vectors")
    assert ("wait_ready", True) not in engine.asked
    nm_lsp("index", "--rebuild")
    assert [name for name, _ in engine.asked] == ["rebuild", "wait_ready", "status"]


def test_a_graph_file_is_judged_without_an_index(engine: Any, nm_lsp: Run) -> None:
    nm_lsp("graph", "validate", "graph.json")
    assert [name for name, _ in engine.asked] == ["graph_validate"]


def test_the_default_folder_is_the_repository_around(
    engine: Any, nm_lsp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "repo" / "src")
    ended = nm_lsp("stats", "--verbose")
    assert engine.opened == [tmp_path / "repo"]
    assert f"folder: {tmp_path / 'repo'} (the repository around the current folder)" in ended.err


def test_a_named_folder_is_taken_as_it_is(engine: Any, nm_lsp: Run, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    nm_lsp("stats", "--folder", "pkg")
    assert engine.opened == [tmp_path / "pkg"]
    ended = nm_lsp("stats", "-C", "nowhere")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: --folder: nowhere is no folder.")


def test_ctrl_c_withdraws_the_request_and_closes_the_workspace(
    engine: Any, nm_lsp: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nm_lsp.cli.session as session_module

    monkeypatch.setattr(session_module.ProgressBar, "update", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    ended = nm_lsp("index")
    assert ended.code == 130
    assert ended.out == ""
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_is_no_failure_of_the_command(
    engine: Any, nm_lsp: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nm_lsp.cli.session as session_module

    def twice(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(session_module.ProgressBar, "update", twice)
    ended = nm_lsp("index")
    assert (ended.code, ended.out, ended.err) == (130, "", "error: the request was cancelled\n")


def test_a_bug_is_no_message_for_users(engine: Any, nm_lsp: Run) -> None:
    engine.answers["stats"] = InternalError("invariant broken")
    assert nm_lsp("stats").code == 70


def test_settings_are_markdown_or_a_schema(nm_lsp: Run) -> None:
    assert nm_lsp("settings").out.startswith("| setting | default | meaning |")
    assert json.loads(nm_lsp("settings", "--json").out)["title"] == "nm_lsp"


@pytest.mark.parametrize("command", ["savings", "benchmark"])
def test_a_saving_below_zero_is_explained(engine: Any, nm_lsp: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "köln.py").write_text("def bake(flour): ...\n")
    engine.answers["query"] = replace(engine.answers["query"], tokens=900)
    ended = nm_lsp(command)
    assert ended.code == 0
    assert "in a project this small an answer costs more than the files" in ended.err
