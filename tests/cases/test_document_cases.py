"""Cases S01 to S07 and U01 to U07 against a real server: documents, positions and their URIs.

What the server holds of a document is read from a decision recorded on it, which keeps the hash of the bytes seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from case_bench import Bench, alive, changed
from clocked_server import MovedClock
from decision_session import EDITOR, GOV, Repo, Session
from random_edits import WIDTHS, RandomEditor, span
from typist import Typist, module, until_quiet, until_ready

NAMES = ("s01", "s02", "s04", "u01", "u02", "mate")


class Desk:
    """One server for the cases that do not disturb each other."""

    def __init__(self, s: Session, work: Typist, repo: Repo) -> None:
        self.s = s
        self.work = work
        self.repo = repo

    def document(self, name: str, uri: str | None = None) -> str:
        return uri or self.repo.uri(name)

    def notify(self, method: str, uri: str, **fields: Any) -> None:
        self.s.client.notify(f"textDocument/{method}", {"textDocument": {"uri": uri}, **fields})

    def hits(self, query: str, **fields: Any) -> list[str]:
        return [hit["id"] for hit in self.s.call("search", query=query, **fields)["hits"]]

    def learned(self, name: str) -> set[str]:
        return set(self.work.goes_with(f"{name}.py::{name}"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    bench = Bench(tmp_path_factory.mktemp("desk"))
    repo = bench.repo(files={"gov.py": GOV, **{f"{name}.py": module(name) for name in NAMES}})
    clock = MovedClock(bench.folder / "clock")
    with bench.session(repo.path, settings={"index": {"enabled": True}}, command=clock.command) as s:
        work = Typist(s, clock, repo)
        work.ready()
        work.open("mate")
        yield Desk(s, work, repo)
        assert s.messages() == []
    bench.close()
    bench.check()


def screen_blob(s: Session, repo: Repo, name: str) -> str:
    """The blob id of the text that the server holds of an open document."""
    identity = s.record(name, title=f"{name} {time.monotonic_ns()}")
    database = repo.path / ".neuralmind/lsp/memory.db"
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        [(event,)] = connection.execute("SELECT event FROM events WHERE decision = ?", (identity,)).fetchall()
    [sighting] = json.loads(event)["after"]["confirmation"]["seen"]
    [(path, seen, _)] = sighting["files"]
    assert path == name
    return str(seen)


def blob(text: str) -> str:
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def test_s01_changes_of_unopened_documents(desk: Desk) -> None:
    """S01: full and incremental changes and a save before didOpen change nothing and teach nothing; after it everything
    works."""
    s, uri = desk.s, desk.repo.uri("s01.py")
    s.change(uri, module("never"), 2)
    edit = {"range": span((0, 0), (0, 3)), "text": "class"}
    desk.notify("didChange", uri, contentChanges=[edit])
    desk.notify("didSave", uri)
    desk.work.batch("mate")
    assert desk.learned("mate") == set()
    assert desk.hits("never") == []
    desk.work.open("s01")
    s.change(uri, module("s01", 2), 2)
    desk.work.batch("mate")
    s.until(lambda: desk.learned("mate") == {"s01.py::s01"})
    s.change(uri, module("marmalade"), 3)
    s.until(lambda: desk.hits("marmalade") == ["s01.py::marmalade"])
    s.close(uri)


@pytest.mark.slow
def test_s02_opened_and_closed_twice(desk: Desk) -> None:
    """S02: a second didOpen replaces the text, a second didClose is ignored, and marks are never doubled."""
    s, uri = desk.s, desk.repo.uri("s02.py")
    identity = s.record("s02.py", title="Twice")
    s.open(uri, module("s02"))
    s.open(uri, module("gooseberry"), 7)
    s.until(lambda: desk.hits("gooseberry") == ["s02.py::gooseberry"])
    assert s.until(lambda: s.marks(uri)) == [("decision-at-risk", identity)]
    s.close(uri)
    s.close(uri)
    assert s.hover(desk.repo.uri("mate.py")) is None
    assert identity in s.hover_text(uri)
    s.until(lambda: s.marks(uri) == [])
    s.open(uri, module("s02", 5))
    s.until(lambda: s.marks(uri) == [("decision-at-risk", identity)])
    assert max(len(each["diagnostics"]) for each in s.publications(uri)) == 1
    s.close(uri)
    s.until_clean(uri)


def test_s04_versions_out_of_step(desk: Desk) -> None:
    """S04: versions 5, 4, 5, null, 9: the text is the last that came, diagnostics carry a version that the client gave
    or none, and a document whose version went back goes with nothing."""
    s, uri = desk.s, desk.repo.uri("s04.py")
    identity = s.record("s04.py", title="In step")
    s.open(uri, module("s04"))
    for n, version in enumerate((5, 4, 5, None, 9)):
        document = {"uri": uri, "version": version}
        change = {"text": module("s04", 10 + n)}
        s.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        desk.notify("didSave", uri)
        s.until(lambda: s.marks(uri) == [("decision-at-risk", identity)])
    desk.work.batch("mate")
    assert screen_blob(s, desk.repo, "s04.py") == blob(module("s04", 14))
    assert s.publications(uri)[-1].get("version") in {5, 4, 9, None}
    assert "s04.py::s04" not in desk.learned("mate")
    s.close(uri)
    s.until_clean(uri)


SCHEMES = [
    "git:{root}/gov.py?ref", "vscode-vfs://github/a/gov.py", "output:tasks", "vscode-userdata:/settings.json",
    "zipfile://{root}/a.zip::gov.py", "{root}/gov.py",
]  # fmt: skip


def test_u01_unsaved_buffers(desk: Desk) -> None:
    """U01: an untitled buffer changed in turn with a file makes no path, no row, no mark, and goes with nothing."""
    s, uri = desk.s, "untitled:Untitled-1"
    s.open(uri, module("unsaved"))
    desk.work.open("u01")
    for n in range(20):
        s.change(uri, module("unsaved", n), n + 2)
        desk.work.change("u01")
    desk.work.close_batch()
    assert desk.learned("u01") == set()
    assert desk.hits("unsaved") == []
    assert s.hover(uri) is None
    assert s.actions(uri) == []
    s.close(uri)
    assert s.publications(uri) == []
    assert list(desk.repo.path.rglob("*ntitled*")) == []


def test_u02_other_schemes(desk: Desk) -> None:
    """U02: views of other programs are answered with nothing, bear no marks and feed no learning."""
    s = desk.s
    s.record("gov.py", title="On the file itself")
    desk.work.open("u02")
    for scheme in SCHEMES:
        uri = scheme.format(root=desk.repo.path)
        s.open(uri, changed(3))
        s.change(uri, changed(4), 2)
        assert s.hover(uri, 5, 5) is None
        assert s.actions(uri) == []
        assert not s.client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        desk.notify("didSave", uri)
        desk.work.change("u02")
        s.close(uri)
        assert s.publications(uri) == []
    desk.work.close_batch()
    assert desk.learned("u02") == set()
    assert s.publications(desk.repo.uri("gov.py")) == []


@pytest.mark.parametrize(
    "encoding", ["utf-16", *(pytest.param(unit, marks=pytest.mark.slow) for unit in ("utf-8", "utf-32"))]
)
def test_s03_s05_edits_and_positions_in_every_unit(bench: Bench, encoding: str) -> None:
    """S03, S05: after each fifty of 250 random edits, several to a message and around emoji, the server holds the text
    of the client; hovers and marks behind emoji are in the negotiated unit, and no column raises."""
    line = '/* 😀 é 𐐷 */ function ruled(a) { return "😀" + a } /* 😀 */\n'
    repo = bench.repo(files={"text.txt": "x\n", "rule.js": line})
    rule = repo.uri("rule.js")
    capabilities = {**EDITOR, "general": {"positionEncodings": [encoding]}}
    with bench.session(repo.path, capabilities=capabilities) as s:
        assert s.capabilities["positionEncoding"] == encoding
        editor = RandomEditor(encoding)
        uri = repo.uri("text.txt")
        s.open(uri, editor.text)
        for n in range(250):
            document = {"uri": uri, "version": n + 2}
            s.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": editor.message()})
            if n % 50 == 49:
                assert screen_blob(s, repo, "text.txt") == blob(editor.text)
        identity = s.record("rule.js::ruled", title="Ruled")
        s.open(rule, line)
        width = WIDTHS[encoding]
        start = width(line[: line.index("ruled")])
        for column in range(width(line) + 2):
            text = s.hover_text(rule, 0, column)
            assert identity in text
        found = s.hover(rule, 0, start)["range"]
        assert (found["start"]["character"], found["end"]["character"]) == (start, start + len("ruled"))
        repo.commit("change", {"rule.js": line.replace("+ a", "- a")})
        s.close(rule)
        s.scan()
        mark = s.until_stale(rule, identity)["range"]
        assert (mark["start"]["character"], mark["end"]["character"]) == (start, start + len("ruled"))


def test_s07_text_and_names_that_are_none(bench: Bench) -> None:
    """S07: half a surrogate in an edit and a byte that is no UTF-8 in a tracked name break neither frame nor answer;
    the odd name can be governed and is judged by its commits."""
    repo = bench.repo()
    odd = os.fsdecode(b"odd\xff.py")
    (repo.path / odd).write_text(GOV)
    repo.commit("an odd name")
    gov = repo.uri("gov.py")
    with bench.session(repo.path, settings={"index": {"enabled": True}}) as s:
        until_ready(s)
        s.open(gov, GOV)
        s.client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": gov, "version": 2},
                "contentChanges": [{"range": span((6, 7), (6, 7)), "text": "\ud83d"}],
            },
        )
        assert s.hover(gov) is None
        assert s.call("query", query="values are doubled")["text"]
        s.record("gov.py", title="On half a pair")
        status = s.call("status")
        names = {hit["path"] for hit in s.call("search", query="governed", limit=20)["hits"]}
        assert any(name.startswith("odd") for name in names | {row["path"] for row in status["skipped"]})
        identity = s.record(odd, title="On an odd name")
        (repo.path / odd).write_text(changed(3))
        repo.commit("changed")
        s.scan()
        [row] = s.call("decisions.list", status="stale")["decisions"]
        assert row["id"] == identity
        s.until(lambda: any(marks for uri, marks in s.shown.items() if uri != gov))
        alive(s, repo)


def test_u03_notebooks_and_their_cells(repo: Repo, bench: Bench) -> None:
    """U03: cells are ignored as a whole, whichever way the client tells of them; a decision on the notebook shows once,
    on the notebook."""
    cell = {"cell_type": "code", "source": ["x = 1\n"], "metadata": {}, "outputs": [], "execution_count": None}

    def notebook(n: int) -> str:
        return json.dumps({"cells": [cell] * n, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"

    repo.commit("notebook", {"a.ipynb": notebook(2)})
    uri = repo.uri("a.ipynb")
    cells = [f"vscode-notebook-cell:{repo.path}/a.ipynb#W{n}" for n in range(2)]
    with bench.session(repo.path, settings={"index": {"enabled": True}}) as s:
        until_ready(s)
        identity = s.record("a.ipynb")
        texts = [{"uri": one, "languageId": "python", "version": 1, "text": "x = 1\n"} for one in cells]
        described = {
            "uri": uri, "notebookType": "jupyter-notebook", "version": 1,
            "cells": [{"kind": 2, "document": one} for one in cells],
        }  # fmt: skip
        s.client.notify("notebookDocument/didOpen", {"notebookDocument": described, "cellTextDocuments": texts})
        for one in cells:
            s.open(one, "x = 1\n")
            s.change(one, "marmalade = 2\n", 2)
            assert s.hover(one) is None
            assert s.actions(one) == []
        assert s.call("search", query="marmalade")["hits"] == []
        repo.commit("changed", {"a.ipynb": notebook(3)})
        s.scan()
        s.until_stale(uri, identity)
        assert set(s.shown) == {uri}
        for one in cells:
            s.close(one)
        s.client.notify(
            "notebookDocument/didClose",
            {"notebookDocument": {"uri": uri}, "cellTextDocuments": [{"uri": one} for one in cells]},
        )
        assert s.messages() == []
        alive(s, repo)


def test_u04_one_file_under_several_spellings(bench: Bench) -> None:
    """U04: a folder and a file with every kind of odd character, opened, changed and closed under differing escapes,
    are one document, one row and one mark, under the spelling that the client opened it by."""
    repo = bench.repo("a b#%+&ü", {"x#é.py": module("odd"), "gov.py": GOV})
    raw = f"file://{bench.folder}"
    opened = f"{raw}/a b%23%25+&%C3%BC/x%23%C3%A9.py"
    spelt = (f"{raw}/a%20b%23%25%2b%26%c3%bc/x%23%c3%a9.py", f"file://localhost{bench.folder}/a b%23%25+&ü/x%23é.py")
    clock = MovedClock(bench.folder / "clock")
    with bench.session(repo.path, settings={"index": {"enabled": True}}, command=clock.command) as s:
        work = Typist(s, clock, repo)
        work.ready()
        identity = s.record("x#é.py")
        s.open(opened, module("odd"))
        s.open(repo.uri("gov.py"), GOV)
        s.change(spelt[0], module("odd", 2), 2)
        s.change(spelt[1], module("odd", 3), 3)
        s.change(repo.uri("gov.py"), changed(3), 2)
        work.close_batch()
        found = s.until(work.pairs)
        assert {count for _, count in found.values()} == {1}
        assert all("x#é.py::odd" in pair for pair in found)
        [hit] = s.call("search", query="odd", kinds=["function"])["hits"]
        assert (hit["id"], hit["uri"]) == ("x#é.py::odd", opened)
        assert screen_blob(s, repo, "x#é.py") == blob(module("odd", 3))
        for uri in (opened, *spelt):
            assert identity in s.hover_text(uri)
        s.until(lambda: s.shown.get(opened))
        assert {uri for uri, marks in s.shown.items() if marks} <= {opened, repo.uri("gov.py")}
        s.close(spelt[0])
        assert s.call("search", query="odd", kinds=["function"])["hits"][0]["uri"] != opened
        assert work.inspect()["learning"]


def test_u06_a_folder_behind_a_link(repo: Repo, bench: Bench) -> None:
    """U06: opened by a link, with documents under the link and under the target: one workspace, one store, one mark for
    each document that is open, and nothing is read again and again."""
    link = bench.folder / "link"
    link.symlink_to(repo.path, target_is_directory=True)
    real, linked = repo.uri("gov.py"), (link / "gov.py").as_uri()
    with bench.session(link, settings={"index": {"enabled": True}}) as s:
        until_ready(s)
        identity = s.record("gov.py")
        s.open(real, GOV)
        s.open(linked, GOV)
        assert identity in s.hover_text(real)
        assert identity in s.hover_text(linked)
        repo.commit("changed", {"gov.py": changed(3)})
        s.scan()
        s.until(lambda: any(s.marks(uri) for uri in (real, linked)))
        assert all(len(marks) <= 1 for marks in s.shown.values())
        assert set(s.shown) <= {real, linked}
        hits = s.call("search", query="governed", kinds=["function"])["hits"]
        assert [hit["id"] for hit in hits] == ["gov.py::governed"]
        until_quiet(s)
    assert [path.parent for path in bench.folder.rglob("memory.db")] == [repo.path / ".neuralmind/lsp"]


def test_u07_a_rename_of_case_alone(bench: Bench) -> None:
    """U07: `git mv Gov.py gov.py` with the old name open: the decision follows the file, the old name bears nothing and
    is found no more."""
    repo = bench.repo(files={"Gov.py": GOV, "other.py": "x = 1\n"})
    old, new = repo.uri("Gov.py"), repo.uri("gov.py")
    with bench.session(repo.path, settings={"index": {"enabled": True}}) as s:
        until_ready(s)
        identity = s.record("Gov.py")
        s.open(old, GOV)
        repo.git("mv", "Gov.py", "gov.py")
        repo.commit("another case")
        s.scan()
        s.close(old)
        s.open(new, GOV)
        s.until(lambda: identity in s.hover_text(new))
        [row] = s.call("decisions.list")["decisions"]
        assert (row["status"], row["anchors"][0]["movedTo"]) == ("active", "gov.py")
        s.until(lambda: {hit["path"] for hit in s.call("search", query="governed")["hits"]} == {"gov.py"})
        repo.commit("changed", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(new, identity)
        assert s.shown.get(old, []) == []
