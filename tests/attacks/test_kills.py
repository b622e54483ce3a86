"""`kill -9` of the real server, or of a child of it, at any moment: what was answered is kept, what was begun is
finished by the next start, and nothing is set aside."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from decision_session import GOV, Repo, Session, private_env
from lengths import Length, lengths
from lsp_harness import LspError

PATIENCE_S = 60.0
KINDS = 4
WITH_INDEX = {"index": {"enabled": True}}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")


class House:
    """A repository and the user's folders, over which servers come and go."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.repo = Repo(folder / "repo", {"gov.py": GOV, **files})
        self.env = private_env(folder / "home")

    def start(self, *, index: bool) -> Session:
        return Session(self.repo.path, env=self.env, settings=WITH_INDEX if index else None)

    def nothing_was_set_aside(self) -> None:
        places = [self.repo.path / ".neuralmind", Path(self.env["XDG_CACHE_HOME"]), Path(self.env["XDG_STATE_HOME"])]
        aside = [path for place in places for path in place.rglob("*.corrupt-*")]
        assert aside == []


def kill_amid(session: Session, work: Callable[[], Any], rng: random.Random, seconds: float) -> None:
    """Do `work` again and again beside, and kill the server, or now and then first one of its children, at a random
    moment: of its start, or after the first time that the work was answered."""
    answered = threading.Event()

    def run() -> None:
        # Ends with the server: the pipe breaks, or an answer does not come. A child that was killed (git, say) may make
        # it refuse.
        while session.client.process.poll() is None:
            with contextlib.suppress(OSError, ValueError, TimeoutError, LspError):
                work()
                answered.set()

    threading.Thread(target=run, daemon=True).start()
    if rng.random() < 0.7:
        assert answered.wait(PATIENCE_S), session.client.errors
    time.sleep(rng.uniform(0.0, seconds))
    server = psutil.Process(session.client.process.pid)
    children = server.children(recursive=True)
    if children and rng.random() < 0.3:
        with contextlib.suppress(psutil.NoSuchProcess):
            rng.choice(children).send_signal(signal.SIGKILL)
        time.sleep(rng.uniform(0.0, 0.2))
    session.client.kill()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == [], "children outlived their server by 10 s"
    assert b"Traceback" not in session.client.errors, session.client.errors.decode()


def rounds(length: Length, one: Callable[[int, random.Random], None]) -> None:
    seed = length.seed
    for number in range(length.rounds):
        try:
            one(number, random.Random(seed * 1_000_003 + number))
        except Exception as error:
            raise AssertionError(f"seed {seed}, round {number}") from error


@lengths(1, share=KINDS)
def test_killed_while_indexing(length: Length, tmp_path: Path) -> None:
    """The next server finishes the index: all files are in it and the code is found."""
    n_files = 400
    files = {f"pkg{n % 20}/m{n}.py": f"def function_{n}(a):\n    return a + {n}\n" * 8 for n in range(n_files)}
    house = House(tmp_path, files)

    def one(number: int, rng: random.Random) -> None:
        changed = rng.sample(sorted(files), 40)
        house.repo.write({name: f"def again_{number}(a):\n    return a\n" + files[name] for name in changed})
        session = house.start(index=True)
        kill_amid(session, lambda: session.call("status"), rng, 0.8)
        if number % 10 == 9 or number == length.rounds - 1:
            session = house.start(index=True)
            status = session.until(lambda: (found := session.call("status"))["ready"] and found, PATIENCE_S)
            assert (status["files"], status["nSkipped"]) == (n_files + 1, 0)
            name = f"again_{number}"
            found = session.until(lambda: session.call("search", query=name)["hits"], PATIENCE_S)
            assert found[0]["name"] == name
            session.stop()
            house.nothing_was_set_aside()

    rounds(length, one)


