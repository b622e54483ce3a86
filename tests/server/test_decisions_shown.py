"""The features of the protocol that show decisions, by a real server on a real repository."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from decision_session import GOV, Repo, Session, private_env, session

Open = Callable[..., AbstractContextManager[Session]]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture
def start(tmp_path: Path) -> Open:
    env = private_env(tmp_path / "home")
    return lambda *roots, **more: session(*roots, env=env, **more)


def changed(factor: int) -> str:
    return GOV.replace("* 2", f"* {factor}")


def document(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}}


def test_at_risk_comes_with_a_change_and_goes_with_its_undo(repo: Repo, start: Open) -> None:
    gov = repo.uri("gov.py")
    with start(repo.path, settings={"decisions": {"quietMs": 100}}) as s:
        identity = s.record("gov.py::governed")
        s.open(gov, GOV)
        s.change(gov, changed(3), 2)
        s.until(lambda: s.marks(gov) == [("decision-at-risk", identity)])
        (mark,) = s.shown[gov]
        assert mark["message"].startswith("Committing this will make “Values are doubled” stale.")
        assert (mark["severity"], mark["range"]["start"]["line"]) == (4, 5)
        assert s.publications(gov)[-1]["version"] == 2
        # The mark moves with its symbol, and only then is anything sent.
        s.change(gov, "\n" + changed(3), 3)
        s.until(lambda: s.shown[gov] and s.shown[gov][0]["range"]["start"]["line"] == 6)
        s.change(gov, GOV, 4)
        s.until_clean(gov)
        n_before = len(s.publications())
        # A comment is no change of a symbol.
        s.change(gov, GOV.replace("    return value * 2", "    # twice\n    return value * 2"), 5)
        s.change(gov, changed(3), 6)
        s.until(lambda: s.marks(gov) == [("decision-at-risk", identity)])
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        mark = s.until_stale(gov, identity)
        assert len(s.publications()) - n_before <= 3
        # What changes on disk counts as well, wherever it is.
        repo.write({"other.py": "x = 2\n"})
        second = s.record("docs/a.md", "other.py", title="Two files")
        repo.write({"docs/a.md": "# B\n"})
        event = {"uri": repo.uri("docs/a.md"), "type": 2}
        s.client.notify("workspace/didChangeWatchedFiles", {"changes": [event]})
        s.until(lambda: s.marks(repo.uri("docs/a.md")) == [("decision-at-risk", second)])
        # Never beside a stale one.
        s.change(gov, changed(4), 7)
        s.scan()
        s.change(gov, changed(5), 8)
        s.hover(gov)
        assert s.marks(gov) == [("decision-stale", identity)]


def test_a_rebase_leaves_the_last_set(repo: Repo, start: Open) -> None:
    gov = repo.uri("gov.py")
    with start(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(gov, identity)
        repo.git("checkout", "-q", "-b", "side", "HEAD~1")
        s.scan()
        s.until_clean(gov)
        repo.commit("theirs", {"gov.py": changed(4)})
        s.scan()
        s.until_stale(gov, identity)
        shown, n_before = s.shown[gov], len(s.publications())
        with pytest.raises(Exception, match="returned non-zero"):
            repo.git("rebase", "-q", "main")
        s.scan()
        s.hover(gov)
        assert s.shown[gov] == shown
        repo.git("rebase", "--abort")
        s.scan()
        assert (s.shown[gov], len(s.publications())) == (shown, n_before)


def test_layout_and_acknowledged_and_lost(tmp_path: Path, start: Open) -> None:
    repo = Repo(tmp_path / "repo", {"a.py": GOV, "b.py": GOV, "c.py": GOV})
    a, b = repo.uri("a.py"), repo.uri("b.py")
    with start(repo.path, settings={"decisions": {"invalidated": "hint"}}) as s:
        layout, gone, old = s.record("a.py"), s.record("b.py", "c.py", title="Two files"), s.record("c.py", title="Old")
        repo.commit("reformat, remove", {"a.py": GOV.replace("\n\n\n", "\n\n\n# a comment\n", 1)})
        repo.git("rm", "-q", "c.py")
        repo.commit("remove c")
        s.scan()
        s.until(lambda: s.shown.get(a) and s.shown[a][0]["severity"] == 3)
        assert s.marks(a) == [("decision-stale", layout)]
        # What lost one file shows on the nearest that is left; what lost all is told once.
        assert s.until_stale(b, gone)["message"].startswith(
            "The decision “Two files” may no longer hold: c.py was removed by"
        )
        s.until(lambda: [text for text in s.messages() if old in text])
        s.execute(s.action(a, "Hide"))
        s.until_clean(a)
        assert s.action(a, "Restore")
        repo.commit("again", {"a.py": changed(3)})
        s.scan()
        s.until_stale(a, layout)
        s.call("decisions.invalidate", id=layout, reason="gone")
        s.until(lambda: s.marks(a) == [("decision-invalidated", layout)])
        assert len(s.messages()) == 1


def test_content_that_is_back(repo: Repo, start: Open) -> None:
    """A return to the seen bytes is said, and one act restores; with `revival: automatic` the bytes decide, live."""
    gov = repo.uri("gov.py")
    with start(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        repo.commit("back", {"gov.py": GOV})
        s.scan()
        assert "one restore suffices" in s.until_stale(gov, identity)["message"]
        assert s.action(gov, "Restore (the recorded content is back)")

        def configure(word: str) -> None:
            settings = {"index": {"enabled": False}, "decisions": {"revival": word}}
            s.client.notify("workspace/didChangeConfiguration", {"settings": {"nmLsp": settings}})

        configure("automatic")
        s.until_clean(gov)
        configure("manual")
        s.until_stale(gov, identity)
        s.execute(s.action(gov, "Restore (the recorded content is back)"))
        s.until_clean(gov)


def test_pull_is_offered_to_those_who_ask_and_instead(repo: Repo, start: Open) -> None:
    gov = repo.uri("gov.py")
    with start(repo.path, options={"diagnostics": "pull"}) as s:
        assert s.capabilities["diagnosticProvider"]["workspaceDiagnostics"]
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()

        def pull(previous: str | None = None) -> Any:
            return s.client.request("textDocument/diagnostic", {**document(gov), "previousResultId": previous})

        report = s.until(lambda: (answer := pull())["items"] and answer)
        assert [item["data"]["id"] for item in report["items"]] == [identity]
        assert pull(report["resultId"])["kind"] == "unchanged"
        (one,) = s.client.request("workspace/diagnostic", {"previousResultIds": []})["items"]
        assert (one["uri"], len(one["items"])) == (gov, 1)
        s.execute(s.action(gov, "Restore"))
        s.until(lambda: not pull()["items"])
        before = [{"uri": gov, "value": one["resultId"]}]
        (cleared,) = s.client.request("workspace/diagnostic", {"previousResultIds": before})["items"]
        assert (cleared["uri"], cleared["items"]) == (gov, [])
        assert s.publications() == []
    with start(repo.path) as s:
        assert "diagnosticProvider" not in s.capabilities


def test_ids_are_links_to_pages_that_follow_the_store(repo: Repo, start: Open, tmp_path: Path) -> None:
    other = repo.uri("other.py")
    with start(repo.path) as s:
        identity = s.record("gov.py")
        text = f"# é see {identity}, not nm-zzzzzzzz nor x-{identity}\nx = 1\n"
        s.open(other, text)
        (link,) = s.client.request("textDocument/documentLink", document(other))
        assert link["range"] == {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 19}}
        assert link["tooltip"] == "Values are doubled (active)"
        assert "target" not in link
        target = s.client.request("documentLink/resolve", link)["target"]
        page = Path(unquote(urlsplit(target).path))
        assert page.is_relative_to(tmp_path / "home")
        assert page.stat().st_mode & 0o077 == 0
        assert "Half was too little." in page.read_text()
        # Over the id, the decision itself.
        assert s.hover_text(other, 0, 10).startswith("**Values are doubled**")
        assert s.hover(other, 1) is None
        s.call("decisions.amend", id=identity, set={"rationale": "Quite another reason."})
        s.until(lambda: "Quite another reason." in page.read_text())
        assert "Half was too little." not in page.read_text().partition("## History")[0]
    assert not page.exists()


def test_lenses_symbols_and_deletions(repo: Repo, start: Open) -> None:
    gov = repo.uri("gov.py")
    with start(repo.path) as s:
        identity = s.record("gov.py::governed", title="Doubled values")
        s.record("gov.py", title="One module")
        s.open(gov, GOV)
        lenses = s.client.request("textDocument/codeLens", document(gov))
        titles = [(each["command"]["title"], each["range"]["start"]["line"]) for each in lenses]
        assert titles == [("2 decisions", 0), ("1 decision", 5)]
        assert s.client.request("textDocument/codeLens", document(repo.uri("other.py"))) == []
        (symbol,) = s.client.request("workspace/symbol", {"query": "VALUES doub"})
        assert (symbol["name"], symbol["location"]["uri"]) == ("Doubled values", gov)
        assert s.client.request("workspace/symbol", {"query": "tripled"}) == []
        # Opening a lens shows a page.
        shown = []
        s.client.answer = lambda _method, params: shown.append(params) or {"success": True}
        s.execute(lenses[0]["command"])
        s.until(lambda: shown)
        assert "One module" in Path(unquote(urlsplit(shown[0]["uri"]).path)).read_text()
        for path in ("gov.py", "docs"):
            answer = s.client.request("workspace/willDeleteFiles", {"files": [{"uri": repo.uri(path)}]})
            assert answer is None
        (message,) = s.messages()
        assert "What is being deleted 2 decisions govern" in message
        assert identity in message


def test_what_needs_a_word_is_asked_for(repo: Repo, start: Open) -> None:
    """Clients without prompts are asked with ready answers; whatever they answer late, twice or never is harmless."""
    gov = repo.uri("gov.py")
    asked: list[dict[str, Any]] = []
    choice: list[str | None] = [None]

    def answer(method: str, params: Any) -> Any:
        if method != "window/showMessageRequest":
            return {"success": False}
        asked.append(params)
        return {"title": choice[0]} if choice[0] else None

    with start(repo.path, answer=answer) as s:
        s.open(gov, GOV)
        command = s.action(gov, "Record a decision for governed", 7)
        s.execute(command)
        s.until(lambda: asked)
        titles = [action["title"] for action in asked[0]["actions"]]
        assert titles == ["Values are doubled", "Keep governed as it is"]
        choice[0] = titles[0]
        s.execute(command)
        (row,) = s.until(lambda: s.call("decisions.list")["decisions"])
        assert (row["title"], row["anchors"][0]["symbol"]) == ("Values are doubled", "governed")
        event = s.call("decisions.history", id=row["id"])["rows"][0]
        assert (event["face"], event["client"]) == ("lsp", "test-editor")
        command = s.action(gov, "Invalidate", 7)
        choice[0] = "The reason no longer applies"
        s.execute(command)
        s.until(lambda: s.call("decisions.list", status="invalidated")["decisions"])
        # The same act once more is refused, with a message.
        s.execute(command)
        s.until(lambda: [m for m in s.client.messages if m.get("method") == "window/showMessage"])
    with start(repo.path, options={"prompts": True}) as s:
        s.open(gov, GOV)
        fields = s.action(gov, "Record a decision for governed", 7)["arguments"][0]
        assert fields["files"] == ["gov.py::governed"]
        assert fields["title"] == {"prompt": {"message": "What was decided?", "value": "Values are doubled"}}
        identity = s.record("gov.py")
        fields = s.action(gov, "Invalidate")["arguments"][0]
        assert (fields["id"], fields["expect"]) == (identity, 1)
        assert "The reason no longer applies" in fields["reason"]["prompt"]["choices"]


def test_notifications_only_for_those_who_asked(repo: Repo, start: Open) -> None:
    with start(repo.path, options={"notifications": ["event"]}) as s:
        s.record("gov.py")
        event = s.client.wait_for(lambda message: message.get("method") == "neuralmind/event")
        assert event["params"] == {"kind": "decisionsChanged", "folder": repo.path.as_uri()}
    with start(repo.path) as s:
        s.record("other.py")
        s.scan()
        assert [m for m in s.client.messages if str(m.get("method", "")).startswith("neuralmind/")] == []


def test_several_spellings_and_encodings(tmp_path: Path, start: Open) -> None:
    repo = Repo(tmp_path / "repo", {"ünï/файл.py": "x = '😀'\n\n\nclass Größe:\n    pass\n"})
    name = "ünï/файл.py"
    spelled = repo.path.as_uri() + "/" + name
    capabilities = {"general": {"positionEncodings": ["utf-8"]}}
    with start(repo.path, capabilities=capabilities) as s:
        identity = s.record(f"{name}::Größe")
        repo.commit("change", {name: "x = '😀'\n\n\nclass Größe:\n    y = 1\n"})
        s.scan()
        mark = s.until_stale(repo.uri(name), identity)
        assert mark["range"] == {"start": {"line": 3, "character": 6}, "end": {"line": 3, "character": 13}}
        assert name in mark["message"]
        # Under the spelling the client opens it by, and under no other.
        s.open(spelled, (repo.path / name).read_text())
        s.until(lambda: s.marks(spelled) == [("decision-stale", identity)])
        assert s.shown[repo.uri(name)] == []
        s.close(spelled)
        s.until_stale(repo.uri(name), identity)
        assert s.shown[spelled] == []
        assert os.fspath(repo.path) not in mark["message"]
