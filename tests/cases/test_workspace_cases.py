"""Cases I07 and I11 to I18: what the index knows of a folder over time, and folders of unusual kinds."""

from __future__ import annotations

import codecs
import time
from pathlib import Path

import psutil
import pytest
from case_bench import Bench, changed
from clocked_server import MovedClock
from decision_session import GOV, Repo, Session
from lsp_harness import REAL, LspError
from typist import Typist, module, until_quiet, until_ready
from unprivileged import needs_setpriv, unprivileged

INDEX = {"index": {"enabled": True}}


def hits(s: Session, query: str, **fields: object) -> list[str]:
    return [hit["id"] for hit in s.call("search", query=query, **fields)["hits"]]


def test_i07_a_decision_on_a_file_with_a_mark(bench: Bench) -> None:
    """I07: the mark belongs to the bytes that are compared, and shifts neither symbol nor hover."""
    repo = bench.repo()
    repo.write({"marked.py": codecs.BOM_UTF8 + GOV.encode()})
    repo.commit("with a mark")
    uri = repo.uri("marked.py")
    with bench.session(repo.path) as s:
        identity = s.record("marked.py::governed")
        # The editor shows no mark and saves it again.
        s.open(uri, GOV)
        assert f"**Values are doubled** · `{identity}`" in s.hover_text(uri, 5, 0)
        repo.commit("touched", {"other.py": "x = 2\n"})
        s.scan()
        assert s.marks(uri) == []
        repo.write({"marked.py": codecs.BOM_UTF8 + changed(3).encode()})
        repo.commit("changed")
        s.scan()
        mark = s.until_stale(uri, identity)
        assert mark["range"]["start"] == {"line": 5, "character": 4}


def test_i11_what_happened_while_nothing_ran(repo: Repo, bench: Bench) -> None:
    """I11: commits made between two sessions are seen at the start, with nothing opened and no nudge."""
    with bench.session(repo.path, settings=INDEX) as s:
        identity = s.record("gov.py")
        until_ready(s)
        assert hits(s, "x", path="other.py")
    repo.commit("changed", {"gov.py": changed(3)})
    repo.git("rm", "-q", "other.py")
    repo.commit("removed")
    with bench.session(repo.path, settings=INDEX) as s:
        s.until_stale(repo.uri("gov.py"), identity)
        status = until_ready(s)
        assert status["head"] == repo.git("rev-parse", "HEAD")
        assert hits(s, "x", path="other.py") == []
        assert "other.py" not in s.call("query", query="what is x")["text"]


def test_i13_answers_are_of_what_is_there(bench: Bench) -> None:
    """I13: a file deleted on the disk is never cited, not even before the index knows; a rewritten one is found as it
    is now; the text of the screen wins over the disk."""
    repo = bench.repo(files={f"{name}.py": module(name) for name in ("alpha", "bravo", "charlie")})
    bench.leaves(repo.path, " D bravo.py", " M charlie.py")
    with bench.session(repo.path, settings=INDEX) as s:
        until_ready(s)
        s.open(repo.uri("alpha.py"), module("alpha"))
        s.change(repo.uri("alpha.py"), module("marmalade"), 2)
        (repo.path / "bravo.py").unlink()
        repo.write({"charlie.py": module("gooseberry")})
        deadline = time.monotonic() + 15
        while True:
            answer = s.call("search", query="order", limit=20)
            found = {hit["id"] for hit in answer["hits"] if "::" in hit["id"]}
            if found == {"alpha.py::marmalade", "charlie.py::gooseberry"}:
                break
            assert time.monotonic() < deadline, found
            assert "bravo.py::bravo" not in found
            time.sleep(0.02)
        assert hits(s, "bravo") == []
        until_ready(s)
        assert s.call("search", query="order")["partial"] == ["model"]


@pytest.mark.parametrize(
    "n_files", [300, pytest.param(300_001, marks=pytest.mark.slow)], ids=["a small limit", "the built-in limit"]
)
def test_i14_a_folder_without_end_is_read_up_to_a_limit(bench: Bench, n_files: int) -> None:
    """I14: the walk of a folder without a repository ends at a limit, says so once with the settings that help, and
    what was read answers."""
    root = bench.folder / "home"
    for n in range(n_files):
        folder = root / f"d{n // 1_000}"
        if n % 1_000 == 0:
            folder.mkdir(parents=True)
        (folder / f"f{n}.py").write_text(module(f"f{n}") if n < 500 else "")
    limit = {"maxFiles": 100} if n_files < 1_000 else {"maxFiles": 2_000_000, "excludes": ["d1*/", "d2*/"]}
    with bench.session(root, settings={"index": {"enabled": True, **limit}}) as s:
        began = time.monotonic()
        assert s.hover((root / "d0" / "f0.py").as_uri()) is None
        assert time.monotonic() - began < 5
        status = until_ready(s, 120)
        told = [text for text in s.messages() if "Not everything is indexed" in text]
        assert len(told) == 1
        assert "index.excludes" in told[0]
        assert status["files"] <= 100 or n_files > 1_000
        assert hits(s, "order")


