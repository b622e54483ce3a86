"""`synapses.db`: exact counts, namespaces apart, renames, merges, settling, damage."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm_lsp.base.errors import InvalidInput, StoreProblem
from nm_lsp.storage.synapses import SynapseStore, Teaching
from nm_lsp.synapses.network import Network
from nm_lsp.synapses.pairs import pairs_of
from nm_lsp.synapses.rules import DAY_S, Synapse, read_factors

NOW = 1_800_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SynapseStore]:
    opened = SynapseStore.open(tmp_path / "synapses.db", NOW)
    yield opened
    opened.close()


def teach(store: SynapseStore, *pairs: tuple[str, str], namespace: str = "personal", at: float = NOW) -> int:
    return store.teach(Teaching(namespace, at, [(a, b, 1.0) for a, b in pairs]))


def weights(store: SynapseStore, active: str = "personal", now: float = NOW) -> dict[tuple[str, str], float]:
    """What the production read gives a reader of `active`: the greatest weight of each pair."""
    memory = store.memory()
    found: dict[tuple[str, str], float] = {}
    for _, rows, read in memory.parts(read_factors(active), active, now):
        for a, b, weight in zip(rows.a.tolist(), rows.b.tolist(), read.tolist(), strict=True):
            low, high = sorted((memory.names[a], memory.names[b]))
            found[low, high] = max(found.get((low, high), 0.0), round(weight, 6))
    return found


def counts(store: SynapseStore, namespace: str = "personal") -> dict[tuple[str, str], int]:
    memory = store.memory()
    rows = memory.edges[namespace]
    return {
        tuple(sorted((memory.names[a], memory.names[b]))): n  # type: ignore[misc]
        for a, b, n in zip(rows.a.tolist(), rows.b.tolist(), rows.count.tolist(), strict=True)
    }


def test_weights_tell_apart_what_was_used_how_often(store: SynapseStore) -> None:
    for other, times in (("b", 30), ("c", 10), ("d", 1)):
        for _ in range(times):
            teach(store, ("a", other))
    assert counts(store) == {("a", "b"): 30, ("a", "c"): 10, ("a", "d"): 1}
    read = weights(store)
    assert read["a", "b"] > read["a", "c"] > read["a", "d"] > 0
    later = weights(store, now=NOW + 10 * DAY_S)
    assert all(later[key] < read[key] for key in read)
    assert later["a", "b"] > later["a", "c"] > later["a", "d"]


def test_a_batch_that_was_read_before_is_read_with_its_changes(store: SynapseStore) -> None:
    teach(store, ("a", "b"), ("c", "d"))
    before = store.memory()
    teach(store, ("a", "b"), ("e", "f"))
    assert counts(store) == {("a", "b"): 2, ("c", "d"): 1, ("e", "f"): 1}
    assert len(before.edges["personal"]) == 2
    assert store.memory() is store.memory()


def test_namespaces_never_leak(store: SynapseStore) -> None:
    teach(store, ("a", "b"), namespace="branch:one")
    teach(store, ("a", "c"), namespace="branch:two")
    teach(store, ("a", "d"), namespace="ephemeral")
    teach(store, ("a", "p"))
    store.take_in("shared", [("a", "s", Synapse(1.0, NOW, 1, 0))], [], NOW, NOW)
    assert weights(store) == {("a", "p"): 0.3, ("a", "s"): 0.5}
    assert weights(store, "branch:one") == {("a", "b"): 0.3, ("a", "p"): 0.24, ("a", "s"): 0.5}
    assert weights(store, "ephemeral") == {("a", "d"): 0.3, ("a", "p"): 0.24, ("a", "s"): 0.5}
    before = weights(store, "branch:one")
    store.weaken("branch:two", "a", NOW)
    store.settle(NOW + 500 * DAY_S, only=["branch:two"])
    store.reset(["branch:two"], NOW)
    assert weights(store, "branch:one") == before
    assert weights(store, "branch:two") == {("a", "p"): 0.24, ("a", "s"): 0.5}


def test_negative_feedback_halves_in_its_namespace_only(store: SynapseStore) -> None:
    teach(store, ("a", "b"), ("c", "d"))
    assert store.weaken("personal", "a", NOW) == 1
    assert store.weaken("branch:x", "a", NOW) == 0
    assert weights(store) == {("a", "b"): 0.15, ("c", "d"): 0.3}


def test_questions_move_nothing_that_is_recalled(store: SynapseStore) -> None:
    teach(store, ("a", "b"))
    learned = store.memory().learned_at
    for day in range(50):
        store.teach(Teaching("personal", NOW + day * DAY_S, lifted=[("a", "b"), ("a", "z")]))
    assert store.memory().learned_at == learned
    assert counts(store)["a", "b"] == 1
    memory = store.memory()
    parts = memory.parts(read_factors("personal"), "personal", learned)
    assert Network(memory.n_nodes, [(rows, read) for _, rows, read in parts]).n_edges == 1


def test_a_commit_counts_once_whoever_reports_it(store: SynapseStore) -> None:
    batch = Teaching("personal", NOW, [("a", "b", 1.0)], commit=b"c1")
    assert (store.teach(batch), store.teach(batch)) == (1, 0)
    assert counts(store) == {("a", "b"): 1}


def test_contents_counted_by_one_kind_of_source_are_known_to_the_other(store: SynapseStore) -> None:
    store.teach(Teaching("personal", NOW, seen=[(b"k", "lsp")]))
    assert store.already_seen([b"k", b"other"], "disk") == {b"k"}
    assert store.already_seen([b"k"], "lsp") == set()


def test_a_rename_on_the_default_branch_carries_everything(store: SynapseStore) -> None:
    teach(store, ("old.py", "x.py"), ("old.py::f", "x.py"), ("old.pyc::f", "x.py"))
    store.teach(Teaching("personal", NOW, steps=[("x.py", "old.py::f")]))
    assert store.rename("personal", {"old.py": "dir/new.py"}, NOW) == 2
    assert set(weights(store)) == {("dir/new.py", "x.py"), ("dir/new.py::f", "x.py"), ("old.pyc::f", "x.py")}
    memory = store.memory()
    assert [memory.names[b] for _, b in memory.steps["personal"]] == ["dir/new.py::f"]


def test_a_rename_on_a_branch_is_seen_on_that_branch_until_it_is_merged(store: SynapseStore) -> None:
    teach(store, ("old.py", "x.py"))
    teach(store, ("old.py", "y.py"), namespace="branch:b")
    store.rename("branch:b", {"old.py": "mid.py"}, NOW)
    store.rename("branch:b", {"mid.py": "new.py"}, NOW)
    assert weights(store, "branch:b") == {("new.py", "y.py"): 0.3, ("new.py", "x.py"): 0.24}
    assert weights(store) == {("old.py", "x.py"): 0.3}
    assert store.join("branch:b", NOW) == 1
    assert weights(store) == {("new.py", "x.py"): 0.3, ("new.py", "y.py"): 0.24}
    assert store.branches() == []


def test_a_merged_branch_joins_at_its_read_weight(store: SynapseStore) -> None:
    teach(store, ("a", "b"))
    teach(store, ("a", "b"), ("a", "c"), namespace="branch:b")
    store.join("branch:b", NOW)
    assert weights(store) == {("a", "b"): pytest.approx(1 - 0.7 * 0.76), ("a", "c"): pytest.approx(0.24)}
    assert counts(store) == {("a", "b"): 2, ("a", "c"): 1}


def test_settling_forgets_what_has_decayed_away(store: SynapseStore) -> None:
    teach(store, ("a", "b"))
    for _ in range(5):
        teach(store, ("a", "c"))
    store.teach(Teaching("personal", NOW, steps=[("a", "b")]))
    settled = store.settle(NOW + 500 * DAY_S)
    assert (settled.n_edges, settled.n_transitions) == (1, 1)
    assert set(weights(store)) == {("a", "c")}
    assert "b" not in store.memory().numbers


def test_edges_of_nodes_that_are_gone_are_pruned(store: SynapseStore) -> None:
    teach(store, ("a", "b"), ("a", "c"))
    gone = {"c"}.__contains__
    assert store.settle(NOW + 60, only=["personal"], is_gone=gone).n_edges == 0
    assert store.settle(NOW + 7_200, only=["personal"], is_gone=gone).n_edges == 1
    assert set(weights(store)) == {("a", "b")}


def test_a_clock_that_jumped_deletes_nothing(store: SynapseStore) -> None:
    years = 4_000 * DAY_S
    teach(store, ("a", "b"))
    assert not store.is_time_credible(NOW + 1)
    assert store.is_time_credible(NOW + 2 * DAY_S)
    assert not store.is_time_credible(NOW + years)
    assert not store.is_time_credible(NOW - years)
    teach(store, ("x", "y"), at=NOW + years)
    assert not store.is_time_credible(NOW + years + 60)
    teach(store, ("x", "z"), at=NOW + 60)
    assert weights(store, now=NOW + 60)["a", "b"] == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("weight", [-0.5, 1.5, float("inf"), float("nan")])
def test_impossible_bundles_change_nothing(store: SynapseStore, weight: float) -> None:
    with pytest.raises(InvalidInput):
        store.take_in("shared", [("a", "b", Synapse(0.5, NOW)), ("a", "c", Synapse(weight, NOW))], [], NOW, NOW)
    assert store.memory().n_edges == 0


def test_of_a_bundle_the_greater_stays_so_that_it_can_be_taken_in_twice(store: SynapseStore) -> None:
    edges, steps = [("a", "b", Synapse(0.5, NOW, 3, 2)), ("a", "c", Synapse(0.2, NOW, 1, 0))], [("a", "b", 4.0)]
    assert store.take_in("shared", edges, steps, NOW, NOW) == (2, 1)
    assert store.take_in("shared", edges, steps, NOW, NOW) == (0, 0)
    later = [("b", "a", Synapse(0.4, NOW, 9, 9)), ("a", "c", Synapse(0.3, NOW, 1, 0))]
    assert store.take_in("shared", later, [("a", "b", 3.0), ("b", "a", 1.0)], NOW, NOW) == (1, 1)
    assert weights(store) == {("a", "b"): 0.25, ("a", "c"): 0.15}
    memory = store.memory()
    numbers = memory.numbers
    assert {ends: n for ends, (n, _) in memory.steps["shared"].items()} == {
        (numbers["a"], numbers["b"]): 4.0,
        (numbers["b"], numbers["a"]): 1.0,
    }


@pytest.mark.parametrize("kind", ["garbage", "foreign"])
def test_an_unusable_file_is_set_aside(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "synapses.db"
    if kind == "garbage":
        path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000)
    else:
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE synapses (id INTEGER)")
        other.close()
    before = path.read_bytes()
    store = SynapseStore.open(path, NOW)
    assert store.set_aside is not None
    assert store.set_aside.read_bytes() == before
    assert teach(store, ("a", "b")) == 1
    store.close()


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    SynapseStore.open(tmp_path / "s.db", NOW).close()
    with sqlite3.connect(tmp_path / "s.db") as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(StoreProblem) as caught:
        SynapseStore.open(tmp_path / "s.db", NOW)
    assert caught.value.reason == "newer"


_TEACHER = """
import sys
from pathlib import Path
from nm_lsp.storage.synapses import SynapseStore, Teaching
store = SynapseStore.open(Path(sys.argv[1]), 1.8e9)
for n in range(200):
    store.teach(Teaching("personal", 1.8e9 + n, [("a", "b", 1.0), ("a", sys.argv[2], 1.0)], counters={"batches": 1}))
