"""Each check finds what it is for, names a repair, and stops no other."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nm_lsp.engine.doctor as doctor
from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, EnvironmentProblem, StoreProblem
from nm_lsp.engine.doctor_checks import Check, Health
from nm_lsp.engine.requests import Problem, Progress, StatusResult
from nm_lsp.git.process import quoted


@pytest.fixture(autouse=True)
def handshake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server process and no cache of the user's here; both are tested where they live."""
    monkeypatch.setattr(doctor, "check_server", lambda _folder, _cancel: 0.4)
    monkeypatch.setattr(doctor, "index_folder", lambda _folder: tmp_path / "cache" / "index")
    monkeypatch.setattr(doctor, "vector_cache_file", lambda: tmp_path / "cache" / "vectors" / "vectors.db")
    monkeypatch.setenv("NEURALMIND_ONNX_MODEL_DIR", str(tmp_path / "no-model"))


def test_every_part_has_a_check_and_every_fault_a_repair(tmp_path: Path, status: StatusResult) -> None:
    result = doctor.examined(doctor.checks(tmp_path, lambda: status, Cancellation()))
    parts = [check.part for check in result.checks]
    assert parts[:7] == ["python", "git", "model", "annoy", "cache", "workspace folder", "decisions"]
    assert parts[-1] == "server"
    assert result.healthy
    assert all(check.repair for check in result.checks if check.health is not Health.OK)
    assert list(tmp_path.iterdir()) == [], "doctor leaves nothing behind"


def test_missing_weights_limit_and_wrong_ones_break(tmp_path: Path) -> None:
    assert doctor.check_model().health is Health.LIMITED
    folder = tmp_path / "no-model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"wrong")
    (folder / "tokenizer.json").write_bytes(b"{}")
    assert doctor.check_model().health is Health.BROKEN


def test_without_annoy_search_is_said_to_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    check = doctor.check_annoy()
    assert check.health is Health.LIMITED
    assert "exact" in check.detail
    assert str(check.repair).startswith(f"{quoted(Path(sys.executable))} -m pip install 'annoy>=")


def test_git_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor.check_git(tmp_path)
    assert check.health is Health.LIMITED
    assert "git" in str(check.repair)


def test_a_cache_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    check = doctor.check_cache(tmp_path)
    assert check.health is Health.BROKEN
    assert "not a folder" in check.detail


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_workspace_limits(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert doctor.check_store_folder(tmp_path).health is Health.LIMITED
    tmp_path.chmod(0o700)


def test_problems_of_the_index_are_checks(status: StatusResult) -> None:
    found = replace(status, problems=(Problem("settings", "Setting x was not used.", "Correct it."),))
    checks = doctor.check_index(lambda: found)
    assert [(check.part, check.health) for check in checks] == [("index", Health.OK), ("settings", Health.LIMITED)]
    unready = replace(status, ready=False, vectors=Progress(0, 0), problems=())
    assert [check.health for check in doctor.check_index(lambda: unready)] == [Health.LIMITED]


def test_the_command_prints_each_check_as_it_is_done(
    monkeypatch: pytest.MonkeyPatch, engine: Any, nm_lsp: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def slow(_status: object) -> list[Check]:
        seen.append(capsys.readouterr().out)
        return []

    monkeypatch.setattr(doctor, "check_index", slow)
    assert nm_lsp("doctor").code == 0
    parts = [line[9:].split("  ")[0] for line in seen[0].splitlines() if line[:2] == "ok" or line[:7] == "limited"]
    assert {"python", "git", "model", "cache", "workspace folder", "decisions"} <= {part.strip() for part in parts}


def test_an_index_that_takes_long_is_told_as_it_stands(engine: Any, nm_lsp: Callable[..., Any]) -> None:
    engine.answers["status"] = replace(engine.answers["status"], ready=False)
    ended = nm_lsp("doctor")
    assert ended.code == 0
    assert "still being built: 3 files, 9 symbols" in ended.out
    assert engine.host.waited_s == 30


def test_a_check_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken() -> StatusResult:
        raise StoreProblem("The index is locked.")

    def silent(_folder: Path, _cancel: Cancellation) -> float:
        raise EnvironmentProblem("The server did not answer.")

    monkeypatch.setattr(doctor, "check_server", silent)
    result = doctor.examined(doctor.checks(tmp_path, broken, Cancellation()))
    assert not result.healthy
    assert [check.part for check in result.checks if check.health is Health.BROKEN] == ["index", "server"]


def test_cancelling_is_no_finding(tmp_path: Path) -> None:
    def cancelled() -> StatusResult:
        raise Cancelled("withdrawn")

    with pytest.raises(Cancelled):
        doctor.examined(doctor.checks(tmp_path, cancelled, Cancellation()))


def test_the_command_prints_repairs_and_ends_with_1_if_something_is_broken(
    monkeypatch: pytest.MonkeyPatch, engine: Any, nm_lsp: Callable[..., Any]
) -> None:
    healthy = nm_lsp("doctor")
    assert healthy.code == 0
    assert "  → " in healthy.out

    def silent(_folder: Path, _cancel: Cancellation) -> float:
        raise EnvironmentProblem("The server did not answer.")

    monkeypatch.setattr(doctor, "check_server", silent)
    ended = nm_lsp("doctor", "--json")
    assert ended.code == 1
    answer = json.loads(ended.out)
    assert not answer["healthy"]
    assert answer["checks"][-1]["health"] == "broken"
