"""A real Kakoune with the snippet, seen through its JSON interface; of kakoune-lsp there is only its option."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from decision_session import Repo

SNIPPET = Path(__file__).parents[2] / "editors" / "kakoune" / "nm-lsp.kak"
# What kakoune-lsp has declared by the time it announces the configuration of a file type.
KAKOUNE_LSP = """
declare-option str lsp_servers
set-option global lsp_servers %{
    [ruff]
    command = "ruff"
}
"""

Run = Callable[..., list[Any]]


@pytest.fixture
def env(
    tmp_path: Path,
    user_env: Callable[[Path], dict[str, str]],
    server_on_path: Callable[[Path, dict[str, str]], dict[str, str]],
) -> dict[str, str]:
    return server_on_path(tmp_path, user_env(tmp_path))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "Bücher und mehr")


@pytest.fixture
def kak(repo: Repo) -> Run:
    """Runs commands on `gov.py`; what the interface was told to show."""
    found = shutil.which("kak")
    if found is None or sys.platform == "win32":
        pytest.skip("no Kakoune on PATH (Debian: kakoune)")

    def run(env: dict[str, str], *commands: str) -> list[Any]:
        script = "\n".join((KAKOUNE_LSP, f"source '{SNIPPET}'", *commands))
        # The keys are read once the commands are done.
        leave = json.dumps({"jsonrpc": "2.0", "method": "keys", "params": [":quit!<ret>"]})
        command = [found, "-n", "-ui", "json", "-e", script, "gov.py"]
        done = subprocess.run(command, cwd=repo.path, env=env, input=leave, capture_output=True, text=True, timeout=60)
        # An interface that hangs up ends Kakoune with a status of its own.
        assert done.stderr == ""
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def info(shown: list[Any]) -> str:
    """The text of the box that was shown last."""
    boxes = [message["params"][1] for message in shown if message["method"] == "info_show"]
    return "\n".join("".join(atom["contents"] for atom in line) for line in boxes[-1])


def test_the_server_is_added_to_those_of_kakoune_lsp(kak: Run, env: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "servers.toml"
    kak(env, "trigger-user-hook LSPDefaultConfig=python", f"echo -to-file '{out}' %opt{{lsp_servers}}")
    servers = tomllib.loads(out.read_text())
    assert servers["ruff"] == {"command": "ruff"}
    assert servers["nm-lsp"] == {"command": "nm-lsp", "args": ["--stdio"], "root_globs": [".git", ".neuralmind"]}


def test_decisions_and_answers_are_shown(kak: Run, env: dict[str, str], repo: Repo, tmp_path: Path) -> None:
    record = [
        "nm-lsp",
        "decisions",
        "record",
        "gov.py",
        "--title",
        "Values are doubled",
        "--rationale",
        "Half was little.",
    ]
    subprocess.run(record, cwd=repo.path, env=env, check=True, capture_output=True, timeout=60)
    out = tmp_path / "answer.md"
    shown = kak(env, "nm-lsp-guard")
    assert "ACTIVE" in info(shown)
    assert "Values are doubled" in info(shown)
    kak(env, f"nm-lsp-ask how is the governed 'value' doubled; write '{out}'")
    assert "gov.py" in out.read_text(encoding="utf-8")


def test_a_missing_server_is_said_in_a_sentence(kak: Run, env: dict[str, str]) -> None:
    here = {**env, "PATH": "/usr/bin:/bin"}
    if shutil.which("nm-lsp", path=here["PATH"]):
        pytest.skip("nm-lsp is installed for the whole machine")
    assert info(kak(here, "nm-lsp-guard")).startswith("nm-lsp was not found. Install it with")
