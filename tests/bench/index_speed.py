"""How long a workspace takes, through the real server over a pipe: opened cold, reopened, edited, asked, hovered over.

    python tests/bench/index_speed.py FOLDER [--vectors] [--edit PATH.py] [--json]

The folder is copied first and the caches are fresh, so nothing of an earlier run helps and nothing of yours is touched.
Reports; asserts nothing. Memory is PSS of the server and its children (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

from lsp_harness import ProcessClient

PROGRAM = str(Path(sys.executable).with_name("nm-lsp"))
PATIENCE_S = 120.0
QUESTIONS = (
    "how is a password hashed",
    "where are migrations applied",
    "render a template to a string",
    "check the csrf token",
    "send an email message",
    "parse a date from a string",
    "resolve a url to a view",
    "cache a page",
    "translate a message",
    "upload a file",
)


class Session:
    """A server on one folder, its answers and its memory."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.client = ProcessClient([PROGRAM, "--stdio"], env=env)
        self.folder = folder
        self.started = time.perf_counter()
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder.as_uri(),
                "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
                "capabilities": {},
            },
        )
        self.initialized_s = time.perf_counter() - self.started
        self.client.notify("initialized", {})

    def request(self, method: str, params: Any) -> Any:
        return self.client.request(method, params, PATIENCE_S)

    def status(self) -> Any:
        return self.request("neuralmind/status", {})

    def wait(self, done: Callable[[Any], bool], pause_s: float = 0.1) -> float:
        """Seconds since the start until the status says so."""
        while not done(self.status()):
            time.sleep(pause_s)
        return time.perf_counter() - self.started

    def ask(self, query: str) -> float:
        """Milliseconds of one `query`."""
        begun = time.perf_counter()
        self.request("neuralmind/query", {"query": query})
        return (time.perf_counter() - begun) * 1_000

    def search(self, query: str) -> Any:
        return self.request("neuralmind/search", {"query": query, "limit": 1})

    def family(self) -> list[psutil.Process]:
        server = psutil.Process(self.client.process.pid)
        return [server, *server.children(recursive=True)]

    def memory_mb(self) -> float:
        total = 0
        for process in self.family():
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
        return total / 1e6

    def cpu_s(self) -> float:
        total = 0.0
        for process in self.family():
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def close(self) -> None:
        self.request("shutdown", None)
        self.client.notify("exit", None)
        self.client.process.wait(10)
        self.client.kill()


@contextmanager
def watched_memory(session: Session) -> Iterator[list[float]]:
    """The samples of the family's memory while the block runs, one a second."""
    samples: list[float] = []
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(1.0):
            samples.append(session.memory_mb())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    yield samples
    ended.set()
    thread.join()


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(folder: Path, env: dict[str, str], *, vectors: bool, edited: str | None) -> dict[str, object]:
    found: dict[str, object] = {}
    session = Session(folder, env)
    with watched_memory(session) as samples:
        found["initialize answered, s"] = session.initialized_s
        found["symbols and keyword search ready, s"] = session.wait(lambda status: status["ready"])
        found["the same, CPU s"] = session.cpu_s()
        status = session.status()
        found["files"], found["symbols"] = status["files"], status["symbols"]
        if vectors:
            before = session.cpu_s()
            session.wait(lambda status: status["phase"] == "idle", 0.5)
            found["vectors"] = session.status()["vectors"]["total"]
            found["all vectors, CPU s"] = session.cpu_s() - before
            found["all vectors, s"] = time.perf_counter() - session.started
    found["memory while building, MB"] = max(samples, default=0.0)
    for question in QUESTIONS:
        session.ask(question)
    waits = [session.ask(f"{question} {turn}") for turn in range(5) for question in QUESTIONS]
    found["query p50, ms"], found["query p95, ms"] = statistics.median(waits), quantile(waits, 0.95)
    if edited:
        found["edited file searchable, ms"] = edit(session, folder / edited)
    time.sleep(2)
    found["memory idle, MB"] = session.memory_mb()
    session.close()
    again = Session(folder, env)
    found["reopened unchanged, ready, s"] = again.wait(lambda status: status["ready"])
    again.close()
    command = [PROGRAM, "query", "--folder", str(folder), QUESTIONS[0]]
    runs = []
    for _ in range(5):
        begun = time.perf_counter()
        subprocess.run(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True)
        runs.append(time.perf_counter() - begun)
    found["query in a new process, s"] = statistics.median(runs)
    return found


def edit(session: Session, file: Path) -> float:
    """The median of ten saves: milliseconds from the save until the new name is found."""
    waits = []
    for turn in range(10):
        name = f"freshly_added_{turn}_{'abcdefghij'[turn]}"
        file.write_text(file.read_text() + f"\n\ndef {name}():\n    return {turn}\n")
        begun = time.perf_counter()
        uri = file.as_uri()
        session.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
        while True:
            answer = session.search(name)
            if answer["hits"] and answer["hits"][0]["name"] == name:
                break
            time.sleep(0.005)
        waits.append((time.perf_counter() - begun) * 1_000)
    return statistics.median(waits)


def hover_while_indexing(folder: Path, env: dict[str, str]) -> dict[str, object]:
    """A hover every 20 ms from the first moment until the index is ready."""
    session = Session(folder, env)
    file = next(path for path in sorted(folder.rglob("*.py")) if path.stat().st_size > 500)
    position = {"textDocument": {"uri": file.as_uri()}, "position": {"line": 0, "character": 0}}
    opened = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": file.read_text()}
    session.client.notify("textDocument/didOpen", {"textDocument": opened})
    waits: list[float] = []
    while len(waits) < 50 or not session.status()["ready"]:
        for _ in range(20):
            begun = time.perf_counter()
            session.request("textDocument/hover", position)
            waits.append((time.perf_counter() - begun) * 1_000)
            time.sleep(max(0.0, 0.02 - (time.perf_counter() - begun)))
    session.close()
    return {
        "hovers while indexing": len(waits),
        "hover p95, ms": quantile(waits, 0.95),
        "hover longest, ms": max(waits),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vectors", action="store_true", help="also wait for every vector")
    parser.add_argument("--edit", metavar="PATH.py", help="a file of the folder to edit ten times")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch).resolve() / options.folder.name
        shutil.copytree(options.folder, copy, symlinks=True)
        fresh = {"XDG_CACHE_HOME": f"{scratch}/cache", "XDG_STATE_HOME": f"{scratch}/state"}
        found = measure(copy, fresh, vectors=options.vectors, edited=options.edit)
        found |= hover_while_indexing(copy, {**fresh, "XDG_CACHE_HOME": f"{scratch}/other"})
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:40} {value:.3f}" if isinstance(value, float) else f"{name:40} {value}")


if __name__ == "__main__":
    main()
