"""What an editor is shown of decisions: reported failures of such displays, against a real server and repository."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from case_bench import Bench, also, changed
from decision_session import GOV, Repo, Session
from lsp_harness import LspError

Open = Callable[..., AbstractContextManager[Session]]


def test_d01_marks_go_with_their_reason(repo: Repo, start: Open) -> None:
    """D01: closing keeps the mark (policy: closed files show it), deleting, renaming, `git rm` and a restore elsewhere
    take it back from the old place.

    Fails if `server.features.diagnostics.Feed._send` publishes nothing for files that have left the plan.
    """
    gov, moved = repo.uri("gov.py"), repo.uri("moved.py")
    with start(repo.path) as s:
        identity = s.record("gov.py")
        s.open(gov, changed(3))
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(gov, identity)
        n_before = len(s.publications(gov))
        s.close(gov)
        s.scan()
        # Sent again for editors that drop the marks of what they close, and never as nothing.
        assert all(sent["diagnostics"] for sent in s.publications(gov)[n_before:])
        # Deleted on disk, without any event.
        (repo.path / "gov.py").unlink()
        s.until_clean(gov)
        repo.git("checkout", "-q", "--", "gov.py")
        s.until_stale(gov, identity)
        # Renamed by the editor: the mark follows at once.
        (repo.path / "gov.py").rename(repo.path / "moved.py")
        s.client.notify("workspace/didRenameFiles", {"files": [{"oldUri": gov, "newUri": moved}]})
        s.until_clean(gov)
        s.until_stale(moved, identity)
        (repo.path / "moved.py").rename(repo.path / "gov.py")
        s.client.notify("workspace/didRenameFiles", {"files": [{"oldUri": moved, "newUri": gov}]})
        s.until_clean(moved)
        s.until_stale(gov, identity)
        # Restored in another window.
        with start(repo.path) as other:
            other.call("decisions.restore", ids=[identity])
        s.until_clean(gov)
        repo.git("rm", "-q", "gov.py")
        repo.commit("remove")
        message = s.until(lambda: [text for text in s.messages() if identity in text])
        assert "removed all that a decision governs" in message[0]
        assert s.shown[gov] == []


def test_d03_a_restarted_server_shows_the_same_once(repo: Repo, start: Open) -> None:
    """D03: killed and started anew, the server shows the same marks, each once, before anything is indexed.

    Fails if `server.features.diagnostics.Feed._send` sends what was sent before.
    """
    gov = repo.uri("gov.py")
    names = ("gov.py", "other.py", "docs/a.md")
    with start(repo.path, settings={"index": {"enabled": True}}) as s:
        identity = s.record("gov.py::governed")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        before = s.until_stale(gov, identity)
        s.client.kill()
    with start(repo.path, settings={"index": {"enabled": True}}) as s:
        for name in names:
            s.open(repo.uri(name), (repo.path / name).read_text())
        started = time.monotonic()
        after = s.until_stale(gov, identity)
        print(f"shown {time.monotonic() - started:.2f} s after the restart, load {os.getloadavg()[0]:.1f}")
        assert after == before
        assert after["range"]["start"] == {"line": 5, "character": 4}
        # Whatever is looked at again is not sent again.
        s.close(repo.uri("other.py"))
        s.open(repo.uri("other.py"), "x = 1\n")
        for _ in range(3):
            s.scan()
            s.hover(gov)
        assert [len(each["diagnostics"]) for each in s.publications(gov)] == [1]


def test_d04_an_outdated_action_is_refused(repo: Repo, start: Open) -> None:
    """D04: an action that was offered before another commit, or before another server's act, is refused; done twice it
    does nothing the second time; a newer text on the screen is no hindrance; no action edits a text.

    Fails if `engine.decisions.acts.restore` does not compare `head`.
    """
    gov = repo.uri("gov.py")
    with start(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(gov, identity)
        seen = s.action(gov, "Restore")
        assert all("edit" not in each for each in s.actions(gov))
        # (a) another commit: never silently to the newer bytes.
        repo.commit("change again", {"gov.py": changed(4)})
        with pytest.raises(LspError) as refusal:
            s.execute(seen)
        assert refusal.value.code == -32803
        s.scan()
        s.until(lambda: s.shown[gov] and s.shown[gov][0]["data"]["head"] == repo.git("rev-parse", "HEAD"))
        fresh = s.action(gov, "Restore")
        # (c) the document moves on: still the same act.
        s.open(gov, changed(4))
        s.change(gov, changed(4), 2)
        s.execute(fresh)
        s.until_clean(gov)
        with pytest.raises(LspError):
            s.execute(fresh)
        assert s.call("decisions.get", ids=[identity])["decisions"][0]["confirmations"] == 2
        # (b) another server invalidates.
        repo.commit("once more", {"gov.py": changed(5)})
        s.scan()
        s.until(lambda: s.shown[gov])
        late = s.action(gov, "Restore")
        with start(repo.path) as other:
            other.call("decisions.invalidate", id=identity, reason="gone")
        with pytest.raises(LspError) as refusal:
            s.execute(late)
        assert refusal.value.code == -32803
        assert s.call("decisions.get", ids=[identity])["decisions"][0]["status"] == "invalidated"


HOSTILE = {
    "title": "[run](command:evil) <img src=x> ![p](http://e.org/p.png)",
    "rationale": "<script>alert(1)</script>\n[a](file:///etc/passwd) command:evil?1 https://e.org www.e.org a@e.org\n"
    "# heading\n- item\n1. one\n    code\n```\nfence\n```\n| a | b |\n&lt;b&gt;\n" + "x" * 15_000,
}


IMPORTED = (
    f"# 1. {HOSTILE['title']}\n\n## Status\n\nAccepted\n\n## Decision\n\ngov.py it is.\n{HOSTILE['rationale']}\n"
    + "<b>more</b> [a](command:b)\n" * 5_000
)
"""A record as a cloned repository may hold it."""


@pytest.mark.parametrize("origin", ["recorded", pytest.param("imported", marks=pytest.mark.slow)])
def test_d05_text_of_others_is_data(repo: Repo, start: Open, origin: str) -> None:
    """D05: links of any scheme, images, HTML and a megabyte of text, recorded here or brought by a clone: escaped and
    cut, plain for clients that show no Markdown; our extension trusts none of it.

    Fails if `server.features.markup._ALWAYS` lets brackets through.
    """
    gov = repo.uri("gov.py")
    factory = Path(__file__).parents[2] / "editors/vscode/src/clientFactory.ts"
    assert "markdown: { isTrusted: false, supportHtml: false }" in factory.read_text()
    with start(repo.path) as s:
        if origin == "recorded":
            s.record("gov.py", **HOSTILE)
        else:
            repo.commit("records", {"docs/adr/0001-evil.md": IMPORTED, "docs/adr/0002-huge.md": IMPORTED * 10})
            result = s.call("decisions.import", source="docs/adr")
            assert len(result["imported"]) == 1
            assert "0002-huge.md: has 1," in str(result["problems"])
            s.scan()
            s.until(lambda: s.hover(gov))
        s.open(gov, GOV)
        contents = s.hover(gov)["contents"]
        assert contents["kind"] == "markdown"
        text = contents["value"]
        assert len(text) <= 10_000
        for live in (r"\]\(", "!\\[", "<", "://", "command:", "file:", r"www\.e", "@", "\n#", "\n```", "\n    "):
            assert not re.search(rf"(?<!\\){live}", text), live
        assert r"\[run\](command\:evil)" in text
    with start(repo.path, capabilities={}) as s:
        s.open(gov, GOV)
        # Answered once the folder is open; a hover does not wait for that.
        s.call("status")
        contents = s.hover(gov)["contents"]
        assert contents["kind"] == "plaintext"
        assert HOSTILE["title"] in contents["value"]


@pytest.mark.parametrize("text", ["", "\n", "x"])
def test_d06_odd_titles_and_short_files(repo: Repo, start: Open, text: str) -> None:
    """D06: titles with control characters, of many characters or of none are refused by name; every message is one line
    and every range lies inside a file that has become shorter than what was recorded.

    Fails if `decisions.validation.checked_line` takes characters that cannot be shown.
    """
    gov = repo.uri("gov.py")
    with start(repo.path) as s:
        for title in ("a\nb", "a\0b", "a\u202eb", "x" * 10_000, "   ", ""):
            with pytest.raises(LspError) as refusal:
                s.call("decisions.record", title=title, rationale="r", files=["gov.py"])
            assert refusal.value.message.startswith("title:")
        ids = {s.record("gov.py::other", title="pipes | and `ticks` *"), s.record("gov.py")}
        repo.commit("change", {"gov.py": text})
        s.scan()
        s.until(lambda: len(s.marks(gov)) == 2)
        for each in s.shown[gov]:
            assert "\n" not in each["message"]
            assert each["range"]["start"] == {"line": 0, "character": 0}
            assert each["range"]["end"] == {"line": 0, "character": len(text.rstrip("\n"))}
        assert {each["data"]["id"] for each in s.shown[gov]} == ids
        assert [len(each["title"].splitlines()) for each in s.actions(gov)].count(1) == len(s.actions(gov))


@pytest.mark.parametrize(("n_decisions", "n_files", "cap"), [(30, 20, 15), also(300, 200, 150)])
def test_d07_a_formatter_is_no_shower_of_popups(bench: Bench, n_decisions: int, n_files: int, cap: int) -> None:
    """D07, G13: one commit formats every governed file: marks where they belong, one message, one restore.

    Fails if `server.features.planning.plan` has no cap.
    """
    files = {f"m{number:03}.py": f"def f_{number}(a):\n    return a + {number}\n" for number in range(n_files)}
    formatted = {name: text.replace("\n", "\n\n", 1) for name, text in files.items()}
    repo = bench.repo(files=files)
    opened = ["m005.py", "m016.py", "m019.py"]
    with bench.session(repo.path, settings={"decisions": {"maxFiles": cap}}) as s:
        for number in range(n_decisions):
            s.record(f"m{number % n_files:03}.py", title=f"Decision {number}")
        for name in opened:
            s.open(repo.uri(name), formatted[name])
        repo.commit("format", formatted)
        started = time.monotonic()
        s.scan()
        s.until(lambda: len([1 for shown in s.shown.values() if shown and shown[0]["severity"] == 3]) == cap)
        print(f"{cap} files shown after {time.monotonic() - started:.2f} s, load {os.getloadavg()[0]:.1f}")
        assert all(s.shown[repo.uri(name)] for name in opened)
        s.until(lambda: len(s.messages()) == 2)
        assert sorted(text[:13] for text in s.messages()) == [f"{n_decisions} decisions "[:13], "Decisions on "]
        assert f"In {n_decisions} of them only comments or layout changed" in "".join(s.messages())
        everything = s.action(repo.uri("m005.py"), f"Restore all {n_decisions}")
        assert len(s.execute(everything)["decisions"]) == n_decisions
        s.until(lambda: not any(s.shown.values()))
        assert len(s.messages()) == 2


def test_d08_loudness_is_live_and_a_restore_lasts(repo: Repo, start: Open) -> None:
    """D08: severities change while the server runs; what is not committed is never STALE; a restore clears the mark,
    and it stays clear after a rescan and a restart.

    Fails if `server.features.planning._loudness` does not look at the settings.
    """
    gov = repo.uri("gov.py")

    def configure(s: Session, **decisions: Any) -> None:
        settings = {"nmLsp": {"index": {"enabled": False}, "decisions": decisions}}
        s.client.notify("workspace/didChangeConfiguration", {"settings": settings})

    with start(repo.path) as s:
        identity = s.record("gov.py")
        # Uncommitted and untracked never raise STALE.
        repo.write({"gov.py": changed(3), "new.py": "y = 1\n"})
        s.open(gov, changed(3))
        s.until(lambda: s.marks(gov) == [("decision-at-risk", identity)])
        assert s.shown[gov][0]["severity"] == 4
        configure(s, atRisk="off")
        s.until_clean(gov)
        repo.commit("change")
        s.scan()
        assert s.until_stale(gov, identity)["severity"] == 2
        for word, number in (("information", 3), ("hint", 4), ("warning", 2)):
            configure(s, stale=word)
            s.until(lambda number=number: s.shown[gov] and s.shown[gov][0]["severity"] == number)
        configure(s, stale="off")
        s.until_clean(gov)
        configure(s, stale="loud")
        s.until(lambda: [text for text in s.messages() if "decisions.stale" in text])
        configure(s)
        s.until_stale(gov, identity)
        started = time.monotonic()
        s.execute(s.action(gov, "Restore"))
        s.until_clean(gov)
        assert time.monotonic() - started < 15
        n_before = len(s.publications(gov))
        s.scan()
        assert len(s.publications(gov)) == n_before
    with start(repo.path) as s:
        s.open(gov, changed(3))
        s.scan()
        assert "ACTIVE" in s.hover_text(gov)
        assert s.marks(gov) == []


def test_p07_no_event_of_the_client_is_needed(repo: Repo, start: Open) -> None:
    """P07: a client without watched files, edits and commits from a shell."""
    with start(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.until_stale(repo.uri("gov.py"), identity)


def test_p09_actions_in_the_form_the_client_takes(repo: Repo, start: Open) -> None:
    gov = repo.uri("gov.py")
    foreign = [{"range": _range(0), "message": "unused", "source": "linter", "code": "F401"}]
    with start(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        mark = s.until_stale(gov, identity)
        assert s.actions(gov, only=["source.organizeImports"]) == []
        for diagnostics in ([], foreign, [mark]):
            fixes = s.actions(gov, diagnostics=diagnostics, only=["quickfix"])
            words = [each["title"].split()[0].rstrip(":") for each in fixes]
            assert words == ["Show", "Restore", "Hide", "Amend", "Replace", "Invalidate"]
            assert all(each["kind"] == "quickfix" for each in fixes)
            assert all(each.get("diagnostics") == ([mark] if diagnostics == [mark] else None) for each in fixes)
        assert {each["kind"] for each in s.actions(gov, only=["refactor"])} == {"refactor"}
        assert s.actions(gov, 9, triggerKind=2) == []
        # The diagnostic may be asked about from anywhere.
        assert [each["title"] for each in s.actions(gov, 9, [mark], only=["quickfix"])] == [f["title"] for f in fixes]
    with start(repo.path, capabilities={}) as s:
        s.until_stale(gov, identity)
        commands = s.actions(gov, only=["quickfix"])
        assert [each["title"].split()[0].rstrip(":") for each in commands] == words
        assert all(set(each) == {"title", "command", "arguments"} for each in commands)


def test_i17_a_folder_below_the_root(tmp_path: Path, start: Open) -> None:
    repo = Repo(tmp_path / "repo", {"gov.py": GOV, "pkg/gov.py": GOV})
    gov = repo.uri("pkg/gov.py")
    with start(repo.path / "pkg") as s:
        identity = s.record("gov.py")
        repo.commit("above", {"gov.py": changed(3)})
        s.scan()
        s.open(gov, GOV)
        assert "ACTIVE" in s.hover_text(gov)
        assert s.publications() == []
        repo.commit("below", {"pkg/gov.py": changed(3)})
        s.scan()
        assert s.until_stale(gov, identity)["message"].startswith(
            "The decision “Values are doubled” may no longer hold: pkg/gov.py was changed"
        )
        assert set(s.shown) == {gov}


def test_i19_i20_folders_come_and_go(tmp_path: Path, start: Open) -> None:
    """I19: the marks of a removed folder go, those of others stay. I20: a file is shown by its nearest folder, once."""
    repos = [Repo(tmp_path / name) for name in ("a", "b")]
    with start(*(repo.path for repo in repos)) as s:
        ids = {}
        for repo in repos:
            folder = repo.path.as_uri()
            result = s.call("decisions.record", title="t", rationale="r", files=["gov.py"], folder=folder)
            ids[repo] = result["decision"]["id"]
            s.open(repo.uri("gov.py"), changed(3))
            repo.commit("change", {"gov.py": changed(3)})
            s.call("decisions.scan", folder=folder)
            s.until_stale(repo.uri("gov.py"), ids[repo])
        a, b = (repo.uri("gov.py") for repo in repos)
        n_of_b = len(s.publications(b))
        _change_folders(s, removed=[repos[0].path])
        s.until_clean(a, 2)
        _change_folders(s, added=[tmp_path / "c"])
        assert s.hover(a) is None
        assert "STALE" in s.hover_text(b)
        assert len(s.publications(b)) == n_of_b
        # The folder around and a folder inside it, taken away and given again in one event.
        nested = Repo(tmp_path / "n", {"pkg/gov.py": GOV})
        inner = nested.uri("pkg/gov.py")
        _change_folders(s, added=[nested.path, nested.path / "pkg"])
        folder = nested.path.as_uri()
        identity = s.call("decisions.record", title="t", rationale="r", files=["pkg/gov.py"], folder=folder)
        nested.commit("change", {"pkg/gov.py": changed(3)})
        s.call("decisions.scan", folder=folder)
        s.until_stale(inner, identity["decision"]["id"])
        s.open(inner, changed(3))
        both = [nested.path, nested.path / "pkg"]
        _change_folders(s, removed=both, added=[*both, Path(f"{both[1]}/")])
        s.until_stale(inner, identity["decision"]["id"])
        s.until(lambda: "STALE" in s.hover_text(inner))
        s.until_stale(inner, identity["decision"]["id"])


def test_i21_each_folder_by_its_own_decisions_and_settings(tmp_path: Path, start: Open) -> None:
    quiet, loud = (Repo(tmp_path / name, {"src/gov.py": GOV}) for name in ("quiet", "loud"))
    config = quiet.path / ".neuralmind/lsp/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[decisions]\nstale = "hint"\nhover = false\n')
    ids = {}
    with start(quiet.path, loud.path) as s:
        for repo in (quiet, loud):
            folder = repo.path.as_uri()
            title = f"Decision of {repo.path.name}"
            recorded = s.call("decisions.record", title=title, rationale="r", files=["src/gov.py"], folder=folder)
            ids[repo] = recorded["decision"]["id"]
            s.open(repo.uri("src/gov.py"), changed(3))
            repo.commit("change", {"src/gov.py": changed(3)})
            s.call("decisions.scan", folder=folder)
        for repo, severity in ((quiet, 4), (loud, 2)):
            uri = repo.uri("src/gov.py")
            # Until the commit is seen the mark may be that of a decision at risk.
            mark = s.until_stale(uri, ids[repo])
            assert mark["message"].startswith(f"The decision “Decision of {repo.path.name}” may no longer hold: ")
            assert mark["severity"] == severity
        assert s.hover(quiet.uri("src/gov.py")) is None
        assert "Decision of loud" in s.hover_text(loud.uri("src/gov.py"))
        assert "Decision of quiet" not in s.hover_text(loud.uri("src/gov.py"))


def _range(line: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}


def _change_folders(s: Session, removed: list[Path] | None = None, added: list[Path] | None = None) -> None:
    for path in added or ():
        path.mkdir(exist_ok=True)
    event = {
        name: [{"uri": path.as_uri(), "name": path.name} for path in paths or ()]
        for name, paths in (("added", added), ("removed", removed))
    }
    s.client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
