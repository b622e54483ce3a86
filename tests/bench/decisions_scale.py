"""Decisions at scale: 10,000 on 5,000 files, beside the goals. Run it on a quiet machine:

    python tests/bench/decisions_scale.py [--decisions 10000] [--files 5000] [--profile record|start|look|marks|search]

Builds a repository and its store in a temporary folder, or keeps them in `--keep FOLDER` for the next run.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.decision_requests import Caller, DecisionSearchParams, RecordParams
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.similar import ModelNearness, Nearness
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.query_embedding import QueryEmbedder

CALLER = Caller("cli", "bench")
WORDS = ["cache", "session", "token", "retry", "queue", "price", "order", "index", "worker", "lock", "page", "limit"]


def source(number: int, version: int) -> str:
    """A module of ten functions; the version changes the first one, or only a comment where it is odd."""
    body = version // 2
    remark = f"    # revision {version}\n" if version % 2 else ""
    functions = [f"def f{at}(x):\n    y = x + {at}\n    return y * {number}\n" for at in range(1, 10)]
    return f"import os\n\n\ndef f0(x):\n{remark}    return x + {body}\n\n\n" + "\n\n".join(functions)


def path_of(number: int) -> str:
    return f"src/p{number % 50:02}/m{number:05}.py"


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.versions: dict[int, int] = {}
        self.clock = 1_767_225_600

    def git(self, *arguments: str, data: bytes | None = None) -> str:
        return (
            subprocess.run(["git", *arguments], cwd=self.root, input=data, check=True, capture_output=True)
            .stdout.decode()
            .strip()
        )

    def create(self, n_files: int) -> None:
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Bench")
        self.git("config", "user.email", "bench@example.org")
        self.commit([list(range(n_files))])

    def commit(self, groups: list[list[int]], step: int = 2) -> None:
        """One commit a group, in which each file's version grows by `step` (1: a comment comes or goes)."""
        parts = []
        has_head = subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], cwd=self.root, capture_output=True)
        first = has_head.returncode != 0
        for group in groups:
            self.clock += 60
            parts.append(f"commit refs/heads/main\ncommitter B <b@example.org> {self.clock} +0000\ndata 1\nc\n")
            if not first:
                parts.append("from refs/heads/main^0\n" if len(parts) == 1 else "")
            first = False
            for number in group:
                version = self.versions[number] = self.versions.get(number, -step) + step
                text = source(number, version)
                parts.append(f"M 100644 inline {path_of(number)}\ndata {len(text.encode())}\n{text}\n")
        self.git("fast-import", "--quiet", data="".join(parts).encode())
        self.git("reset", "-q", "--hard")


def new_desk(root: Path, state: Path, nearness: Nearness) -> tuple[Desk, Repositories]:
    repositories = Repositories(state=state)
    tree = WorkTree(root, repositories, git="git", revival=False, clock=time.monotonic)
    desk = Desk(root, tree, screen=lambda _: None, spans=lambda _p, _s: None, nearness=nearness, on_change=lambda: None)
    return desk, repositories


def decision(number: int, n_files: int, rng: random.Random) -> RecordParams:
    path = path_of(number % n_files)
    files = [f"{path}::f{number % 10}" if number % 2 else path]
    if number % 500 == 0:
        files = [f"src/p{number % 50:02}/"]
    words = rng.choices(WORDS, k=30)
    return RecordParams(
        title=f"Decision {number}: {words[0]} {words[1]}", rationale=" ".join(words) + ".", files=tuple(files)
    )


