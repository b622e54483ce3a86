"""The real server for minutes on end, with an edit a second: does it grow, does it leave anything behind, does it rest?

    python tests/bench/soak.py FOLDER [--minutes 10] [--warm-up 1] [--idle 60] [--no-model] [--json]

The folder is copied into a repository first and the caches are fresh. Every second a document is changed and saved, now
and then hovered over, asked about, committed, renamed or closed. One sample a second: resident memory, open handles and
processes of the server and its children; drift compares the means of the first and last fifth of the samples after the
warm-up. Then nothing is done for `--idle` seconds, and the CPU time of that is taken. Reports; asserts nothing. Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
sys.path.insert(0, str(Path(__file__).parent))

from index_speed import QUESTIONS, Session

N_OPEN = 20
COMMIT_S, QUERY_S, HOVER_S, RECORD_S, CLOSE_S = 20, 3, 1, 45, 7
MEMORY, PRIVATE, HANDLES, PROCESSES, THREADS = "memory, MB", "its own memory, MB", "handles", "processes", "threads"


class Editor:
    """A person who edits the same twenty files for hours."""

    def __init__(self, session: Session, folder: Path, rng: random.Random) -> None:
        self._session, self._folder, self._rng = session, folder, rng
        sizes = ((path.stat().st_size, path) for path in sorted(folder.rglob("*.py")))
        self._files = [path for size, path in sizes if 1_000 < size < 40_000][:N_OPEN]
        self._texts = {path: path.read_text("utf-8") for path in self._files}
        self._versions = dict.fromkeys(self._files, 1)
        self._n_edits = 0
        for path in self._files:
            self._open(path)

    def _open(self, path: Path) -> None:
        item = {"uri": path.as_uri(), "languageId": "python", "version": self._versions[path]}
        self._session.client.notify("textDocument/didOpen", {"textDocument": {**item, "text": self._texts[path]}})

    def second(self, number: int) -> None:
        """What happens in one second."""
        path = self._rng.choice(self._files)
        self._edit(path)
        if number % HOVER_S == 0:
            where = {"line": self._rng.randrange(40), "character": 4}
            self._session.request("textDocument/hover", {"textDocument": {"uri": path.as_uri()}, "position": where})
        if number % QUERY_S == 0:
            self._session.ask(f"{self._rng.choice(QUESTIONS)} {number}")
        if number % CLOSE_S == 0:
            self._session.client.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
            self._open(path)
        if number % COMMIT_S == 0:
            git(self._folder, "commit", "-qam", f"edit {number}")
        if number % RECORD_S == 0:
            name = path.relative_to(self._folder).as_posix()
            fields = {"title": f"Rule {number}", "rationale": "Measured.", "files": [name]}
            self._session.request("neuralmind/decisions.record", fields)

    def _edit(self, path: Path) -> None:
        """A line is replaced, so that neither files nor the index grow by themselves."""
        self._n_edits += 1
        lines = self._texts[path].splitlines(keepends=True)
        mark = f"    value_{self._n_edits} = {self._n_edits}  # soak\n"
        marked = next((row for row, line in enumerate(lines) if line.endswith("# soak\n")), None)
        if marked is None:
            lines += ["\n", "\n", "def soaked():\n", mark]
        else:
            lines[marked] = mark
        self._texts[path] = text = "".join(lines)
        self._versions[path] += 1
        uri = {"uri": path.as_uri()}
        document = {**uri, "version": self._versions[path]}
        self._session.client.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )
        path.write_text(text, "utf-8")
        self._session.client.notify("textDocument/didSave", {"textDocument": uri})


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def sample(session: Session) -> dict[str, float]:
    """One look at the whole family."""
    found = dict.fromkeys((MEMORY, PRIVATE, HANDLES, PROCESSES, THREADS), 0.0)
    server, *others = session.family()
    for process in (server, *others):
        try:
            memory = process.memory_full_info()
            handles, threads, command = process.num_fds(), process.num_threads(), process.cmdline()
        except psutil.Error:
            continue
        # git lives for milliseconds, and before that as a copy of its parent; whether one stays is seen from the number
        # of processes at the end.
        if process is not server and "nm_lsp.worker" not in command:
            continue
        found[MEMORY] += memory.rss / 1e6
        found[PRIVATE] += memory.uss / 1e6
        found[HANDLES] += handles
        found[PROCESSES] += 1
        found[THREADS] += threads
    return found


def every_second(seconds: float, do: Callable[[int], None]) -> None:
    begun = time.monotonic()
    for number in range(1, int(seconds) + 1):
        do(number)
        time.sleep(max(0.0, begun + number - time.monotonic()))


def drift(values: list[float]) -> float:
    """Percent from the mean of the first fifth to that of the last."""
    share = max(1, len(values) // 5)
    first, last = statistics.fmean(values[:share]), statistics.fmean(values[-share:])
    return (last - first) / first * 100 if first else 0.0


def soak(folder: Path, env: dict[str, str], minutes: float, warm_up: float, idle_s: float) -> dict[str, Any]:
    session = Session(folder, env)
    session.wait(lambda status: status["phase"] == "idle", 0.5)
    editor = Editor(session, folder, random.Random(7))
    samples: list[dict[str, float]] = []
    begun = time.monotonic()

    def one(number: int) -> None:
        editor.second(number)
        if time.monotonic() - begun >= warm_up * 60:
            samples.append(sample(session))

    every_second((minutes + warm_up) * 60, one)
    # What the last edits have set off is no rest.
    time.sleep(10)
    before = session.cpu_s()
    time.sleep(idle_s)
    idle = (session.cpu_s() - before) / idle_s * 100
    left = [process.name() for process in session.family()]
    unframed = session.client.unframed
    session.close()
    return {
        "rows": {
            name: {
                "first": values[0], "last": values[-1], "peak": max(values), "drift, %": drift(values),
            }
            for name in samples[0]
            for values in [[each[name] for each in samples]]
        },
        "idle CPU, %": idle,
        "processes when idle": len(left),
        "stray bytes on standard output": len(unframed),
        "seconds": len(samples),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=1.0, help="minutes before the first sample")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds of rest that are measured")
    parser.add_argument("--no-model", action="store_true", help="without vectors")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch).resolve() / options.folder.name
        shutil.copytree(options.folder, copy, symlinks=True)
        git(copy, "init", "-q")
        git(copy, "add", "-A")
        git(copy, "commit", "-qm", "first")
        env = {
            "XDG_CACHE_HOME": f"{scratch}/cache",
            "XDG_STATE_HOME": f"{scratch}/state",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        if options.no_model:
            env["NEURALMIND_ONNX_MODEL_DIR"] = f"{scratch}/none"
        found = soak(copy, env, options.minutes, options.warm_up, options.idle)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'':24}{'first':>10}{'last':>10}{'peak':>10}{'drift, %':>10}")
    for name, row in found.pop("rows").items():
        print(f"{name:24}" + "".join(f"{value:10.1f}" for value in row.values()))
    for name, value in found.items():
        print(f"{name:34}{value:10.2f}" if isinstance(value, float) else f"{name:34}{value:10}")


if __name__ == "__main__":
    main()