@lengths(1, share=KINDS)
def test_killed_while_recording(length: Length, tmp_path: Path) -> None:
    """Every decision whose recording was answered is there with its text, and the audit chain is whole."""
    house = House(tmp_path, {})
    answered: dict[str, str] = {}

    def one(number: int, rng: random.Random) -> None:
        session = house.start(index=False)

        def record() -> None:
            title = f"Rule {number}.{len(answered)}"
            answered[session.record("gov.py", title=title)] = title

        kill_amid(session, record, rng, 0.4)
        if number % 5 == 4 or number == length.rounds - 1:
            session = house.start(index=False)
            listed: dict[str, str] = {}
            cursor = None
            while True:
                page = session.call("decisions.list", limit=1_000, cursor=cursor)
                listed |= {row["id"]: row["title"] for row in page["decisions"]}
                cursor = page["cursor"]
                if cursor is None:
                    break
            known = dict(answered)
            assert {identity: listed.get(identity) for identity in known} == known
            verdict = session.call("audit.verify")
            assert verdict["valid"], verdict
            session.stop()
            house.nothing_was_set_aside()

    rounds(length, one)
    assert answered or length.rounds < 5, "no server got as far as one decision"


@lengths(0, share=KINDS)
def test_killed_while_scanning(length: Length, tmp_path: Path) -> None:
    """Whenever the look at the commits is cut off, the next one gives the verdicts of one that was not."""
    names = [f"src/m{n}.py" for n in range(12)]
    house = House(tmp_path, dict.fromkeys(names, GOV))
    session = house.start(index=False)
    ids = {name: session.record(name, title=name) for name in names}
    session.stop()
    stale: set[str] = set()

    def one(number: int, rng: random.Random) -> None:
        for n in range(5):
            # A comment keeps a symbol's code the same, not a file's.
            name = rng.choice(names)
            house.repo.commit(f"change {n}", {name: GOV + f"\nX = {number}.{n}\n"})
            stale.add(name)
        session = house.start(index=False)
        kill_amid(session, session.scan, rng, 0.2)
        if number % 5 == 4 or number == length.rounds - 1:
            session = house.start(index=False)
            session.scan()
            rows = session.call("decisions.list", limit=100)["decisions"]
            assert {row["id"] for row in rows if row["status"] == "stale"} == {ids[name] for name in stale}
            assert len(rows) == len(ids)
            restored = session.call("decisions.restore", ids=[ids[name] for name in sorted(stale)])
            assert {row["status"] for row in restored["decisions"]} == {"active"}
            stale.clear()
            session.stop()
            house.nothing_was_set_aside()

    rounds(length, one)


@lengths(0, share=KINDS)
def test_killed_while_learning(length: Length, tmp_path: Path) -> None:
    """At most the batch under way is lost: what was answered is counted, and counts never go back."""
    house = House(tmp_path, {"b.py": "def second():\n    pass\n", "c.py": "def third():\n    pass\n"})
    session = house.start(index=True)
    session.until(lambda: session.call("status")["ready"], PATIENCE_S)
    session.stop()
    answered = {"learned": 0, "waiting": 0}

    def counted() -> int:
        session = house.start(index=True)
        rows = session.call("synapses.inspect", limit=100)["pairs"]
        session.stop()
        return sum(row["count"] for row in rows if {row["a"], row["b"]} == {"gov.py::governed", "b.py::second"})

    def one(number: int, rng: random.Random) -> None:
        session = house.start(index=True)

        def use() -> None:
            result = session.call("feedback", id="gov.py::governed", useful=True, context=["b.py::second"])
            # While the index is being read, what is handed in waits for it, and the answer says so.
            answered["learned" if result["edges"] else "waiting"] += 1

        kill_amid(session, use, rng, 0.8)
        if number % 5 == 4 or number == length.rounds - 1:
            learned, waiting = answered["learned"], answered["waiting"]
            # One more a round may have been written whose answer did not come through.
            assert learned <= counted() <= learned + waiting + number + 1
            house.nothing_was_set_aside()

    rounds(length, one)
