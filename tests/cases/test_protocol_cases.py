"""Cases P01 to P08 and L05 to L08 against a real server with its real engine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from case_bench import Bench, alive, changed, integrity
from clocked_server import MovedClock
from decision_session import GOV, Repo
from lsp_harness import FULL, REAL, LspError, ProcessClient, Silence
from typist import Typist, module, until_ready

INDEX = {"index": {"enabled": True}}
HOVER = "textDocument/hover"


def many(n: int) -> dict[str, str]:
    return {f"m{n // 100}/f{n}.py": module(f"f{n}") * 10 for n in range(n)}


def progress(client: ProcessClient, kind: str) -> list[dict[str, Any]]:
    found = [m["params"] for m in list(client.messages) if m.get("method") == "$/progress"]
    return [each for each in found if each["value"]["kind"] == kind]


def test_p01_text_of_every_script_comes_back(repo: Repo, start: Any) -> None:
    """P01: a decision in emoji, CJK and combining marks comes back as it was by hover, diagnostics and query, through a
    reader that counts bytes; so does a source text with U+2028. In a decision that character is refused, as is
    every one that cannot be seen (DESIGN, section 10: bad input changes nothing)."""
    title, rationale = "Werte 😀 verdoppeln 漢字 e\u0301", "因为 half 😀 was e\u0301 too little."
    gov = repo.uri("gov.py")
    with start(repo.path, settings=INDEX, capabilities={}) as s:
        until_ready(s)
        with pytest.raises(LspError) as refusal:
            s.record("gov.py", title=title, rationale="one \u2028 two")
        assert "\\u2028" in refusal.value.message
        s.open(repo.uri("other.py"), 'def marmalade():\n    return "one \u2028 two 漢字"\n')
        text = s.until(lambda: s.call("search", query="marmalade one two")["hits"])[0]["text"]
        assert "one \u2028 two 漢字" in text
        identity = s.record("gov.py", title=title, rationale=rationale)
        [detail] = s.call("decisions.get", ids=[identity])["decisions"]
        assert (detail["title"], detail["rationale"]) == (title, rationale)
        s.open(gov, GOV)
        assert title in s.hover_text(gov)
        assert title in s.call("query", query="governed values")["text"]
        repo.commit("ändern 😀", {"gov.py": changed(3)})
        s.scan()
        mark = s.until_stale(gov, identity)
        assert title in mark["message"]
        assert "ändern 😀" in mark["message"]


@pytest.mark.parametrize(
    "params",
    [
        {"rootUri": None, "workspaceFolders": None},
        {"rootUri": None, "workspaceFolders": [], "processId": None},
        {"rootUri": None, "workspaceFolders": None, "rootPath": "ROOT"},
    ],
    ids=["no folder", "an empty list", "rootPath alone"],
)
def test_p03_sparse_clients(repo: Repo, bench: Bench, params: dict[str, Any]) -> None:
    """P03: whatever a client leaves out, the server starts, takes an empty change of folders, and answers."""
    given = {name: str(repo.path) if value == "ROOT" else value for name, value in params.items()}
    client = bench.client(REAL)
    client.start(repo.path, {}, None, **given)
    event = {"added": [], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    where = {"textDocument": {"uri": repo.uri("other.py")}, "position": {"line": 0, "character": 0}}
    assert client.request(HOVER, where) is None
    context = {"range": {"start": where["position"], "end": where["position"]}, "context": {"diagnostics": []}}
    actions = client.request("textDocument/codeAction", {"textDocument": where["textDocument"], **context})
    if "rootPath" in params:
        assert client.request("neuralmind/status", {})["folder"] == repo.path.as_uri()
    else:
        assert actions in (None, [])
        status = client.request("neuralmind/status", {})
        assert (status["files"], [problem["code"] for problem in status["problems"]]) == (0, ["no-folder"])
    assert client.stop() == 0
    assert client.errors == b""


def test_p04_what_was_cancelled_is_not_worked_off(bench: Bench) -> None:
    """P04: forty hovers cancelled while the index is built, and edits between them: each is answered once, the next one
    at once, and the text is right."""
    repo = bench.repo(files={**many(600), "gov.py": GOV})
    gov = repo.uri("gov.py")
    where = {"textDocument": {"uri": gov}, "position": {"line": 5, "character": 5}}
    with bench.session(repo.path, settings=INDEX) as s:
        s.open(gov, GOV)
        numbers = []
        for n in range(40):
            numbers.append(s.client.ask(HOVER, where))
            s.change(gov, module("marmalade", n), n + 2)
            s.client.notify("$/cancelRequest", {"id": numbers[-1]})
        began = time.monotonic()
        s.hover(gov, 5, 5)
        print(f"answered after {time.monotonic() - began:.3f} s")
        # The owner's half second, with room for a machine that is busy with something else.
        assert time.monotonic() - began < 4
        for number in numbers:
            s.client.wait_for(lambda m, number=number: m.get("id") == number and "method" not in m)
        answered = [m for m in s.client.messages if m.get("id") in numbers and "method" not in m]
        assert len(answered) == 40
        assert {m["error"]["code"] for m in answered if "error" in m} <= {-32800}
        until_ready(s)
        s.until(lambda: [h["id"] for h in s.call("search", query="marmalade")["hits"]] == ["gov.py::marmalade"])


@pytest.mark.parametrize("late", ["result", "error"])
def test_p05_answers_that_come_too_late(bench: Bench, late: str) -> None:
    """P05: the client answers our requests only after the folder they were about is gone: nothing breaks, and what
    begins to be shown ends."""
    repo = bench.repo(files=many(300))

    def answer(method: str, params: Any) -> Any:
        if method == "workspace/configuration":
            return [None]
        raise Silence

    client = bench.client(REAL)
    client.answer = answer
    client.start(repo.path, FULL)
    asked = client.wait_for(lambda m: m.get("method") == "window/workDoneProgress/create")
    client.wait_for(lambda m: m.get("method") == "client/registerCapability")
    event = {"added": [], "removed": [{"uri": repo.path.as_uri(), "name": "repo"}]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert client.request("neuralmind/status", {})["problems"][0]["code"] == "no-folder"
    asking = [m for m in client.messages if "id" in m and "method" in m]
    waiting = [m["id"] for m in asking if m["method"] != "workspace/configuration"]
    assert asked["id"] in waiting
    for number in waiting:
        end = {"result": None} if late == "result" else {"error": {"code": -32603, "message": "too late"}}
        client.send({"id": number, **end})
    event = {"added": [{"uri": repo.path.as_uri(), "name": "repo"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    deadline = time.monotonic() + 30
    while not (status := client.request("neuralmind/status", {}))["ready"] or not status["files"]:
        assert time.monotonic() < deadline, status
        time.sleep(0.05)
    assert client.stop() == 0
    assert client.errors == b""
    assert len(progress(client, "begin")) == len(progress(client, "end"))


@pytest.mark.parametrize("how", ["cancel", "folder", "failure"])
def test_p06_every_display_ends(bench: Bench, how: str) -> None:
    """P06: a build that is cancelled, whose folder is closed, or that fails ends its display, once, and says why."""
    repo = bench.repo(files=many(800))
    client = bench.client(REAL)
    client.start(repo.path, FULL)
    begun = client.wait_for(lambda m: m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "begin", 30)
    token = begun["params"]["token"]
    match how:
        case "cancel":
            client.notify("window/workDoneProgress/cancel", {"token": token})
        case "folder":
            event = {"added": [], "removed": [{"uri": repo.path.as_uri(), "name": "repo"}]}
            client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        case _:
            for folder in (Path(bench.env["XDG_CACHE_HOME"]) / "nm_lsp" / "index").iterdir():
                shutil.rmtree(folder, ignore_errors=True)
                folder.write_text("in the way")
    ended = client.wait_for(
        lambda m: (
            m.get("method") == "$/progress" and m["params"]["token"] == token and m["params"]["value"]["kind"] == "end"
        ),
        15,
    )
    said = ended["params"]["value"]["message"]
    words = {"cancel": ("Stopped", "Failed", "the index"), "folder": ("The folder",), "failure": ("Failed",)}
    assert said.startswith(words[how])
    assert client.stop() == 0
    assert len(progress(client, "begin")) == len(progress(client, "end"))
    assert b"Traceback" not in client.errors


IGNORED = "node_modules\n.venv\n"


def watches(process: psutil.Process) -> int:
    """How many directories a process and its children have watched by the system."""
    count = 0
    for each in (process, *process.children(recursive=True)):
        for info in Path(f"/proc/{each.pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                count += info.read_text().count("inotify wd:")
    return count


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
@pytest.mark.parametrize("n_folders", [500, pytest.param(30_000, marks=pytest.mark.slow)], ids=["some", "30,000"])
def test_p08_dependencies_are_not_watched(bench: Bench, n_folders: int) -> None:
    """P08: of a workspace full of installed packages only the folders with indexed files are watched, and the client is
    asked for source files alone."""
    repo = bench.repo(files={"src/gov.py": GOV, "src/deep/er/other.py": "x = 1\n", ".gitignore": IGNORED})
    for n in range(n_folders // 2):
        for name in ("node_modules", ".venv"):
            folder = repo.path / name / f"p{n % 100}" / f"q{n}"
            folder.mkdir(parents=True)
            (folder / "index.js").write_text("")
    with bench.session(repo.path, settings=INDEX, capabilities=FULL) as s:
        until_ready(s)
        asked = s.client.wait_for(lambda m: m.get("method") == "client/registerCapability")
        globs = [
            watcher["globPattern"]
            for registration in asked["params"]["registrations"]
            for watcher in registration["registerOptions"].get("watchers", ())
        ]
        assert globs
        assert not {"**", "**/*"} & set(globs)
        server = psutil.Process(s.client.process.pid)
        s.until(lambda: watches(server) >= 4)
        assert watches(server) < 20


def may_limit_watches() -> bool:
    shell = "echo 5 > /proc/sys/user/max_inotify_watches"
    run = subprocess.run(["unshare", "-U", "-r", "sh", "-c", shell], capture_output=True, check=False, timeout=10)
    return run.returncode == 0


@pytest.mark.skipif(
    shutil.which("unshare") is None or not may_limit_watches(), reason="needs a user name space to lower the limit"
)
def test_p08_where_the_limit_is_reached_folders_are_looked_at(bench: Bench) -> None:
    """P08: where the system gives no more watches one message says so, and the server works on."""
    repo = bench.repo(
        files={**{f"d{n}/f{n}.py": module(f"f{n}") for n in range(20)}, "gov.py": GOV, "other.py": "x = 1\n"}
    )
    shell = 'echo 5 > /proc/sys/user/max_inotify_watches; exec "$@"'
    with bench.session(repo.path, settings=INDEX, command=["unshare", "-U", "-r", "sh", "-c", shell, "sh", *REAL]) as s:
        until_ready(s)
        [told] = s.until(s.messages)
        assert "max_user_watches" in told
        repo.commit("changed", {"d7/f7.py": module("marmalade")})
        s.client.notify("textDocument/didSave", {"textDocument": {"uri": repo.uri("d7/f7.py")}})
        s.until(lambda: [h["id"] for h in s.call("search", query="marmalade")["hits"]] == ["d7/f7.py::marmalade"])
        alive(s, repo)
        assert len(s.messages()) == 1


@pytest.mark.slow
def test_l05_thirty_ends_amid_work(bench: Bench) -> None:
    """L05: while 20,000 files are indexed and batches are learned, shutdown is answered and the process ends at once,
    and the stores are whole each time."""
    names = ("a", "b", "c", "d")
    repo = bench.repo(files={**many(20_000), **{f"{name}.py": module(name) for name in names}})
    slowest = 0.0
    for n in range(30):
        clock = MovedClock(bench.folder / f"clock{n}")
        with bench.session(repo.path, settings=INDEX, command=clock.command) as s:
            work = Typist(s, clock, repo)
            s.call("status")
            work.open(*names)
            work.change(*names)
            s.record("a.py", title=f"Decision {n}")
            clock.advance(3)
            began = time.monotonic()
            s.client.request("shutdown")
            answered = time.monotonic() - began
            s.client.notify("exit")
            with contextlib.suppress(subprocess.TimeoutExpired):
                s.client.process.wait(0.5)
            if s.client.process.poll() is None:
                s.client.process.send_signal(signal.SIGTERM)
            s.client.wait(5)
            slowest = max(slowest, answered, time.monotonic() - began)
        assert integrity(repo.path / ".neuralmind/lsp/memory.db") == "ok"
        if n < 29:
            shutil.rmtree(Path(bench.env["XDG_CACHE_HOME"]) / "nm_lsp" / "index", ignore_errors=True)
    print(f"slowest end {slowest:.2f} s")
    assert slowest < 5
    with bench.session(repo.path) as s:
        assert len(s.call("decisions.list", limit=100)["decisions"]) == 30
        pairs = s.call("synapses.inspect", limit=100)["pairs"]
        # A batch is whole or absent.
        assert len({row["count"] for row in pairs}) <= 1
        assert len(pairs) in {0, 6}


@pytest.mark.parametrize("n_looks", [60, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_l07_helpers_do_not_pile_up(repo: Repo, start: Any, n_looks: int) -> None:
    """L07: over many looks that run git there are never more than a few children, and none is left defunct."""
    with start(repo.path, settings=INDEX) as s:
        until_ready(s)
        s.record("gov.py")
        server = psutil.Process(s.client.process.pid)
        most, zombies = 0, []
        for n in range(n_looks):
            s.scan()
            if n % 10 == 0:
                children = server.children(recursive=True)
                most = max(most, len(children))
                for child in children:
                    with contextlib.suppress(psutil.Error):
                        if child.status() == psutil.STATUS_ZOMBIE:
                            zombies.append(child)
        assert most <= 6
        time.sleep(1.0)
        assert not [child for child in zombies if child.is_running() and child.status() == psutil.STATUS_ZOMBIE]
        children = server.children(recursive=True)
    _, alive_yet = psutil.wait_procs(children, timeout=5)
    assert alive_yet == []


@pytest.mark.parametrize(
    "content",
    [
        None,
        "garbage \0",
        pytest.param("999999999\n", marks=pytest.mark.slow),
        pytest.param("", marks=pytest.mark.slow),
    ],
    ids=["a live process", "garbage", "a dead process", "empty"],
)
def test_l08_leftover_locks_mean_nothing(repo: Repo, bench: Bench, content: str | None) -> None:
    """L08: whatever a lock file of a dead session says, the next one is usable at once: a lock is one of the system."""
    with bench.session(repo.path, settings=INDEX) as s:
        until_ready(s)
        s.record("gov.py")
    text = f"{os.getpid()}\n" if content is None else content
    locks = [path for path in bench.folder.rglob("*") if path.is_file() and path.suffix in {".lock", ".pid"}]
    names = ("server.pid", "lsp.lock", "memory.db.lock", "synapses.db.lock")
    locks += [repo.path / ".neuralmind/lsp" / name for name in names]
    for path in locks:
        path.write_text(text)
    with bench.session(repo.path, settings=INDEX) as s:
        began = time.monotonic()
        assert until_ready(s, 20)["isIndexWriter"]
        s.record("gov.py", title="Afterwards")
        print(f"usable after {time.monotonic() - began:.2f} s")