def fill(repository: Repository, state: Path, n_decisions: int, n_files: int) -> None:
    """The bulk goes in by a text import of events that a few real recordings are the pattern of: recording one by one
    would take a quarter of an hour."""
    from nm_lsp.decisions.model import Confirmation, SeenFile, Sighting, new_id, pack_text, parse_anchor

    desk, repositories = new_desk(repository.root, state, ModelNearness(QueryEmbedder(enabled=False)))
    rng = random.Random(1)
    sample = desk.record(decision(0, n_files, rng), Cancellation(), CALLER).decision
    commit = sample.row.recorded_commit
    ancestors = desk.tree.keeper.held().memory.records[sample.row.id].confirmations[0].ancestors  # type: ignore[index]
    blobs = desk.tree.git.files(commit)  # type: ignore[union-attr, arg-type]
    folders: dict[str, list[str]] = {}
    for path in blobs:
        folders.setdefault(path.rsplit("/", 1)[0] + "/", []).append(path)
    scene = desk._scene(CALLER)
    look = desk.poll()
    from nm_lsp.decisions.events import EventKind

    events = []
    for number in range(1, n_decisions):
        params = decision(number, n_files, rng)
        anchor = parse_anchor(params.files[0])
        paths = folders[anchor.path] if anchor.path.endswith("/") else [anchor.path]
        rows = tuple(SeenFile(path, blobs[path], blobs[path]) for path in paths)
        text = None
        if anchor.symbol is not None:
            whole = (repository.root / anchor.path).read_bytes()
            at = whole.index(f"def {anchor.symbol}(".encode())
            end = whole.find(b"\n\n\n", at)
            text = pack_text(whole[at : end if end > 0 else len(whole)].rstrip() + b"\n")
        confirmation = Confirmation(commit, (Sighting(anchor, rows, text),), ancestors)
        after: dict[str, Any] = {
            "title": params.title,
            "rationale": params.rationale,
            "anchors": [anchor.to_plain()],
            "confirmation": confirmation.to_plain(),
        }
        identity = new_id(number.to_bytes(5, "big"))
        events.append(scene.event(look, EventKind.RECORDED, identity, after=after))
    started = time.perf_counter()
    desk.tree.keeper.append(lambda _: events)
    print(f"filled the store with {len(events):,} events in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    desk.tree.close()
    repositories.close()


class Report:
    def __init__(self, profile: str | None) -> None:
        self.rows: list[tuple[str, float, float | None, str]] = []
        self._profile = profile

    @contextmanager
    def measured(self, name: str, what: str, goal: str) -> Iterator[None]:
        profiler = cProfile.Profile() if self._profile == name else None
        started, cpu = time.perf_counter(), cpu_s()
        if profiler is not None:
            profiler.enable()
        yield
        if profiler is not None:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(40)
        self.rows.append((what, (time.perf_counter() - started) * 1000, (cpu_s() - cpu) * 1000, goal))

    def add(self, what: str, value_ms: float, goal: str) -> None:
        self.rows.append((what, value_ms, None, goal))

    def print(self) -> None:
        width = max(len(row[0]) for row in self.rows)
        print(f"{'what':<{width}}  {'wall':>12}  {'CPU, git too':>12}  goal")
        for what, wall, cpu, goal in self.rows:
            print(f"{what:<{width}}  {wall:>9,.1f} ms  {'' if cpu is None else f'{cpu:,.1f} ms':>12}  {goal}".rstrip())
        print(f"memory at the end: {memory_mb():,.0f} MB, at most {peak_mb():,.0f} MB; load {os.getloadavg()[0]:.1f}")


def cpu_s() -> float:
    """Of this process and the children that ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def memory_mb() -> float:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def measure(repository: Repository, state: Path, options: argparse.Namespace) -> Report:
    report = Report(options.profile)
    rng = random.Random(2)
    n_files, cancel = options.files, Cancellation()
    repository.commit([[rng.randrange(n_files) for _ in range(3)] for _ in range(500)], step=2)
    desk, repositories = new_desk(repository.root, state, ModelNearness(QueryEmbedder(enabled=options.model)))
    with report.measured("start", "start, 500 new commits: look", "≤ 2,000 ms"):
        desk.poll()
    with report.measured("marks0", "start: all marks", ""):
        desk.marks()
    report.add("look, nothing changed (mean of 100)", statistics.mean(timed(desk.poll) for _ in range(100)), "")

    repository.commit([rng.sample(range(n_files), 100)], step=2)
    with report.measured("look", "commit of 100 files: STALE from ids", "≤ 150 ms"):
        look = desk.poll(sure=True)
    with report.measured("marks", "its marks (classify and texts of symbols)", "≤ 500 ms beyond the look"):
        desk.marks()
    repository.commit([rng.sample(range(n_files), 100)], step=1)
    with report.measured("look2", "commit of 100 comments: STALE from ids", "≤ 150 ms"):
        look = desk.poll(sure=True)
    with report.measured("classify", "class “comments or layout only”", "≤ 2,000 ms"):
        desk.tree.classified(look)
    with report.measured("marks2", "marks after it", "≤ 500 ms"):
        desk.marks()

    paths = [path_of(rng.randrange(n_files)) for _ in range(1000)]
    desk.governing(paths[0])
    report.add("hover: governing, p95", sorted(timed(lambda p=p: desk.governing(p)) for p in paths)[949], "≤ 10 ms")

    times = []
    for number in range(20):
        params = decision(options.decisions + number, n_files, rng)
        if number == 10:
            with report.measured("record", "record (one, profiled if asked)", ""):
                desk.record(params, cancel, CALLER)
        else:
            times.append(timed(lambda p=params: desk.record(p, cancel, CALLER)))
    report.add("record, median of 19", statistics.median(times), "≤ 50 ms")
    report.add("record, slowest", max(times), "≤ 50 ms")

    for mode in ("keyword", "hybrid") if options.model else ("keyword",):
        asked = [DecisionSearchParams(query=" ".join(rng.sample(WORDS, 3)), mode=mode) for _ in range(20)]
        desk.search(asked[0], cancel, CALLER)
        with report.measured("search", f"search, {mode} (20 of them)", ""):
            took = [timed(lambda a=a: desk.search(a, cancel, CALLER)) for a in asked]
        report.add(f"search, {mode}, median", statistics.median(took), "")
    with report.measured("risks", "at risk, everything uncommitted (none)", ""):
        desk.risks(None, cancel)
    desk.tree.close()
    repositories.close()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--keep", type=Path, default=None, help="Keep the prepared repository here.")
    parser.add_argument("--profile", default=None)
    parser.add_argument("--model", action="store_true", help="With vectors, where there are weights.")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="nm-scale-")).resolve()
    prepared = options.keep or work / "prepared"
    try:
        if not prepared.exists():
            repository = Repository(prepared / "repository")
            repository.create(options.files)
            fill(repository, prepared / "state", options.decisions, options.files)
            (prepared / "versions.json").write_text(json.dumps(repository.versions))
        # The measured run changes its own copy.
        shutil.copytree(prepared, work / "run", symlinks=True)
        repository = Repository(work / "run" / "repository")
        repository.git("update-index", "-q", "--refresh")
        known = json.loads((prepared / "versions.json").read_text())
        repository.versions = {int(number): version for number, version in known.items()}
        measure(repository, work / "run" / "state", options).print()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
