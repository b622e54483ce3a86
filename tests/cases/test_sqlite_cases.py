"""Cases Q01 to Q11: the stores under two servers, damage, kills, poor drives, old files and other programs' locks."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from case_bench import Bench, alive, changed, integrity
from clocked_server import MovedClock
from decision_session import GOV, Repo, Session
from lsp_harness import LspError
from typist import APART_S, Typist, module, until_ready

from nm_lsp.engine.decisions.searching import NO_FTS

HERE = Path(__file__).parent
STORE = Path(".neuralmind/lsp")
WITHOUT_FTS5 = [sys.executable, str(HERE / "server_without_fts5.py")]
OF_TOMORROW = [sys.executable, str(HERE / "server_of_tomorrow.py")]


def memory_db(repo: Repo) -> Path:
    return repo.path / STORE / "memory.db"


def decisions(s: Session) -> dict[str, str]:
    """Id → title of every decision."""
    found: dict[str, str] = {}
    cursor = None
    while True:
        page = s.call("decisions.list", limit=1_000, **({"cursor": cursor} if cursor else {}))
        found.update({row["id"]: row["title"] for row in page["decisions"]})
        cursor = page.get("cursor")
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("n_batches", "n_records"), [(12, 5), pytest.param(200, 50, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_q01_two_servers_share_the_stores(bench: Bench, n_batches: int, n_records: int) -> None:
    """Q01: two servers on one repository learn and record at once: no error, no answer waited for, every activation
    counted, every decision there.

    Fails if `Database.atomic` (storage/database.py) begins with `BEGIN` instead of `BEGIN IMMEDIATE`.
    """
    names = [f"m{n}" for n in range(6)]
    repo = bench.repo(files={**{f"{name}.py": module(name) for name in names}, "gov.py": GOV})
    clocks = [MovedClock(bench.folder / f"clock{n}") for n in range(2)]
    slowest = [0.0, 0.0]
    failures: list[BaseException] = []

    def use(place: int, s: Session) -> None:
        def timed(name: str, **fields: Any) -> None:
            began = time.monotonic()
            s.call(name, **fields)
            slowest[place] = max(slowest[place], time.monotonic() - began)

        try:
            work = Typist(s, clocks[place], repo, n_typists=2)
            work.ready()
            work.open(*names)
            for n in range(n_batches):
                work.batch(*names)
                if n * n_records // n_batches != (n + 1) * n_records // n_batches:
                    title = f"Decision {n} of {place}"
                    timed("decisions.record", title=title, rationale="So.", files=["gov.py"])
                timed("decisions.list")
        except BaseException as error:  # noqa: BLE001 (of a thread, shown by the test)
            failures.append(error)

    index = {"index": {"enabled": True}}
    with (
        bench.session(repo.path, settings=index, command=clocks[0].command) as first,
        bench.session(repo.path, settings=index, command=clocks[1].command) as second,
    ):
        threads = [threading.Thread(target=use, args=pair) for pair in enumerate((first, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert failures == []
        wanted = {(f"{a}.py::{a}", f"{b}.py::{b}") for a, b in itertools.combinations(names, 2)}
        for s, clock in zip((first, second), clocks, strict=True):
            work = Typist(s, clock, repo)
            s.until(lambda work=work: {n for _, n in work.pairs().values()} == {2 * n_batches}, 30)
            assert set(work.pairs()) == wanted
            assert len(decisions(s)) == 2 * n_records
            assert s.call("audit.verify")["valid"]
            assert s.messages() == []
        print(f"slowest answers {slowest} s")
        # The owner's second, with room for a machine that is busy with something else.
        assert max(slowest) < 4


def zeros(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(bytes(4096))


def half(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("this is no database\n" * 100)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "kept").write_text("x")


SLOW = pytest.mark.slow


@pytest.mark.parametrize("damage", [zeros, folder, *(pytest.param(one, marks=SLOW) for one in (half, emptied, text))])
def test_q03_a_damaged_store_is_kept_and_told(repo: Repo, bench: Bench, damage: Callable[[Path], None]) -> None:
    """Q03: the server starts, keeps the damaged file under another name and says so, with its path; decisions are not
    begun anew behind anybody's back, and one command brings them back. The index is made again by itself.

    Fails if `open_or_report_loss` (storage/recovery.py) begins anew instead of raising `StoreLost`.
    """
    path = memory_db(repo)
    index = {"index": {"enabled": damage is zeros}}
    with bench.session(repo.path, settings=index) as s:
        kept = {s.record("gov.py", title=f"Decision {n}", rationale="r" * 3_000): f"Decision {n}" for n in range(10)}
        if damage is zeros:
            until_ready(s)
    damage(path)
    bytes_before = path.read_bytes() if path.is_file() else None
    for segment in (Path(bench.env["XDG_CACHE_HOME"])).rglob("*"):
        if segment.is_file() and segment.suffix not in {".lock", ".json"}:
            segment.write_bytes(b"damaged")
    with bench.session(repo.path, settings=index) as s:
        told = s.until(lambda: [text for text in s.messages() if "memory.db" in text])
        assert len(told) == 1
        assert str(path) in told[0]
        aside = [each for each in path.parent.iterdir() if each.name.startswith("memory.db.corrupt-")]
        assert [each.name for each in aside if not each.name.endswith(("-wal", "-shm"))] == [aside[0].name]
        assert aside[0].name in told[0]
        if bytes_before is None:
            assert (aside[0] / "kept").exists()
        else:
            assert aside[0].read_bytes() == bytes_before
        assert any("memory.db" in problem["message"] for problem in s.call("status")["problems"])
        with pytest.raises(LspError) as refusal:
            s.record("gov.py", title="Instead of the lost ones")
        assert "memory.db" in refusal.value.message
        alive(s, repo)
        if damage is zeros:
            until_ready(s)
            assert s.call("search", query="governed")["hits"][0]["id"] == "gov.py::governed"
        result = s.call("decisions.recover")
        assert result["decisions"] == 10
        assert decisions(s) == kept
        s.record("gov.py", title="After it")
    assert integrity(path) == "ok"


@pytest.mark.parametrize("n_rounds", [1, pytest.param(100, marks=pytest.mark.slow)], ids=["once", "a hundred times"])
def test_q04_kills_lose_nothing_that_was_acknowledged(bench: Bench, n_rounds: int) -> None:
    """Q04: killed at random moments amid batches and records, the stores are sound at each new start, every decision
    that was acknowledged is there, and of a batch all pairs or none.

    Fails if `Database._commit` (storage/database.py) leaves out the commit.
    """
    names = ("a", "b", "c", "d")
    repo = bench.repo(files={**{f"{name}.py": module(name) for name in names}, "gov.py": GOV})
    rng = random.Random(4)
    kept: set[str] = set()
    for n in range(n_rounds):
        clock = MovedClock(bench.folder / f"clock{n}")
        with bench.session(repo.path, settings={"index": {"enabled": True}}, command=clock.command) as s:
            work = Typist(s, clock, repo)
            work.ready()
            assert kept <= decisions(s).keys()
            counts = {count for _, count in work.pairs().values()}
            assert len(counts) <= 1
            assert len(work.pairs()) in {0, 6}
            assert s.messages() == []
            work.open(*names)
            killer = threading.Timer(rng.uniform(0.05, 1.0), s.client.process.kill)
            killer.start()
            # The server is gone amid a request: what was answered before counts.
            with contextlib.suppress(OSError, TimeoutError, AssertionError):
                for m in itertools.count():
                    work.change(*names)
                    clock.advance(APART_S)
                    number = s.client.ask(
                        "neuralmind/decisions.record",
                        {"title": f"Decision {n}.{m}", "rationale": "So.", "files": ["gov.py"]},
                    )
                    answer = s.client.wait_for(lambda message, number=number: message.get("id") == number, 2)
                    kept.add(answer["result"]["decision"]["id"])
            killer.join()
            s.client.wait()
        for name in ("memory.db", "synapses.db"):
            if (repo.path / STORE / name).exists():
                assert integrity(repo.path / STORE / name) == "ok"
    with bench.session(repo.path) as s:
        assert kept <= decisions(s).keys()
        assert s.call("audit.verify")["valid"]
    print(f"{len(kept):,} decisions acknowledged, all there")
    assert kept


def play(s: Session, repo: Repo) -> None:
    """A session as ever: record, a commit that makes it stale, restore, find it again."""
    gov = repo.uri("gov.py")
    identity = s.record("gov.py", title="Signed tokens")
    repo.commit("change", {"gov.py": changed(3)})
    s.scan()
    s.until_stale(gov, identity)
    s.call("decisions.restore", ids=[identity])
    s.until_clean(gov)
    assert s.call("decisions.search", query="signed")["hits"][0]["decision"]["id"] == identity
    assert s.call("audit.verify")["valid"]


def test_q05_where_wal_cannot_work_the_rollback_journal_does(repo: Repo, bench: Bench) -> None:
    """Q05: a folder in the place of the shared memory lets the pragma answer "wal" and only the first write fail: the
    stores use a rollback journal and a whole session works, without a word to the user.

    Fails if `_open` (storage/database.py) takes `wal` for true whatever it is given.
    """
    store = repo.path / STORE
    for name in ("memory.db", "synapses.db"):
        (store / f"{name}-shm").mkdir(parents=True)
    with bench.session(repo.path) as s:
        play(s, repo)
        assert s.messages() == []
    with bench.session(repo.path) as s:
        assert len(decisions(s)) == 1
    assert (store / "memory.db").read_bytes()[18:20] == b"\x01\x01"
    assert not (store / "memory.db-wal").exists()


NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A drive that knows no locks, mounted at NO_LOCKS_BELOW. */
static int is_there(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    const char *drive = getenv("NO_LOCKS_BELOW");
    return drive != NULL && strncmp(path, drive, strlen(drive)) == 0;
}

#define FCNTL(name) \\
    int name(int fd, int command, ...) { \\
        static int (*next)(int, int, ...); \\
        if (!next) next = dlsym(RTLD_NEXT, #name); \\
        va_list list; \\
        va_start(list, command); \\
        void *value = va_arg(list, void *); \\
        va_end(list); \\
        if ((command == F_SETLK || command == F_SETLKW) && is_there(fd)) { errno = ENOLCK; return -1; } \\
        return next(fd, command, value); \\
    }
FCNTL(fcntl)
FCNTL(fcntl64)

int flock(int fd, int operation) {
    static int (*next)(int, int);
    if (!next) next = dlsym(RTLD_NEXT, "flock");
    if (is_there(fd)) { errno = ENOLCK; return -1; }
    return next(fd, operation);
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler to make a drive without locks")
def test_q05_where_nothing_can_be_locked(repo: Repo, bench: Bench) -> None:
    """Q05: on a drive without locks the stores lie in the user's state folder, one message says so, and a whole session
    works; a second server finds what the first one wrote.

    Fails if `Keeper.folder_in_use` (engine/decisions/keeper.py) does not ask whether anything can be locked.
    """
    source, library = bench.folder / "nolocks.c", bench.folder / "nolocks.so"
    source.write_text(NO_LOCKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=60)
    env = {"LD_PRELOAD": str(library), "NO_LOCKS_BELOW": str(repo.path)}
    with bench.session(repo.path, env=env) as s:
        play(s, repo)
        [told] = s.until(s.messages)
        assert bench.env["XDG_STATE_HOME"] in told
        with bench.session(repo.path, env=env) as other:
            assert decisions(other) == decisions(s)
    assert not memory_db(repo).exists()


@pytest.mark.slow
def test_q07_an_older_file_is_migrated_with_a_backup(repo: Repo, bench: Bench) -> None:
    """Q07: two servers of a later release start at once on the file of this one: it is migrated once, after a backup,
    with every row; a server of this release then refuses the newer file and leaves it as it is.

    Fails if `migrate` (storage/migrations.py) does not run the migrations beyond the file's version.
    """
    path = memory_db(repo)
    with bench.session(repo.path) as s:
        kept = {s.record("gov.py", title=f"Decision {n}"): f"Decision {n}" for n in range(5)}
    backups = Path(bench.env["XDG_STATE_HOME"])
    with bench.session(repo.path, command=OF_TOMORROW) as s, bench.session(repo.path, command=OF_TOMORROW) as other:
        for each in (s, other):
            assert decisions(each) == kept
            assert each.call("audit.verify")["valid"]
            assert each.messages() == []
        kept[s.record("gov.py", title="After it")] = "After it"
        assert decisions(other) == kept
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert "tomorrow" in tables
    [backup] = backups.rglob("*-migration.db")
    assert integrity(backup) == "ok"
    before = path.read_bytes()
    with bench.session(repo.path) as s:
        told = s.until(lambda: [text for text in s.messages() if "format" in text])
        assert "Update nm-lsp" in told[0]
        with pytest.raises(LspError):
            s.record("gov.py", title="Into a newer file")
        alive(s, repo)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_q07_the_content_decides_not_the_marker(repo: Repo, bench: Bench) -> None:
    """Q07: a file whose marker is up to date although a column is missing is refused with the name of the column, and
    is left as it is; a file whose marker is behind its content is used.

    Fails if `version_by_content` (storage/migrations.py) returns the marker.
    """
    path = memory_db(repo)
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 0")
    with bench.session(repo.path) as s:
        assert list(decisions(s)) == [identity]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() != (0,)
        connection.execute("ALTER TABLE decisions DROP COLUMN rationale")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    with bench.session(repo.path) as s:
        told = s.until(lambda: [text for text in s.messages() if "decisions.rationale" in text])
        assert len(told) == 1
        with pytest.raises(LspError) as refusal:
            s.record("gov.py", title="Into an incomplete file")
        assert "decisions.rationale" in refusal.value.message
        alive(s, repo)
    assert path.read_bytes() == before


def found(s: Session, query: str) -> list[str]:
    return [hit["decision"]["title"] for hit in s.call("decisions.search", query=query, mode="keyword")["hits"]]


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.slow
def test_q09_without_fts5_words_are_still_found(repo: Repo, bench: Bench, fresh: bool) -> None:
    """Q09: a Python without FTS5 starts, searches plainly and says so with the answer; what is written meanwhile is
    found once FTS5 is back.

    Fails if `prepare` (storage/decision_search.py) does not take the missing module for what it is.
    """
    if not fresh:
        with bench.session(repo.path) as s:
            s.record("gov.py", title="Signed tokens")
    with bench.session(repo.path, command=WITHOUT_FTS5) as s:
        if fresh:
            s.record("gov.py", title="Signed tokens")
        s.record("gov.py", title="Keys are rotated")
        notices = s.call("decisions.search", query="TOKEN", mode="keyword")["notices"]
        assert NO_FTS in notices
        # Said once.
        assert s.call("decisions.search", query="TOKEN", mode="keyword")["notices"] == []
        assert found(s, "TOKEN") == ["Signed tokens"]
        assert found(s, "rotated") == ["Keys are rotated"]
        assert s.messages() == []
    with bench.session(repo.path) as s:
        assert found(s, "rotated") == ["Keys are rotated"]
        assert found(s, "tokens") == ["Signed tokens"]
        assert s.call("decisions.search", query="rotated", mode="keyword")["notices"] == []


@contextlib.contextmanager
def locked(repo: Repo) -> Iterator[None]:
    """Another program has begun to write to both stores, and does not end."""
    with contextlib.ExitStack() as stack:
        for name in ("memory.db", "synapses.db"):
            connection = sqlite3.connect(repo.path / STORE / name, isolation_level=None)
            stack.callback(connection.close)
            connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("hold_s", [0.0, pytest.param(40.0, marks=pytest.mark.slow)], ids=["a moment", "40 s"])
def test_q11_a_lock_of_another_program_holds_up_nothing(bench: Bench, hold_s: float) -> None:
    """Q11: while another program holds both stores, hovers and edits go on, batches wait and are learned afterwards, a
    record fails after the stated time with a clear message, and shutdown does not wait.

    Fails if `Database.reading` (storage/database.py) begins with `BEGIN IMMEDIATE`; the long one also if
    `Options.busy_ms` is a minute.
    """
    repo = bench.repo(files={**{f"{name}.py": module(name) for name in ("a", "b")}, "gov.py": GOV})
    clock = MovedClock(bench.folder / "clock")
    with bench.session(repo.path, settings={"index": {"enabled": True}}, command=clock.command) as s:
        work = Typist(s, clock, repo)
        work.ready()
        work.open("a", "b")
        identity = s.record("gov.py")
        work.batch("a", "b")
        s.until(work.pairs)
        with locked(repo):
            began = time.monotonic()
            for n in range(3):
                before = time.monotonic()
                work.change("a", "b")
                work.close_batch(n_waiting=n + 1)
                assert identity in s.hover_text(repo.uri("gov.py"))
                # The owner's half second, with room for a machine that is busy with something else.
                assert time.monotonic() - before < 3, n
            assert {count for _, count in work.pairs().values()} == {1}
            if hold_s:
                before = time.monotonic()
                with pytest.raises(LspError) as refusal:
                    s.record("gov.py", title="While it is locked")
                assert "locked" in refusal.value.message
                assert time.monotonic() - before < 10
                time.sleep(max(0.0, hold_s - (time.monotonic() - began)))
        s.until(lambda: {count for _, count in work.pairs().values()} == {4})
        assert list(decisions(s)) == [identity]
        s.record("gov.py", title="Afterwards")
        with locked(repo):
            work.change("a", "b")
            before = time.monotonic()
            assert s.client.stop() == 0
            assert time.monotonic() - before < 3
