"""The associative brain at scale, beside the goals. Run it on a quiet machine:

    python tests/bench/memory_scale.py [--seconds 60] [--only WORD] [--json]

Everything happens in temporary folders. Times of single calls are the best or a percentile of many, as the row says;
`--seconds` is how long somebody types in the first rows. Reports; asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "engine_memory"))

from editing import Editing

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.uris import uri_of_path
from nm_lsp.engine.requests import Nothing
from nm_lsp.search.ranking import search
from nm_lsp.server.backend import Backend
from nm_lsp.server.documents import Documents
from nm_lsp.server.roots import Roots
from nm_lsp.storage.synapses import SynapseStore, Teaching
from nm_lsp.synapses.network import EdgeRows, Network
from nm_lsp.synapses.pairs import pairs_of
from nm_lsp.synapses.rules import DAY_S

NOW = 1_800_000_000.0
Row = tuple[str, str, str]
"""What was measured, the figure, the goal."""

WRITER = """
import sys, time
from pathlib import Path
from nm_lsp.engine.memory.keeper import MemoryKeeper
from nm_lsp.engine.memory.writes import Teach
from nm_lsp.storage.synapses import Teaching
keeper = MemoryKeeper(Path(sys.argv[1]), time.time)
for n in range(int(sys.argv[3])):
    pairs = [("a", "b", 1.0), ("a", sys.argv[2], 1.0)]
    keeper.submit(Teach(Teaching("personal", time.time(), pairs, counters={"batches": 1})))
    while keeper.n_written <= n:
        time.sleep(0.001)
    print(n + 1, flush=True)
keeper.close()
"""


def typing(folder: Path, seconds: float) -> Iterator[Row]:
    """Ten changes a second in a file of 5,000 lines, through the server's own handler and a real workspace."""
    lines = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(1_250))
    for name in ("big", "other"):
        (folder / f"{name}.py").write_text(lines if name == "big" else "def g():\n    return 1\n")
    spent, n_writes = asyncio.run(_type(folder, seconds))
    spent.sort()
    yield "didChange handler, 5,000 lines, p95", _ms(spent[int(len(spent) * 0.95)]), "≤ 2 ms"
    yield f"writes caused by {len(spent)} changes in {seconds:.0f} s", str(n_writes), "≤ 5"


async def _type(folder: Path, seconds: float) -> tuple[list[float], int]:
    loop = asyncio.get_running_loop()
    backend = Backend(loop)
    backend.configure({"model": {"enabled": False}}, None, lambda _problems: None)
    roots = Roots(backend, lambda _root, _host: None)
    root = roots.add(uri_of_path(str(folder)))
    assert root is not None
    roots.open(root)
    host = await root.host
    documents = Documents(backend, roots)
    while not host.status(Nothing(), Cancellation()).ready:
        await asyncio.sleep(0.1)
    spent = []
    for name in ("other", "big"):
        uri = uri_of_path(str(folder / f"{name}.py"))
        item = {"uri": uri, "languageId": "python", "version": 1, "text": (folder / f"{name}.py").read_text()}
        documents.did_open({"textDocument": item})
    _change(documents, uri_of_path(str(folder / "other.py")), 2, 0)
    await asyncio.sleep(4)
    before = _revision(folder)
    uri = uri_of_path(str(folder / "big.py"))
    for n in range(int(seconds * 10)):
        began = time.perf_counter()
        _change(documents, uri, n + 2, 2_000 + 4 * (n // 100))
        spent.append(time.perf_counter() - began)
        await asyncio.sleep(0.1)
    await asyncio.sleep(4)
    n_writes = _revision(folder) - before
    await asyncio.to_thread(backend.close)
    return spent, n_writes


def _change(documents: Documents, uri: str, version: int, line: int) -> None:
    at = {"line": line + 1, "character": 4}
    change = {"range": {"start": at, "end": at}, "text": f"x = {version}; "}
    documents.did_change({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]})


def _revision(folder: Path) -> int:
    path = folder / ".neuralmind" / "lsp" / "synapses.db"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT value FROM facts WHERE name = 'revision'").fetchone()[0])


def batches(folder: Path, _: float) -> Iterator[Row]:
    """A batch of 50 nodes in 20 files, and one of 800."""
    with closing(SynapseStore.open(folder / "synapses.db", NOW)) as store:
        symbols = [f"f{n % 20}.py::s{n}" for n in range(50)]
        pairs = [(a, b, 1.0) for a, b in pairs_of(symbols)]
        began = time.perf_counter()
        rows = store.teach(Teaching("personal", NOW, pairs, steps=list(itertools.pairwise(symbols))[:20]))
        took = time.perf_counter() - began
        yield "rows of a batch of 50 nodes", str(rows + len(store.memory().names)), "≤ 300"
        yield "the time of its write", _ms(took), ""
    text = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(20))
    files = {f"p{n:02}.py": text for n in range(40)}
    work = Editing(folder / "bulk", files)
    for path in files:
        work.edit(path)
        for n in range(20):
            work.edit(path, f"f{n}")
    work.now += 3
    began = time.perf_counter()
    work.desk.tick()
    took = time.perf_counter() - began
    work.flush()
    yield "rows of a batch of 800 nodes", str(sum(map(len, (work.weights(), work.weights(files=True))))), "0"
    yield "the time of its tick", _ms(took), "≤ 50 ms"
    work.close()


