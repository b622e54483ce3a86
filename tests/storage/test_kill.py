"""Writers killed at any moment lose nothing that they were told was kept.

Each round starts writers in processes of their own; a writer prints the id of an event after `append` has returned, and
is killed with SIGKILL at a random moment or at a failpoint, half of which lie inside an open transaction. Afterwards
every printed event must be there, with its audit record, in table and text.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nm_lsp.storage.decisions import DecisionStore

FAILPOINTS = [
    "begun",
    "event-written",
    "before-commit",
    "committed",
    "text-half-written",
    "text-written",
    "archived",
    "migrated",
]

WRITER = """
import os, signal, sys, time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage.decisions import DecisionStore

conftest, folder, state, name, step, visits = sys.argv[1:]
spec = spec_from_file_location("storage_conftest", conftest)
events = module_from_spec(spec)
spec.loader.exec_module(events)
left = int(visits)

def failpoint(reached):
    global left
    if reached == step:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

store = DecisionStore.open(Path(folder), Path(state), events.NOW, failpoint=failpoint)
print("open", flush=True)
base = int(name) * 1000
for n in range(base, base + 500):
    pair = [events.make_event("recorded", n, n), events.make_event("amended", n, n + 1, title="Again")]
    store.append(pair, now=events.NOW)
    print(f"e-{n}-{n}\\ne-{n}-{n + 1}", flush=True)
    if n % 7 == 0:
        store.audit.rotate("Ada", "cli", events.NOW + n)
    if n % 5 == 0:
        store.back_up(events.NOW + n, "day")
"""


def run_round(n: int, rng: random.Random, folder: Path, state: Path) -> set[str]:
    """Two writers at once, both killed; the ids of the events they were told are kept."""
    writers: list[subprocess.Popen[str]] = []
    conftest = Path(__file__).with_name("conftest.py")
    for writer in range(2):
        # Every other writer stops itself at a failpoint, the rest are killed from outside.
        step = rng.choice(FAILPOINTS) if (n + writer) % 2 else "none"
        visits = 1 if step in {"archived", "migrated"} else rng.randint(1, 6)
        arguments = [str(conftest), str(folder), str(state), str(n * 2 + writer), step, str(visits)]
        writers.append(
            subprocess.Popen(
                [sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    if rng.random() < 0.8:
        for process in writers:
            assert process.stdout is not None
            process.stdout.readline()
    # The one wait in this file: the random moment is the point.
    time.sleep(rng.uniform(0.0, 0.3))
    kept: set[str] = set()
    for process in writers:
        process.kill()
        out, err = process.communicate(timeout=30)
        assert process.returncode == -signal.SIGKILL, err
        whole = out.rpartition("\n")[0].split("\n")
        kept.update(line for line in whole if line.startswith("e-"))
    return kept


def check(folder: Path, state: Path, kept: set[str], now: float) -> int:
    with closing(DecisionStore.open(folder, state, now)) as store:
        events = store.changes(0).events
        found = {event.id for event in events}
        assert kept <= found
        # An append is whole or absent.
        assert len(events) == len(found)
        assert len(events) == 2 * len(store.records())
        report = store.audit.verify()
        assert report.sound, report
        assert report.verdict.n_records >= len(events)
        assert not list(folder.glob("*.corrupt-*"))
        newest = store.backups.all()[:1]
        assert all(store.backups.fault(backup.path) is None for backup in newest)
        return len(events)


def kill_rounds(n_rounds: int, seed: int, tmp_path: Path, now: float) -> None:
    folder, state = tmp_path / "repository" / ".neuralmind" / "lsp", tmp_path / "state"
    (tmp_path / "repository").mkdir()
    rng = random.Random(seed)
    kept: set[str] = set()
    n_events = 0
    for n in range(n_rounds):
        kept |= run_round(n, rng, folder, state)
        n_events = check(folder, state, kept, now)
    assert kept, "no writer got as far as one event"
    assert n_events >= len(kept)


def test_killed_writers_lose_nothing(tmp_path: Path, now: float) -> None:
    kill_rounds(3, 1, tmp_path, now)


@pytest.mark.slow
def test_two_hundred_rounds_of_killed_writers_lose_nothing(tmp_path: Path, now: float) -> None:
    kill_rounds(200, 2, tmp_path, now)


@pytest.mark.parametrize("step", FAILPOINTS)
def test_killed_at(step: str, tmp_path: Path, now: float) -> None:
    folder, state = tmp_path / "repository" / ".neuralmind" / "lsp", tmp_path / "state"
    (tmp_path / "repository").mkdir()
    conftest = Path(__file__).with_name("conftest.py")
    visits = "1" if step in {"archived", "migrated"} else "4"
    run = subprocess.run(
        [sys.executable, "-c", WRITER, str(conftest), str(folder), str(state), "0", step, visits],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    kept = {line for line in run.stdout.split("\n") if line.startswith("e-")}
    assert check(folder, state, kept, now) - len(kept) in {0, 2}


def test_two_processes_write_at_once(tmp_path: Path, now: float, event: Callable[..., object]) -> None:
    folder, state = tmp_path / "repository" / ".neuralmind" / "lsp", tmp_path / "state"
    (tmp_path / "repository").mkdir()
    # Each rotates after every record, so that rotations meet.
    program = WRITER.replace("base + 500", "base + 25").replace("if n % 7 == 0:", "if True:")
    conftest = Path(__file__).with_name("conftest.py")
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(conftest), str(folder), str(state), str(n), "none", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    errors = [run.communicate(timeout=120)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], errors
    assert check(folder, state, set(), now) == 3 * 25 * 2