store.close()
"""


def test_two_processes_lose_no_count(tmp_path: Path, store: SynapseStore) -> None:
    children = [subprocess.Popen([sys.executable, "-c", _TEACHER, str(store.path), name]) for name in ("left", "right")]
    assert [child.wait(60) for child in children] == [0, 0]
    assert counts(store) == {("a", "b"): 400, ("a", "left"): 200, ("a", "right"): 200}
    assert store.counters() == {"batches": 400}


_TOLD = """
import sys
from pathlib import Path
from nm_lsp.storage.synapses import SynapseStore, Teaching
store = SynapseStore.open(Path(sys.argv[1]), 1.8e9)
for n in range(100_000):
    store.teach(Teaching("personal", 1.8e9 + n, [("a", "b", 1.0)], counters={"batches": 1}))
    print(n + 1, flush=True)
"""


def test_a_killed_process_loses_nothing_that_was_written(tmp_path: Path, store: SynapseStore) -> None:
    kept = 0
    for n in range(3):
        told = tmp_path / f"told{n}"
        with told.open("w") as out:
            child = subprocess.Popen([sys.executable, "-c", _TOLD, str(store.path)], stdout=out)
            deadline = time.monotonic() + 60
            while told.read_text().count("\n") < 20 and time.monotonic() < deadline:
                time.sleep(0.01)
            child.kill()
            child.wait(60)
        n_told = told.read_text().count("\n")
        n_batches = store.counters()["batches"]
        # The last one may have been written and not told.
        assert n_told >= 20
        assert kept + n_told <= n_batches <= kept + n_told + 1
        assert counts(store) == {("a", "b"): n_batches}
        kept = n_batches


def test_a_batch_is_whole_or_absent(tmp_path: Path) -> None:
    armed = [False]

    def die(step: str) -> None:
        if armed[0] and step == "before-commit":
            raise KeyboardInterrupt

    store = SynapseStore.open(tmp_path / "synapses.db", NOW, failpoint=die)
    teach(store, ("a", "b"))
    armed[0] = True
    with pytest.raises(KeyboardInterrupt):
        teach(store, ("a", "b"), ("a", "c"))
    armed[0] = False
    assert counts(store) == {("a", "b"): 1}
    store.close()


def test_a_batch_of_fifty_writes_at_most_three_hundred_rows(store: SynapseStore) -> None:
    symbols = [f"f{n % 10}.py::s{n}" for n in range(50)]
    batch = Teaching(
        "personal",
        NOW,
        [(a, b, 1.0) for a, b in pairs_of(symbols)],
        steps=list(itertools.pairwise(symbols))[:20],
    )
    rows = store.teach(batch)
    assert rows + len(store.memory().names) <= 300


def test_ten_thousand_batches_stay_small_and_settle_quickly(tmp_path: Path) -> None:
    """Ten thousand batches of three symbols out of 3,000 in 300 files, as a busy year brings."""
    store = SynapseStore.open(tmp_path / "synapses.db", NOW)
    state = 1
    batches = []
    for n in range(10_000):
        symbols = []
        for _ in range(3):
            state = (state * 1_103_515_245 + 12_345) % 2**31
            symbols.append(f"package/module_{state % 300:03}.py::Class.method_{state // 7 % 10}")
        batches.append(Teaching("personal", NOW + 60 * n, [(a, b, 1.0) for a, b in pairs_of(symbols)]))
    for start in range(0, len(batches), 100):
        rows = [row for batch in batches[start : start + 100] for row in batch.pairs]
        store.teach(Teaching("personal", batches[start].at, rows))
    assert store.n_bytes() <= 20_000_000
    before = time.process_time()
    store.settle(NOW + 400 * DAY_S)
    assert time.process_time() - before <= 2.0
    store.close()


def test_names_that_are_no_utf8_harm_nothing(tmp_path: Path) -> None:
    """Of a file and of a branch, as git gives them; such a name recalls nothing, and what goes beside it is kept."""
    store = SynapseStore.open(tmp_path / "synapses.db", NOW)
    odd = "odd\udcff.py::f"
    pairs = [("a.py::a", odd, 1.0), ("a.py::a", "b.py::b", 1.0)]
    store.teach(Teaching("branch:\udcff", NOW, pairs, lifted=[(odd, "b.py::b")], steps=[("a.py::a", odd)]))
    assert store.memory().n_edges == 3
    assert store.rename("branch:\udcff", {"odd\udcff.py": "even\udcfe.py"}, NOW) == 1
    assert store.weaken("branch:\udcff", odd, NOW) == 0
    store.note_branch("branch:\udcff", "ab" * 20, diverged=True, now=NOW)
    store.close()
