"""The real program in processes of its own, over a small workspace with an index of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

BAKERY = '''
"""A bakery."""


def bake_bread(flour: int) -> int:
    """Turn flour into loaves, half a kilo each."""
    return flour // 500


class Oven:
    """Keeps its heat."""

    def heat(self, degrees: int) -> None:
        """Warm the oven up before anything is put in."""
        self.degrees = degrees
'''
PROGRAM = [sys.executable, "-P", "-m", "nm_lsp"]


class Shop:
    """A workspace and the environment its programs run in."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "bakery"
        self.workspace.mkdir()
        (self.workspace / "bakery.py").write_text(BAKERY)
        self.environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            # Words and the graph are enough here; the model has tests of its own.
            "NEURALMIND_ONNX_MODEL_DIR": str(folder / "no-model"),
            "PYTHONFAULTHANDLER": "1",
        }

    def kept(self) -> set[str]:
        """Folders with what is kept of workspaces: indexes, pages and backups."""
        roots = (Path(self.environment[f"XDG_{name}_HOME"]) for name in ("CACHE", "STATE"))
        return {str(path) for root in roots for path in root.glob("nm_lsp/*/**/") if "vectors" not in path.parts}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *arguments],
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Indexed once, by the first command of the module."""
    shop = Shop(tmp_path_factory.mktemp("shop"))
    indexed = shop.run("index")
    assert indexed.returncode == 0, indexed.stderr
    assert indexed.stdout.startswith("1 file, ")
    return shop


def test_a_question_is_answered_by_the_right_code(shop: Shop) -> None:
    ended = shop.run("search", "how", "is", "flour", "turned", "into", "loaves", "--json")
    assert ended.returncode == 0, ended.stderr
    first = json.loads(ended.stdout)["hits"][0]
    assert (first["name"], first["path"]) == ("bake_bread", "bakery.py")
    assert first["uri"] == (shop.workspace / "bakery.py").as_uri()


def test_the_same_question_through_a_server_gets_the_same_answer(shop: Shop) -> None:
    question = ("how", "is", "flour", "turned", "into", "loaves")
    asked, direct = (shop.run("query", *question, "--json", *more) for more in (("--through-server",), ()))
    assert (asked.returncode, direct.returncode) == (0, 0), asked.stderr + direct.stderr
    assert json.loads(asked.stdout) == json.loads(direct.stdout)


def test_a_question_about_something_else_finds_nothing(shop: Shop) -> None:
    ended = shop.run("query", "quarterly tax declaration of submarines")
    assert (ended.returncode, ended.stdout.strip()) == (1, "")


def test_doctor_finds_a_real_installation_healthy(shop: Shop) -> None:
    ended = shop.run("doctor")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "ended cleanly" in ended.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_reader_that_leaves_is_no_error(shop: Shop) -> None:
    # The read end is closed before the program writes.
    read_end, write_end = os.pipe()
    os.close(read_end)
    ended = subprocess.run(
        [*PROGRAM, "stats"], cwd=shop.workspace, env=shop.environment, stdin=subprocess.DEVNULL,
        stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
    )  # fmt: skip
    os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, "")


def session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_cleanly_and_leaves_no_child(shop: Shop, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    busy.mkdir()
    for number in range(2_000):
        (busy / f"m{number}.py").write_text(f"def f{number}():\n    return {number}\n" * 20)
    # A session of its own: what a terminal's Ctrl-C reaches is the whole foreground group.
    process = subprocess.Popen(
        [*PROGRAM, "index", "--verbose"], cwd=busy, env=shop.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline().startswith("folder: ")  # the command is under way
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert (out, "Traceback" in err) == ("", False)
    # Children got the signal at the same time; they may end a moment after their parent, but they end.
    left = [one for one in psutil.process_iter() if session_of(one.pid) == process.pid]
    assert psutil.wait_procs(left, timeout=10)[1] == []


def test_the_demo_takes_no_decision_along_and_leaves_nothing(shop: Shop) -> None:
    """In a folder without git, where everything below it is listed by a walk."""
    words = ("--title", "Half a kilo", "--rationale", "It fits the oven.")
    recorded = shop.run("decisions", "record", "bakery.py::bake_bread", *words)
    assert recorded.returncode == 0, recorded.stderr
    kept = shop.kept()
    done = shop.run("demo", "how is bread baked", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [scene["status"] for scene in json.loads(done.stdout)["scenes"]] == ["active", "active", "stale", "active"]
    assert shop.kept() == kept


@pytest.mark.parametrize("name", ["heat", "Oven.heat", "bakery.py::heat"])
def test_a_name_that_is_no_path_is_answered_by_the_id_that_was_meant(shop: Shop, name: str) -> None:
    ended = shop.run("decisions", "record", name, "--title", "T", "--rationale", "R")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (2, "hint: Did you mean bakery.py::Oven.heat?")


def test_what_search_prints_can_be_recorded(shop: Shop) -> None:
    found = shop.run("search", "heat oven", "-n", "1", "--kind", "method").stdout.split()
    assert found[2] == "bakery.py::Oven.heat"
    ended = shop.run("decisions", "record", found[2], "--title", "Warm first", "--rationale", "Bread sinks.")
    assert ended.returncode == 0, ended.stderr