def test_i14_the_whole_disk(bench: Bench) -> None:
    """I14: the root of the file system as the folder, which is no workspace and is said once; a file that is opened
    without any folder."""
    with bench.session(Path("/"), settings={"index": {"enabled": True, "maxFiles": 50}}) as s:
        with pytest.raises(LspError, match="/ is the whole disk"):
            s.call("status")
        s.until(lambda: [text for text in s.messages() if "/ is the whole disk" in text])
        assert len(s.messages()) == 1
    client = bench.client(REAL)
    client.start(None)
    lonely = bench.folder / "lonely.py"
    lonely.write_text(GOV)
    item = {"uri": lonely.as_uri(), "languageId": "python", "version": 1, "text": GOV}
    client.notify("textDocument/didOpen", {"textDocument": item})
    where = {"textDocument": {"uri": lonely.as_uri()}, "position": {"line": 5, "character": 5}}
    assert client.request("textDocument/hover", where) is None
    assert client.stop() == 0


@pytest.mark.skipif(needs_setpriv(), reason="setpriv is needed to take root's rights away")
def test_i15_a_folder_that_cannot_be_written(repo: Repo, bench: Bench) -> None:
    """I15: the server starts, says once where memory is kept instead, and a whole session works."""
    folders = [repo.path, *(path for path in repo.path.rglob("*") if path.is_dir() and ".git" not in path.parts)]
    before = {path: path.stat().st_mode for path in folders}
    for path in folders:
        path.chmod(0o555)
    try:
        for n in range(2):
            with bench.session(repo.path, settings=INDEX, command=unprivileged(REAL)) as s:
                until_ready(s)
                if n == 0:
                    s.record("gov.py")
                s.open(repo.uri("gov.py"), GOV)
                s.until(lambda s=s: "Values are doubled" in s.hover_text(repo.uri("gov.py")))
                assert hits(s, "governed")[0] == "gov.py::governed"
                [told] = s.until(s.messages)
                assert bench.env["XDG_STATE_HOME"] in told
    finally:
        for path, mode in before.items():
            path.chmod(mode)
    assert not (repo.path / ".neuralmind").exists()


@pytest.mark.slow
def test_i16_the_own_folder_is_seen_by_nobody(bench: Bench) -> None:
    """I16: after twenty batches and a decision git reports nothing, the user's ignore file is as it was, and neither
    idling nor events of our own files index anything anew."""
    repo = bench.repo(files={**{f"{name}.py": module(name) for name in ("a", "b")}, ".gitignore": "*.log\n"})
    clock = MovedClock(bench.folder / "clock")
    with bench.session(repo.path, settings=INDEX, command=clock.command) as s:
        work = Typist(s, clock, repo)
        work.ready()
        work.open("a", "b")
        for _ in range(20):
            work.batch("a", "b")
        s.record("a.py")
        s.until(lambda: (repo.path / ".neuralmind/SYNAPSE_MEMORY.md").exists())
        assert repo.git("status", "--porcelain") == ""
        assert (repo.path / ".gitignore").read_text() == "*.log\n"
        revision = until_quiet(s)
        own = [path for path in (repo.path / ".neuralmind").rglob("*") if path.is_file()]
        assert len(own) >= 4
        events = [{"uri": path.as_uri(), "type": kind} for path in own for kind in (1, 2)]
        s.client.notify("workspace/didChangeWatchedFiles", {"changes": events})
        child = psutil.Process(s.client.process.pid).children()[0]
        before = child.cpu_times()
        time.sleep(1.5)
        after = child.cpu_times()
        assert until_ready(s)["indexRevision"] == revision
        assert after.user + after.system - before.user - before.system < 0.5


@pytest.mark.slow
def test_i18_a_folder_that_becomes_a_repository(bench: Bench) -> None:
    """I18: without git a session works, decisions included (DESIGN, section 8, rule 9: a save plays the part of a
    commit); after `git init` and the first commit decisions follow the commits, without a restart."""
    root = bench.folder / "plain"
    root.mkdir()
    (root / "gov.py").write_text(GOV)
    gov = (root / "gov.py").as_uri()
    with bench.session(root, settings=INDEX) as s:
        until_ready(s)
        assert hits(s, "governed")[0] == "gov.py::governed"
        first = s.record("gov.py", title="Before git")
        s.open(gov, GOV)
        s.until(lambda: first in s.hover_text(gov))
        assert s.messages() == []
        repo = Repo(root, {})
        s.until(lambda: s.call("status")["head"] == repo.git("rev-parse", "HEAD"), 60)
        s.until(lambda: first in s.hover_text(gov))
        second = s.record("gov.py", title="After the first commit")
        assert s.marks(gov) == []
        repo.commit("changed", {"gov.py": changed(3)})
        s.scan()
        s.until(lambda: sorted(s.marks(gov)) == sorted([("decision-stale", first), ("decision-stale", second)]))
