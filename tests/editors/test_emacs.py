"""A session in a real Emacs with Eglot; `emacs_session.el` acts, the tests say what must be seen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from decision_session import Repo

FOLDER = Path(__file__).parents[2] / "editors" / "emacs"
OPENING = "Opening hours\n=============\n\nFrom nine to six.\n"
RULES = "Rules\n=====\n\nQuiet hours begin at ten.\n"


@pytest.fixture(scope="session")
def emacs() -> str:
    found = shutil.which("emacs")
    if found is None or sys.platform == "win32":
        pytest.skip("no Emacs on PATH (Debian: emacs-nox and elpa-eglot)")
    has_eglot = [found, "--batch", "--eval", "(kill-emacs (if (require 'eglot nil t) 0 1))"]
    if subprocess.run(has_eglot, capture_output=True, timeout=60, check=False).returncode != 0:
        pytest.skip("this Emacs has no Eglot (Debian: elpa-eglot)")
    return found


@pytest.fixture(scope="module")
def session(
    emacs: str,
    tmp_path_factory: pytest.TempPathFactory,
    user_env: Callable[[Path], dict[str, str]],
    server_on_path: Callable[[Path, dict[str, str]], dict[str, str]],
) -> dict[str, Any]:
    """Everything that was seen. The path has a space and a letter that is not ASCII."""
    base = tmp_path_factory.mktemp("emacs")
    env = server_on_path(base, user_env(base))
    repo = Repo(base / "Bücher und mehr", {"rules.rst": RULES, "opening.rst": OPENING})
    record = [
        "nm-lsp",
        "decisions",
        "record",
        "rules.rst",
        "--title",
        "Quiet from ten",
        "--rationale",
        "The neighbours.",
    ]
    subprocess.run(record, cwd=repo.path, env=env, check=True, capture_output=True, timeout=60)
    repo.write({"rules.rst": RULES.replace("ten", "eleven")})
    given = {**env, "NM_PROJECT": str(repo.path), "NM_OUT": str(base / "out.json"), "LC_ALL": "C.UTF-8"}
    command = [emacs, "--batch", "-L", str(FOLDER), "-l", str(Path(__file__).with_name("emacs_session.el"))]
    done = subprocess.run(command, env=given, cwd=base, capture_output=True, text=True, timeout=240, check=False)
    out = base / "out.json"
    assert out.exists(), done.stderr
    seen: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert "problem" not in seen, (seen, done.stderr)
    return {**seen, "repo": repo, "errors": done.stderr}


def test_eglot_starts_the_server_for_a_mode_without_another(session: dict[str, Any]) -> None:
    assert (session["mode"], session["server"]) == ("rst-mode", "nm_lsp")
    assert Path(session["root"]) == session["repo"].path
    assert session["first"] == []


def test_a_commit_shows_as_a_diagnostic(session: dict[str, Any]) -> None:
    (mark,) = session["marks"]
    assert "The decision “Quiet from ten” may no longer hold: rules.rst was changed by" in mark
    # 3 s is the goal on a machine at rest; a busy one gets more.
    assert session["seconds"] < 15
    assert "STALE" in session["hover"]
    assert "The neighbours." in session["hover"]


def test_the_commands_work_by_the_command_line(session: dict[str, Any]) -> None:
    for page in ("guard", "stale"):
        assert "Quiet from ten" in session[page]
        assert "\x1b" not in session[page]
    assert "rules.rst" in session["answer"]


def test_code_actions_restore_and_invalidate(session: dict[str, Any]) -> None:
    ((_, *offered),) = session["restore"]
    for verb in ("Show what changed since", "Restore (it still holds)", "Hide until the next change", "Invalidate"):
        assert any(title.startswith(verb) for title in offered), offered
    _, (question, *reasons) = session["invalidate"]
    assert "Quiet from ten" in question
    assert "The reason no longer applies" in reasons
    assert "INVALIDATED" in session["after"]


def test_what_cannot_be_done_is_said_in_a_sentence(session: dict[str, Any]) -> None:
    assert session["missing"].startswith("/nowhere/nm-lsp was not found; install it (")
    assert session["no-file"] == "This buffer has no file"
    assert "Debugger entered" not in session["errors"]
