"""Cases K: what a decision says and said, who said it, and that nothing of it is lost on the way."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from case_bench import Bench, changed
from decision_session import GOV, Repo, Session
from lsp_harness import LspError

FIELDS: dict[str, Any] = {
    "title": "Values are doubled",
    "rationale": "Half was too little.\n\nSee `governed`.",
    "files": ["gov.py", "gov.py::governed", "docs/", "*.py"],
    "type": "architecture",
    "confidence": 0.75,
    "author": "Ada <ada@example.org>",
    "tags": ["maths", "house rules"],
    "alternatives": ["Trebling", "Leaving it\nas it is"],
    "evidence": ["https://example.org/1"],
}

WRONG = [
    ({"ratonale": "x"}, "ratonale: unknown field"),
    ({"files": "gov.py"}, "files: "),
    ({"files": []}, "files: a decision governs at least one"),
    ({"files": ["gov.py"] * 501}, "files: 501 anchors"),
    ({"files": ["nowhere.py"]}, "nowhere.py names nothing here"),
    ({"title": None}, "title: "),
    ({"title": 5}, "title: "),
    ({"confidence": "high"}, "confidence: "),
    ({"confidence": 1.5}, "confidence: "),
    ({"tags": ["a", 1]}, r"tags\[1\]: "),
    ({"dependsOn": ["nm-aaaaaaaa"]}, "There is no decision nm-aaaaaaaa"),
    ({"rationale": "x" * 20_001}, "rationale: "),
]


def test_k01_every_field_is_kept_or_refused(bench: Bench, repo: Repo) -> None:
    """K01: all fields come back as they were given, at once and from a fresh server; one that is unknown, wrong or
    missing is an error that names it and leaves no trace; 500 files are taken."""
    many = {f"many/f{number:03}.py": f"x = {number}\n" for number in range(500)}
    repo.commit("many", many)
    with bench.session(repo.path) as s:
        base = s.record("gov.py", title="Something to rest on")
        given = {**FIELDS, "dependsOn": [base]}
        recorded = s.call("decisions.record", **given)["decision"]
        for wrong, message in WRONG:
            with pytest.raises(LspError, match=message) as refusal:
                s.call("decisions.record", **{**given, **wrong})
            assert refusal.value.code == -32602 or wrong == {"files": ["nowhere.py"]}
        for name in ("title", "rationale", "files"):
            with pytest.raises(LspError, match=f"{name}: is missing"):
                s.call("decisions.record", **{key: value for key, value in given.items() if key != name})
        large = s.call("decisions.record", **{**FIELDS, "files": list(many)})["decision"]
        assert s.call("decisions.list")["total"] == 3
    with bench.session(repo.path) as s:
        fresh, whole = s.call("decisions.get", ids=[recorded["id"], large["id"]])["decisions"]
        for found in (recorded, fresh):
            for name in given.keys() - {"files"}:
                assert found[name] == given[name], name
            assert [_anchor(row) for row in found["anchors"]] == given["files"]
        assert [row["path"] for row in whole["anchors"]] == list(many)


def _anchor(row: dict[str, Any]) -> str:
    return f"{row['path']}::{row['symbol']}" if row["symbol"] else str(row["path"])


def test_k02_stale_is_one_word(bench: Bench, repo: Repo) -> None:
    """K02: a decision of 200 days ago is ACTIVE and aged, one whose file was changed is STALE, one that was taken back
    is INVALIDATED: list, search, hover and export call each by its name, and `stale` lists the STALE one alone."""
    repo.commit("third", {"third.py": "z = 1\n", **_old_decision(bench)})
    with bench.session(repo.path) as s:
        (old,) = s.call("decisions.import", source="docs/decisions")["imported"]
        stale, gone = s.record("gov.py", title="Round up"), s.record("third.py", title="Round to even")
        s.call("decisions.invalidate", id=gone, reason="Nobody rounds any more.")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        expected = {"active": [old], "stale": [stale], "invalidated": [gone], "unknown": [], "aged": [old]}
        for word, ids in expected.items():
            assert [row["id"] for row in s.call("decisions.list", status=word)["decisions"]] == ids, word
        words = {old: "active", stale: "stale", gone: "invalidated"}
        rows = s.call("decisions.list")["decisions"]
        assert {row["id"]: row["status"] for row in rows} == words
        found = s.call("decisions.search", query="round", status="all")["hits"]
        assert {hit["decision"]["id"]: hit["decision"]["status"] for hit in found} == words
        only = s.call("decisions.search", query="round", status="stale")["hits"]
        assert [hit["decision"]["id"] for hit in only] == [stale]
        for name, word in (("other.py", "ACTIVE"), ("gov.py", "STALE"), ("third.py", "INVALIDATED")):
            text = s.hover_text(repo.uri(name))
            assert [each for each in ("ACTIVE", "STALE", "INVALIDATED") if f"· {each}" in text] == [word]
        sections = s.call("decisions.export", status="all")["text"].split("\n## ")[1:]
        assert len(sections) == 3
        for section in sections:
            (identity,) = [each for each in words if each in section]
            assert f"**{words[identity]}**" in section or words[identity] == "active"
        views = {view["name"]: view["decisions"] for view in s.call("decisions.audit")["views"]}
        assert [row["id"] for row in views["stale"]] == [stale]
        assert [row["id"] for row in views["aged"]] == [old]


def _old_decision(bench: Bench) -> dict[str, str]:
    """The export of a decision that a colleague recorded 200 days ago in a clone: the same first commit."""
    theirs = bench.repo("theirs")
    with bench.session(theirs.path) as s:
        s.record("other.py", title="Round down")
        (name,) = s.call("decisions.export", dir="docs/decisions")["files"]
    path = theirs.path / name
    text = re.sub(r"\d{4}-\d\d-\d\d(?=T\d\d:)", f"{datetime.now(UTC) - timedelta(days=200):%Y-%m-%d}", path.read_text())
    path.unlink()
    return {name: text}


def test_k03_nothing_of_the_past_is_lost(bench: Bench, repo: Repo) -> None:
    """K03: every wording and every change of status with its time, commit, person and editor; where the store takes no
    event the act fails and nothing has changed; where the text copy of the audit takes no line, that is counted and
    said."""
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        s.call("decisions.amend", id=identity, set={"rationale": "First."})
        s.call("decisions.amend", id=identity, set={"rationale": "Second.", "tags": ["maths"]}, reason="plainer")
        head = repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        s.call("decisions.restore", ids=[identity], note="still so")
        s.call("decisions.invalidate", id=identity, reason="gone")
        with pytest.raises(LspError, match="is invalidated"):
            s.call("decisions.restore", ids=[identity])
        s.call("decisions.reinstate", id=identity, reason="it was not")
        rows = s.call("decisions.history", id=identity)["rows"]
        kinds = ["recorded", "amended", "amended", "stale", "restored", "invalidated", "reinstated"]
        assert [row["kind"] for row in rows] == kinds
        assert [row["before"].get("rationale") for row in rows[1:3]] == ["Half was too little.", "First."]
        assert [row["reason"] for row in rows] == [None, None, "plainer", None, "still so", "gone", "it was not"]
        for row in rows:
            assert row["time"]
            if row["kind"] != "stale":
                assert (row["actor"], row["face"], row["client"]) == ("Ada <ada@example.org>", "lsp", "test-editor")
        assert {row["commit"] for row in rows[3:]} == {head}
        folder = repo.path / ".neuralmind/lsp"
        _refuse_events(s, repo, identity)
        (folder / "audit.jsonl").rename(folder / "audit.kept")
        (folder / "audit.jsonl").mkdir()
        s.call("decisions.amend", id=identity, set={"title": "Values are doubled still"})
        report = s.call("audit.verify")
        assert (report["valid"], report["waiting"] > 0) == (False, True), report
        assert any("cannot be read" in text for text in report["problems"])
        assert "1 audit records are not in audit.jsonl yet" in str(s.call("status")["problems"])
        (folder / "audit.jsonl").rmdir()
        (folder / "audit.kept").rename(folder / "audit.jsonl")
        s.call("decisions.amend", id=identity, set={"title": "Values are doubled"})
        report = s.call("audit.verify")
        assert (report["valid"], report["waiting"], report["problems"]) == (True, 0, [])
        assert "audit" not in str(s.call("status")["problems"])


def _refuse_events(s: Session, repo: Repo, identity: str) -> None:
    """While the table of events takes no row, an act fails as a whole."""
    path = repo.path / ".neuralmind/lsp/memory.db"
    before = s.call("decisions.get", ids=[identity])

    def execute(statement: str) -> None:
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute(statement)

    execute("CREATE TRIGGER refused BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
    with pytest.raises(LspError):
        s.call("decisions.invalidate", id=identity, reason="never written")
    execute("DROP TRIGGER refused")
    assert s.call("decisions.get", ids=[identity]) == before
    assert "never written" not in str(s.call("decisions.history", id=identity))


def test_k04_decisions_do_not_fade(bench: Bench, repo: Repo) -> None:
    """K04: a hundred times forgetting what was learned changes no decision, nor its place in an answer."""
    with bench.session(repo.path, settings={"index": {"enabled": True}}) as s:
        s.until(lambda: s.client.request("neuralmind/status", {})["ready"], 60)
        for title, name in (("First", "gov.py::governed"), ("Second", "gov.py"), ("Third", "other.py")):
            s.record(name, title=title)

        def seen() -> tuple[Any, ...]:
            answer = s.call("query", query="governed value")
            found = s.call("decisions.search", query="first second third")["hits"]
            return s.call("decisions.list"), [row["id"] for row in answer["decisions"]], found

        before = seen()
        assert len(before[1]) >= 2
        for _ in range(100):
            s.call("synapses.decay")
        assert seen() == before


def test_k05_both_ends_of_a_replacement(bench: Bench, repo: Repo) -> None:
    """K05: the replaced decision names what replaced it and what holds now; no cycle; a file lists what is live; what
    replaces lies in the same repository, whichever of its folders is open."""
    gov = repo.uri("gov.py")
    other = bench.repo("other")
    with bench.session(repo.path, repo.path / "docs", other.path) as s:
        home = repo.path.as_uri()

        def record(folder: str, title: str, *files: str) -> str:
            fields = {"title": title, "rationale": "r", "files": list(files), "folder": folder}
            return str(s.call("decisions.record", **fields)["decision"]["id"])

        first, second, third = (record(home, f"Decision {word}", "gov.py") for word in ("one", "two", "three"))
        s.call("decisions.supersede", id=first, by=second, reason="better", folder=home)
        s.call("decisions.invalidate", id=second, reason="best", supersededBy=third, folder=home)
        for again in (first, second, third):
            with pytest.raises(LspError):
                s.call("decisions.supersede", id=third, by=again, reason="a cycle", folder=home)
        s.open(gov, GOV)
        text = s.until(lambda: s.hover_text(gov))
        assert f"Superseded by `{second}` “Decision two” (INVALIDATED); what holds now is `{third}`" in text
        assert text.index("Decision three") < text.index("**Decision one**")
        lens = s.client.request("textDocument/codeLens", {"textDocument": {"uri": gov}})
        assert [each["command"]["title"] for each in lens] == ["1 decision"]
        rows = s.call("decisions.list", path="gov.py", folder=home)["decisions"]
        assert [row["id"] for row in rows] == [third]
        rows = s.call("decisions.list", path="gov.py", status="invalidated", folder=home)["decisions"]
        assert {row["id"] for row in rows} == {first, second}
        # In another folder of the repository, and in another repository.
        inside = record((repo.path / "docs").as_uri(), "Decision four", "a.md")
        outside = record(other.path.as_uri(), "Decision five", "gov.py")
        with pytest.raises(LspError, match=outside):
            s.call("decisions.supersede", id=third, by=outside, reason="elsewhere", folder=home)
        s.call("decisions.supersede", id=third, by=inside, reason="moved", folder=home)
        detail = s.call("decisions.get", ids=[first], folder=home)["decisions"][0]
        assert (detail["supersededBy"], detail["liveEnd"]) == (second, inside)
        assert s.call("decisions.list", path="gov.py", folder=home)["decisions"] == []
