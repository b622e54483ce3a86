"""Cases Y01 to Y07: what use teaches, and what only looks like it. A real server, by a clock that the tests move."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from case_bench import Bench
from clocked_server import MovedClock
from decision_session import Repo
from typist import Typist, module, until_ready

DAY_S = 86_400.0
NAMES = ("alpha", "tango", "sierra", "romeo", "bravo")
"""Used with alpha often, less and less; the last one never, though its name comes first."""


Work = Callable[..., AbstractContextManager[Typist]]


@pytest.fixture
def clock(tmp_path: Path) -> MovedClock:
    return MovedClock(tmp_path / "clock")


@pytest.fixture
def work_in(bench: Bench, clock: MovedClock) -> Work:
    """A typist in the first of some repositories, with an index."""

    @contextmanager
    def opened(*repos: Repo, settings: Any = None) -> Iterator[Typist]:
        roots = [repo.path for repo in repos]
        given = {"index": {"enabled": True}, **(settings or {})}
        with bench.session(*roots, settings=given, command=clock.command) as s:
            yield Typist(s, clock, repos[0], roots[0] if len(roots) > 1 else None)

    return opened


@pytest.fixture
def repo(bench: Bench) -> Repo:
    return bench.repo(files={f"{name}.py": module(name) for name in NAMES})


def node(name: str) -> str:
    return f"{name}.py::{name}"


def pair(a: str, b: str) -> tuple[str, str]:
    return node(a), node(b)


def test_y01_weights_tell_what_was_used_how_often(repo: Repo, work_in: Work, clock: MovedClock) -> None:
    """Y01: thirty, ten, one and no batches give four weights in that order, exact counts, and a decay that keeps the
    order; the one used most is recalled first.

    Fails if `Synapse.reinforced` (synapses/rules.py) gives every edge the weight 1.
    """
    with work_in(repo) as work:
        work.ready()
        work.open(*NAMES)
        for times, other in ((30, "tango"), (10, "sierra"), (1, "romeo")):
            for _ in range(times):
                work.batch("alpha", other)
        found = work.s.until(lambda: len(found := work.goes_with(node("alpha"))) == 3 and found)
        tango, sierra, romeo = (found[node(name)] for name in ("tango", "sierra", "romeo"))
        assert tango[0] > sierra[0] > romeo[0] > 0
        assert (tango[1], sierra[1], romeo[1]) == (30, 10, 1)
        assert work.counters()["batches"] == 41
        steps = work.s.call("next", symbol=node("alpha"))["steps"]
        assert [step["id"] for step in steps] == [node("tango"), node("sierra"), node("romeo")]
        hits = [hit["id"] for hit in work.s.call("query", query="alpha order")["hits"]]
        assert hits.index(node("tango")) < hits.index(node("sierra")) < hits.index(node("bravo"))
        last = (tango[0], sierra[0], romeo[0])
        for days in (10, 20):
            clock.advance(days * DAY_S)
            now = tuple(work.goes_with(node(name))[node("alpha")][0] for name in ("tango", "sierra", "romeo"))
            assert now[0] > now[1] > now[2] > 0
            assert all(new < old for new, old in zip(now, last, strict=True))
            last = now


def test_y02_a_learner_without_an_index_says_so_and_keeps_what_it_saw(repo: Repo, work_in: Work, bench: Bench) -> None:
    """Y02: while the index cannot be built, status says what keeps it from learning; the twenty batches are kept by
    file and are taught once `index.rebuild` has made the index.

    Fails if `Learner._teach_pending` (engine/memory/learner.py) forgets the batches while there is no index.
    """
    cache = Path(bench.env["XDG_CACHE_HOME"])
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("in the way of the folder")
    with work_in(repo) as work:
        problems = work.s.until(lambda: [p for p in work.s.call("status")["problems"] if p["code"] == "not-learning"])
        assert "Not learning" in problems[0]["message"]
        work.open("alpha", "tango")
        for _ in range(20):
            work.batch("alpha", "tango")
        state = work.inspect()
        assert (state["learning"], state["waiting"]) == (False, 20)
        assert str(cache) in state["problem"]
        cache.unlink()
        assert work.s.call("index.rebuild")["done"]
        until_ready(work.s)
        found = work.s.until(lambda: (now := work.goes_with(node("alpha"))) and now[node("tango")][1] == 20 and now)
        assert found[node("tango")][0] > 0.9
        state = work.inspect()
        assert (state["learning"], state["waiting"]) == (True, 0)
        assert not [p for p in work.s.call("status")["problems"] if p["code"] in {"not-learning", "index-folder"}]


def test_y03_only_nodes_that_exist_are_learned(repo: Repo, work_in: Work, bench: Bench) -> None:
    """Y03: a deleted, an excluded, an unsaved new file and one outside make no edges; a rename keeps the weights, and
    edges of what is gone are pruned.

    Fails if `known_nodes` (engine/memory/learner.py) takes every symbol as it is.
    """
    repo.commit("generated", {"gen/made.py": module("made")})
    outside = bench.folder / "outside.py"
    bench.leaves(repo.path, " D romeo.py", " D tango.py", "?? beta.py", " D sierra.py")
    outside.write_text(module("outside"))
    with work_in(repo, settings={"index": {"enabled": True, "excludes": ["gen/"]}}) as work:
        s = work.s
        work.ready()
        work.open(*NAMES)
        work.batch("alpha", "tango")
        work.batch("alpha", "sierra")
        s.open(repo.uri("gen/made.py"), module("made"))
        s.open(outside.as_uri(), module("outside"))
        s.open(repo.uri("unsaved.py"), "")
        (repo.path / "romeo.py").unlink()
        s.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": repo.uri("romeo.py"), "type": 3}]})
        s.until(lambda: (status := s.call("status"))["ready"] and status["files"] == len(NAMES) - 1)
        for n in range(3):
            for uri in (repo.uri("gen/made.py"), outside.as_uri(), repo.uri("unsaved.py"), repo.uri("romeo.py")):
                s.change(uri, module("other", 10 + n), 10 + n)
            work.batch("alpha", "tango")
        s.until(lambda: work.pairs().get(pair("alpha", "tango"), (0, 0))[1] == 4)
        assert set(work.pairs()) == {pair("alpha", "tango"), pair("alpha", "sierra")}
        before = work.goes_with(node("alpha"))
        # A rename in the editor.
        (repo.path / "tango.py").rename(repo.path / "beta.py")
        files = [{"oldUri": repo.uri("tango.py"), "newUri": repo.uri("beta.py")}]
        s.close(repo.uri("tango.py"))
        s.client.notify("workspace/didRenameFiles", {"files": files})
        moved = s.until(lambda: (found := work.goes_with(node("alpha"))).get("beta.py::tango") and found)
        assert set(moved) == {"beta.py::tango", node("sierra")}
        assert moved["beta.py::tango"] == pytest.approx(before[node("tango")], abs=0.001)
        # A node that goes takes its edges along.
        s.close(repo.uri("sierra.py"))
        (repo.path / "sierra.py").unlink()
        s.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": repo.uri("sierra.py"), "type": 3}]})
        s.until(lambda: (status := s.call("status"))["ready"] and status["files"] == len(NAMES) - 2)
        assert s.call("synapses.decay")["edges"] == 2, "of the symbols and of their files"
        assert set(work.pairs()) == {(node("alpha"), "beta.py::tango")}


def test_y04_what_git_does_to_files_is_no_editing(bench: Bench, work_in: Work) -> None:
    """Y04: a checkout, as twelve reloaded buffers and a thousand file events, and a stash, its pop and a pull, as
    twelve of each, teach nothing; hovers are answered meanwhile.

    Fails if `Sieve._screen` (engine/memory/sieve.py) does not ask whether the disk holds the text of the screen.
    """
    names = [f"m{n:02}" for n in range(12)]
    repo = bench.repo(files={f"{name}.py": module(name) for name in names})
    repo.git("checkout", "-q", "-b", "other")
    # Somebody else's, since one's own would be learned when the server starts.
    repo.git("config", "user.email", "bob@example.org")
    repo.commit("other", {f"{name}.py": module(name, 2) for name in names})
    repo.git("config", "user.email", "ada@example.org")
    other = bench.repo("clone", {})
    other.git("fetch", "-q", str(repo.path), "main")
    other.git("reset", "-q", "--hard", "FETCH_HEAD")
    other.commit("theirs", {f"{name}.py": module(name, 3) for name in names})
    repo.git("checkout", "-q", "main")
    with work_in(repo) as work:
        s = work.s
        work.ready()
        work.open(*names)
        version = 1

        def reload(n_others: int = 0) -> None:
            """As VS Code does it: the buffers follow the disk, and the watcher tells of everything."""
            nonlocal version
            version += 1
            for name in names:
                s.change(repo.uri(f"{name}.py"), (repo.path / f"{name}.py").read_text(), version)
            events = [{"uri": repo.uri(f"build/{n}.py"), "type": 2} for n in range(n_others)]
            events += [{"uri": repo.uri(f"{name}.py"), "type": 2} for name in names]
            s.client.notify("workspace/didChangeWatchedFiles", {"changes": events})
            for name in names[:4]:
                began = time.monotonic()
                s.hover(repo.uri(f"{name}.py"), 0, 5)
                # The owner's 0.3 s, with room for a machine that is busy with something else.
                assert time.monotonic() - began < 2
            work.close_batch()

        for command in (("checkout", "-q", "other"), ("checkout", "-q", "main")):
            repo.git(*command)
            reload(988)
        repo.write({f"{name}.py": module(name, 9) for name in names})
        repo.git("stash", "-q")
        reload()
        repo.git("stash", "pop", "-q")
        reload()
        repo.git("checkout", "-q", "--", ".")
        reload()
        repo.git("pull", "-q", "--ff-only", str(other.path), "main")
        reload()
        # What is learned is written in order: once this edit is there, nothing from before is still to come.
        s.change(repo.uri("m00.py"), module("m00", 50), version + 1)
        s.change(repo.uri("m01.py"), module("m01", 50), version + 1)
        work.close_batch()
        found = s.until(work.pairs)
        assert found == {pair("m00", "m01"): (pytest.approx(0.3, abs=0.01), 1)}
        server = psutil.Process(s.client.process.pid)
        s.until(lambda: _cpu_share(server) < 0.2, 5)


def _cpu_share(process: psutil.Process, seconds: float = 0.5) -> float:
    """Of one core; the server of these tests looks at its clock fifty times a second."""
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (time.monotonic() - began)


@pytest.mark.parametrize("incremental", [False, True])
def test_y06_typing_is_one_activation_and_few_writes(
    bench: Bench, work_in: Work, clock: MovedClock, incremental: bool
) -> None:
    """Y06: a minute of typing, 600 changes to a file of 5,000 lines, as whole texts and as increments: one batch for
    each half minute, fewer than five writes, hovers answered meanwhile, memory flat.

    Fails if `Funnel.due_in` (engine/memory/funnel.py) says that every batch is due at once.
    """
    lines = [f"def f{n}():\n    return {n}\n" for n in range(2_500)]
    repo = bench.repo(files={"big.py": "".join(lines), "alpha.py": module("alpha")})
    big = repo.uri("big.py")
    with work_in(repo) as work:
        s = work.s
        work.ready()
        work.open("alpha")
        s.open(big, "".join(lines))
        s.change(big, "".join(lines) + "# begun\n", 2)
        work.batch("alpha")
        revision = s.until(lambda: _revision(repo))
        server = psutil.Process(s.client.process.pid)
        memory, waits = 0, []
        for n in range(600):
            if incremental:
                at = {"line": 1, "character": 11 + n}
                change: dict[str, Any] = {"range": {"start": at, "end": at}, "text": "1"}
            else:
                change = {"text": f"def f0():\n    return {n + 1}\n" + "".join(lines[1:])}
            document = {"uri": big, "version": n + 3}
            s.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
            if n % 10 == 9:
                began = time.monotonic()
                s.hover(repo.uri("alpha.py"), 0, 5)
                waits.append(time.monotonic() - began)
                clock.advance(1.0)
            if n == 100:
                memory = server.memory_info().rss
        work.close_batch()
        s.until(lambda: 3 <= work.counters().get("batches", 0) <= 4)
        assert _revision(repo) - revision < 5
        # The owner's 0.1 s, with room for a machine that is busy with something else.
        assert sorted(waits)[int(len(waits) * 0.95)] < 1
        assert server.memory_info().rss < memory * 1.25
        assert work.inspect()["learning"]


def _revision(repo: Repo) -> int:
    """How often anything was written that was learned."""
    path = repo.path / ".neuralmind/lsp/synapses.db"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'facts'").fetchone() is None:
            # The file is made before its tables.
            return 0
        row = connection.execute("SELECT value FROM facts WHERE name = 'revision'").fetchone()
    return int(row[0]) if row else 0


def test_y07_branches_and_folders_learn_apart(bench: Bench, repo: Repo, work_in: Work, clock: MovedClock) -> None:
    """Y07: what is learned, forgotten and called useless on one branch leaves the weights of another as they were; two
    folders with the same names have each their own.

    Fails if `namespace_of` (engine/memory/whereabouts.py) gives every branch the same namespace.
    """
    twin = bench.repo("twin", {f"{name}.py": module(name) for name in NAMES})
    for branch in ("one", "two"):
        repo.git("branch", branch)
    with work_in(repo, twin) as work:
        other = Typist(work.s, clock, twin, twin.path)
        work.ready()
        other.ready()
        work.open(*NAMES)
        repo.git("checkout", "-q", "one")
        work.s.until(lambda: work.inspect()["active"] == "branch:one")
        for _ in range(6):
            work.batch("alpha", "tango")
        one = work.s.until(lambda: (p := work.pairs("branch:one")) and p[pair("alpha", "tango")][1] == 6 and p)
        repo.git("checkout", "-q", "two")
        work.s.until(lambda: work.inspect()["active"] == "branch:two")
        assert work.goes_with(node("alpha")) == {}
        work.batch("alpha", "sierra")
        work.s.until(lambda: work.pairs("branch:two"))
        folder = repo.path.as_uri()
        assert work.s.call("feedback", id=node("alpha"), useful=False, folder=folder)["namespace"] == "branch:two"
        assert work.s.call("synapses.decay", folder=folder)["edges"] == 0
        assert work.pairs("branch:two")[pair("alpha", "sierra")][0] < 0.2
        repo.git("checkout", "-q", "one")
        work.s.until(lambda: work.inspect()["active"] == "branch:one")
        now = work.pairs("branch:one")
        assert now.keys() == one.keys()
        assert now[pair("alpha", "tango")] == pytest.approx(one[pair("alpha", "tango")], abs=0.001)
        assert list(work.goes_with(node("alpha"))) == [node("tango")]
        # The folder beside it, with the same names.
        assert other.pairs() == {}
        other.open(*NAMES)
        other.batch("alpha", "romeo")
        other.s.until(lambda: other.pairs())
        assert set(other.pairs()) == {pair("alpha", "romeo")}
        assert node("romeo") not in work.goes_with(node("alpha"))