def same_list(folder: Path, _: float) -> Iterator[Row]:
    """A question asked 50 times over ten days, its hits told to the learner each time."""
    files = {
        f"p{n}.py": f'def boil_{n}(litres):\n    """Boil water for tea {n}."""\n    return {n}\n' for n in range(40)
    }
    work = Editing(folder / "tea", files)
    for n in range(0, 30, 3):
        for path in (f"p{n}.py", f"p{n + 2}.py"):
            work.edit(path, path.replace("p", "boil_").removesuffix(".py"))
        work.pass_time(3)
        work.now += 700
    lists = set()
    for _ in range(50):
        recall = work.desk.recall()
        assert recall is not None
        hits = recall.rerank(work.corpus, search(work.corpus, "boil water", limit=40).candidates, 10, None)
        ids = tuple(candidate.node.id for candidate in hits)
        lists.add(ids)
        work.desk.answered(ids)
        work.pass_time(DAY_S / 5, step=DAY_S / 10)
    yield "different lists for one question in ten days", str(len(lists)), "1"
    work.close()


def spread(_: Path, __: float) -> Iterator[Row]:
    """Ten seeds over a million edges between 100,000 nodes, evenly and by a power law."""
    rng = np.random.default_rng(1)
    n_edges, n_nodes = 1_000_000, 100_000
    ones, weight = np.ones(n_edges, np.int64), rng.uniform(0.06, 1.0, n_edges)
    even = rng.integers(0, n_nodes, (2, n_edges))
    skewed = np.minimum(rng.zipf(1.5, (2, n_edges)) - 1, n_nodes - 1)
    for name, (a, b), seeds in (
        ("even", even, rng.integers(0, n_nodes, 10)),
        ("with hubs as seeds", skewed, np.arange(10)),
    ):
        large = Network(n_nodes, [(EdgeRows(a, b, weight, weight, ones, ones), weight)])
        best = _best(lambda network=large, seeds=seeds: network.spread({int(node): 1.0 for node in seeds}), 10)
        yield f"spread over 1,000,000 edges, {name}, best of 10", _ms(best), "≤ 15 ms"


def a_busy_year(folder: Path, _: float) -> Iterator[Row]:
    """10,000 batches of three symbols out of 3,000 in 300 files; then all of it has decayed."""
    rng = random.Random(1)
    with closing(SynapseStore.open(folder / "synapses.db", NOW)) as store:
        symbols = [f"package/module_{n % 300:03}.py::Class.method_{n // 300}" for n in range(3_000)]
        took = []
        for n in range(10_000):
            pairs = [(a, b, 1.0) for a, b in pairs_of(rng.sample(symbols, 3))]
            began = time.perf_counter()
            store.teach(Teaching("personal", NOW + 60 * n, pairs))
            took.append(time.perf_counter() - began)
        yield "store after 10,000 batches", f"{store.n_bytes() / 1e6:.1f} MB", "≤ 20 MB"
        yield "its edges", f"{store.memory().n_edges:,}", ""
        yield "write of a batch, p95", _ms(sorted(took)[9_500]), ""
        for days, title in ((30, "settle, a month later"), (400, "settle, when all has decayed")):
            began = time.perf_counter()
            n_edges = store.settle(NOW + days * DAY_S).n_edges
            yield f"{title} ({n_edges:,} edges go)", _ms(time.perf_counter() - began), "≤ 1,000 ms"


def two_writers(folder: Path, _: float) -> Iterator[Row]:
    """Two processes teach 200 batches each through their keepers."""
    writers = [_writer(folder, name, 200) for name in ("left", "right")]
    for writer in writers:
        writer.wait(120)
    with closing(SynapseStore.open(folder / "synapses.db", time.time())) as store:
        yield "batches counted of 2 × 200 by two processes", str(store.counters()["batches"]), "400"
        memory = store.memory()
        both = sorted(memory.edges["personal"].count.tolist())
        yield "activations of the pair of both, and of each", " ".join(map(str, both[::-1])), "400 200 200"


def killed(folder: Path, _: float) -> Iterator[Row]:
    """Twenty processes that teach are killed at a random moment."""
    rng, lost, kept = random.Random(1), 0, 0
    for n in range(20):
        told = folder / f"told{n}"
        with told.open("w") as out:
            writer = _writer(folder, f"k{n}", 10_000, out)
            while not told.stat().st_size:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.2))
            writer.send_signal(signal.SIGKILL)
            writer.wait(60)
        with closing(SynapseStore.open(folder / "synapses.db", time.time())) as store:
            n_batches = store.counters()["batches"]
        lost += max(0, kept + told.read_text().count("\n") - n_batches)
        kept = n_batches
    yield f"batches lost of {kept:,}, 20 × kill -9", str(lost), "0"


def _writer(
    folder: Path, name: str, n_batches: int, out: IO[str] | int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name, str(n_batches)], stdout=out)


def _best(call: Callable[[], object], times: int) -> float:
    best = math.inf
    for _ in range(times):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:,.2f} ms"


PARTS = (typing, batches, same_list, spread, a_busy_year, two_writers, killed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="", metavar="WORD", help=", ".join(part.__name__ for part in PARTS))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[Row] = []
    for part in PARTS:
        if given.only not in part.__name__:
            continue
        folder = Path(tempfile.mkdtemp(prefix="nm-memory-")).resolve()
        try:
            for row in part(folder, given.seconds):
                rows.append(row)
                if not given.json:
                    print(f"{row[0]:58} {row[1]:>14}   {row[2]}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        print(json.dumps([dict(zip(("what", "measured", "goal"), row, strict=True)) for row in rows], indent=1))


if __name__ == "__main__":
    main()
