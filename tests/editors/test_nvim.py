"""A session in real Neovims with the real server; `nvim_session.lua` acts, the tests say what must be seen."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

PLUGIN = Path(__file__).parents[2] / "editors" / "nvim"
FAKE_SERVER = Path(__file__).with_name("fake_server.py")
SESSION = Path(__file__).with_name("nvim_session.lua")

GOV = """\"\"\"The rule of the house.\"\"\"

import os


def governed(value):
    # Values are doubled.
    return value * 2
"""

_SERVER = """#!/bin/sh
[ "$1" = --version ] || echo $$ >> '{pids}'
exec '{python}' -m nm_lsp "$@"
"""
_PYTHON = """#!/bin/sh
echo "/usr/bin/python3: No module named nm_lsp" >&2
exit 1
"""
_OLDER = """#!/bin/sh
exec '{python}' '{server}' 0.0.9 "$@"
"""
_BROKEN = """#!/bin/sh
if [ "$1" != --version ]; then echo start >> '{starts}'; fi
echo "ModuleNotFoundError: No module named 'nm_lsp'" >&2
exit 1
"""


def _repository(path: Path, files: dict[str, str], env: dict[str, str]) -> None:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(path), *command], check=True, env=env)


def _script(path: Path, text: str) -> list[str]:
    path.write_text(text)
    path.chmod(0o755)
    return [str(path), "--stdio"]


def _folders(base: Path, env: dict[str, str]) -> dict[str, Any]:
    """A repository with a package, another one, a folder without one, and a home folder that is one."""
    files = {
        "pkg/pyproject.toml": "",
        "pkg/gov.py": GOV,
        "pkg/other.py": "x = 1\n",
        "README.md": "#\n",
        "LICENSE": "MIT\n",
    }
    _repository(base / "project", files, env)
    _repository(base / "second", {"b.py": "def b():\n    return 1\n"}, env)
    (base / "home/.git").mkdir()
    (base / "loose").mkdir()
    (base / "plain/.neuralmind").mkdir(parents=True)
    (base / "plain/plain.py").write_text("p = 1\n")
    (base / "home/notes.py").write_text("z = 1\n")
    (base / "loose/loose.py").write_text("y = 1\n")
    shutil.copytree(PLUGIN, base / "plugin")
    return {name: str(base / name) for name in ("project", "second", "loose", "plain", "home")}


def _run_session(nvim: str, base: Path, env: dict[str, str]) -> str:
    """Run the session in `base`. Returns what it has seen, as JSON."""
    given = {
        **_folders(base, env), "out": str(base / "out.json"), "help": str(base / "plugin/doc"),
        "server": _script(base / "server", _SERVER.format(pids=base / "pids", python=sys.executable)),
        "broken": _script(base / "broken", _BROKEN.format(starts=base / "starts")),
        "python": _script(base / "python3.6", _PYTHON)[0],
        "older": _script(base / "older", _OLDER.format(python=sys.executable, server=FAKE_SERVER)),
        "pids": str(base / "pids"), "starts": str(base / "starts"),
    }  # fmt: skip
    env["NM_TEST"] = json.dumps(given)
    path = f"let &runtimepath = '{base / 'plugin'},' . &runtimepath"
    command = [nvim, "--headless", "--clean", "-u", "NONE", "--cmd", path]
    command += ["-c", f"luafile {base / 'plugin/plugin/nm_lsp.lua'}", "-c", f"luafile {SESSION}"]
    done = subprocess.run(command, env=env, cwd=base, capture_output=True, text=True, timeout=240, check=False)
    out = base / "out.json"
    seen = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"problem": "no output"}
    return json.dumps({**seen, "base": str(base), "errors": done.stderr})


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, neovim: str, user_env: Callable[[Path], dict[str, str]]) -> Any:
    """Everything that was seen, by step. Paths have a space and letters that are not ASCII.

    One session of each version for all workers of pytest-xdist.
    """
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    name = f"neovim-{zlib.crc32(neovim.encode()):08x}"
    kept = shared / f"{name}.json"
    with FileLock(shared / f"{name}.lock"):
        if not kept.exists():
            base = shared / f"Bücher und mehr {name}"
            kept.write_text(_run_session(neovim, base, user_env(base)), encoding="utf-8")
    seen = json.loads(kept.read_text(encoding="utf-8"))
    assert "problem" not in seen, f"{seen.get('step')}: {seen['problem']}\n{seen['errors']}"
    base = Path(seen["base"])
    return {**seen["steps"], "base": base, "messages": seen["messages"], "pids": base / "pids", "times": seen["errors"]}


def test_e01_a_missing_server_is_one_message_that_helps(session: Any) -> None:
    (note,) = session["missing"]["notes"]
    assert "`/nowhere/nm-lsp` was not found" in note
    assert "pipx install" in note
    assert "setup { cmd = " in note
    assert session["missing"]["clients"] == 0


def test_e01_a_server_that_ends_at_once_is_not_started_again(session: Any) -> None:
    (note,) = [note for note in session["broken"]["notes"] if note.startswith("nm_lsp: ")]
    assert "No module named 'nm_lsp'" in note
    assert ":NeuralMind restart" in note
    assert session["broken"]["starts"] == 1


def test_a_server_that_hangs_is_said_once(session: Any) -> None:
    (note,) = session["hanging"]["notes"]
    assert "has not started within 0.3 s" in note
    assert session["hanging"]["clients"] == 0


def test_a_python_without_the_package_is_named(session: Any) -> None:
    # Neovim itself says the exit code.
    (note,) = [note for note in session["python"]["notes"] if note.startswith("nm_lsp: ")]
    assert "No module named nm_lsp" in note
    assert "`pipx install .`" in note
    assert session["python"]["clients"] == 0


def test_an_older_server_is_said_once(session: Any) -> None:
    (note,) = [note for note in session["older"]["notes"] if "has version" in note]
    assert "has version 0.0.9, and this plugin needs 0.1.0 or later" in note


def test_a_question_without_an_answer_is_withdrawn(session: Any) -> None:
    (note,) = session["older"]["silent"]
    assert "no answer within 0.3 s" in note


def test_e01_restart_works_after_the_repair(session: Any) -> None:
    step = session["restarted"]
    assert (step["before"], step["name"]) == (0, "nm_lsp")
    assert step["notes"] == ["nm_lsp: setup has no option “unknown”; :help nm_lsp-options lists all."]


def test_e02_one_server_for_each_repository(session: Any) -> None:
    step, base = session["roots"], session["base"]
    assert session["restarted"]["root"] == str(base / "project")
    assert step["second"] == str(base / "second")
    assert (step["same"], step["without_filetype"], step["clients"]) == (True, True, 4)
    assert (base / "project/.neuralmind").is_dir()
    assert not (base / "project/pkg/.neuralmind").exists()


def test_e02_a_file_outside_any_repository_has_no_workspace(session: Any) -> None:
    step = session["roots"]
    assert (step["loose_root"], step["loose_folders"], step["in_loose"]) == ("", 0, ["loose.py"])


def test_a_folder_without_git_is_a_workspace_once_it_is_marked(session: Any) -> None:
    assert session["roots"]["plain"] == str(session["base"] / "plain")


def test_a_home_folder_is_no_workspace(session: Any) -> None:
    step = session["roots"]
    assert step["at_home"] is True
    assert ["home folder" in note for note in step["told_at_home"]] == [True]
    assert not (session["base"] / "home/.neuralmind").exists()
    assert "belong to no repository" in step["nowhere"][0]


def test_u01_u02_buffers_that_are_no_files_are_left_alone(session: Any) -> None:
    assert session["roots"]["strangers"] == 0
    (note,) = session["roots"]["unnamed_record"]
    assert "open the file first" in note


def test_a_decision_is_recorded_for_the_symbol_at_the_cursor(session: Any) -> None:
    step = session["record"]
    assert "Recorded “Doubling stays”" in step["notes"][0]
    assert [question["prompt"] for question in step["questions"]] == [
        "For what?", "What was decided? ", "Why? ", "What else was considered? (none: leave empty) "
    ]  # fmt: skip
    assert step["cancelled"] == ["nm_lsp: Nothing was changed."]
    assert "Doubling stays" in session["hover"]
    assert "Callers rely on it" in session["hover"]
    assert "ACTIVE" in session["hover"]


def test_a_commit_in_a_shell_shows_within_seconds(session: Any) -> None:
    step = session["commit"]
    (mark,) = step["marks"]
    assert (mark["code"], mark["source"], mark["severity"], mark["lnum"]) == ("decision-stale", "neuralmind", 2, 5)
    assert "Doubling stays" in mark["message"]
    # 3 s is the goal on a machine at rest; a busy one gets more.
    assert step["seconds"] < 15


def test_a_stale_decision_shows_in_statusline_list_and_hover(session: Any) -> None:
    step = session["stale"]
    assert step["statusline"] == "memory: 1 stale"
    (row,) = step["list"]
    assert row["path"].endswith("pkg/gov.py")
    assert row["type"] == "W"
    assert "STALE  Doubling stays" in row["text"]
    assert step["title"] == "Decisions"
    assert "STALE" in step["hover"]


def test_d03_after_a_crash_the_marks_are_there_once(session: Any) -> None:
    step = session["crash"]
    assert [mark["code"] for mark in step["marks"]] == ["decision-stale"]
    assert [note for note in step["notes"] if note.startswith("nm_lsp: ")] == [
        "nm_lsp: the language server has crashed and is started again."
    ]


def test_lenses_count_decisions_and_lead_to_them(session: Any) -> None:
    step = session["lens"]
    assert set(step["titles"]) == {"1 decision · 1 stale"}
    assert step["page"].endswith(".md")
    assert "Doubling stays" in step["text"]


def test_what_changed_since_is_a_comparison(session: Any) -> None:
    seen, now = session["diff"]
    assert ("value * 2" in seen["text"], "value * 3" in now["text"]) == (True, True)
    assert (seen["diff"], now["diff"]) == (True, True)


def test_restoring_by_code_action_clears_the_mark(session: Any) -> None:
    step = session["restore"]
    assert "Restored “Doubling stays”" in step["notes"][0]
    for verb in ("Show what changed since", "Restore (it still holds)", "Hide until the next change", "Invalidate"):
        assert any(title.startswith(verb) for title in step["offered"]), step["offered"]


def test_an_answer_opens_in_a_window_and_leads_to_its_places(session: Any) -> None:
    step = session["ask"]
    assert "- pkg/gov.py:6 function governed" in step["text"]
    assert "> There is no model" in step["text"]
    assert (step["filetype"], step["closed"]) == ("markdown", True)
    assert step["at"] == [str(session["base"] / "project/pkg/gov.py"), 6]
    assert (step["list"][0]["line"], step["list"][0]["text"]) == (6, "function governed  def governed(value)")


def test_search_fills_the_quickfix_list_or_with_a_bang_the_location_list(session: Any) -> None:
    step = session["search"]
    assert step["list"][0]["path"].endswith("pkg/gov.py")
    assert step["title"] == step["nearby"] == "Search: governed"
    assert step["none"][-1] == "nm_lsp: Nothing here matches “zzyzx”."


def test_status_history_and_what_is_wrong_are_said(session: Any) -> None:
    step = session["pages"]
    assert "- decisions: 1 active" in step["status"]
    assert all(word in step["history"] for word in ("# Doubling stays", "recorded by", "restored by")), step["history"]
    assert "older than this plugin" in step["older"]
    assert "There is: ask, " in step["wrong"][0]
    assert "no decision of this workspace is named nm-zzzzzzzz" in step["nowhere"][-1]


def test_words_statuses_and_ids_are_completed(session: Any) -> None:
    step = session["completion"]
    required = {"ask", "search", "record", "decisions", "restore", "invalidate", "history", "next", "status"}
    assert required <= set(step["words"])
    assert (step["statuses"], step["stale"], len(step["active"])) == (["stale"], [], 1)


def test_a_decision_is_invalidated_with_a_reason(session: Any) -> None:
    step = session["invalidate"]
    assert "Invalidated “Doubling stays”" in step["notes"][0]
    assert "INVALIDATED  Doubling stays" in step["list"][0]["text"]


def test_the_health_check_names_servers_and_what_is_missing(session: Any) -> None:
    text = session["health"]
    assert re.search(r"Neovim 0\.1[12]\.", text)
    assert f"{session['base'] / 'server'}, nm-lsp 0." in text
    assert f"{session['base'] / 'project'}: ready" in text
    assert "embedding model is not installed" in text


def test_help_describes_every_word_and_option(session: Any) -> None:
    text = session["help"]["text"]
    for word in session["help"]["words"]:
        assert f"*:NeuralMind-{word}*" in text
    options = (PLUGIN / "lua/nm_lsp/config.lua").read_text().partition("local types = {")[2].partition("}\n")[0]
    for name in [line.split("=")[0].strip() for line in options.strip().splitlines() if "=" in line]:
        assert f"*nm_lsp-option-{name}*" in text


def test_nothing_is_left_and_nothing_went_wrong(session: Any) -> None:
    parts = session["messages"].split("Error in command line:\n")
    # A fault of Neovim's own in the snapshot of 0.12: its bookkeeping knows no buffer of a server that never started.
    messages = "".join(part for part in parts if "_changetracking.lua" not in part)
    assert len(parts) <= 2
    assert "Error" not in messages
    assert "stack traceback" not in messages
    assert "lua/nm_lsp/" not in session["messages"]
    pids = [int(line) for line in session["pids"].read_text().splitlines()]
    assert len(pids) >= 4
    deadline = time.monotonic() + 10
    while any(psutil.pid_exists(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.1)
