"""The rules of staleness one by one, as tables over small repositories held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from nm_lsp.base.errors import GitUnavailable, InvalidInput, Refused
from nm_lsp.decisions.acts import confirmation, restorable
from nm_lsp.decisions.changes import EMPTY_FILES, Change, pair_renames
from nm_lsp.decisions.fold import DecisionRecord, FindingKey, Memory, Standing
from nm_lsp.decisions.globs import anchor_governs
from nm_lsp.decisions.model import Anchor, AnchorKind, Decision, DecisionId, SeenFile, Sighting, pack_text, parse_anchor
from nm_lsp.decisions.staleness import Judge, judge_saved, unknown_verdicts
from nm_lsp.decisions.steps import DoubtKind
from nm_lsp.decisions.symbols import SymbolReader
from nm_lsp.decisions.verdicts import Reason, Relation, Severity, Status, Verdict, aged, orphaned

ONE = DecisionId("nm-aaaaaaaa")
TWO = DecisionId("nm-bbbbbbbb")
THREE = DecisionId("nm-cccccccc")


def blob(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class FakeHistory:
    """A repository in memory. `broken` makes every question fail, `missing` holds objects that are not here."""

    def __init__(self) -> None:
        self.parents: dict[str, tuple[str, ...]] = {}
        self.trees: dict[str, dict[str, str]] = {}
        self.texts: dict[str, str] = {}
        self.missing: set[str] = set()
        self.broken = False
        self.n_compared = 0

    def commit(self, *parents: str, links: Sequence[str] = (), **files: str) -> str:
        """A commit whose whole tree is `files` (`a__b` spells `a/b`, a name without a dot ends in `.py`)."""
        name = blob(f"commit {len(self.parents)}")
        self.parents[name] = parents
        tree = {}
        for spelled, text in files.items():
            path = spelled.replace("__", "/")
            path = path if "." in path else path + ".py"
            self.texts[blob(text)] = text
            tree[path] = ("link:" if spelled in links else "") + blob(text)
        self.trees[name] = tree
        return name

    def _check(self) -> None:
        if self.broken:
            raise GitUnavailable("git refuses.", hint="Run: git something")

    def _history(self, tips: Iterable[str]) -> set[str]:
        found: set[str] = set()
        waiting = list(tips)
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += self.parents[here]
        return found

    def commits(self, tips: Iterable[str], known: Iterable[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        self._check()
        new = self._history(tips) - self._history(known)
        # Commits are made after their parents, so that the reverse order puts children first.
        return [(commit, self.parents[commit]) for commit in reversed(self.parents) if commit in new]

    def differences(self, pairs: Sequence[tuple[str | None, str]]) -> list[tuple[Change, ...]]:
        self._check()
        self.n_compared += len(pairs)
        result = []
        for older, newer in pairs:
            old, new = self.trees[older] if older else {}, self.trees[newer]
            paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
            result.append(tuple(Change(path, old.get(path), new.get(path)) for path in paths))
        return result

    def files(self, commit: str, under: str = "") -> dict[str, str]:
        self._check()
        return {path: content for path, content in self.trees[commit].items() if path.startswith(under)}

    def contents(self, commit: str, paths: Iterable[str]) -> dict[str, str]:
        return {path: content for path, content in self.files(commit).items() if path in set(paths)}

    def present(self, objects: Sequence[str]) -> set[str]:
        self._check()
        return {one for one in objects if one in self.parents and one not in self.missing}

    def blob(self, content: str) -> bytes | None:
        self._check()
        text = self.texts.get(content)
        return None if text is None or content in self.missing else text.encode()


class Words:
    """Code is words; `#` begins a comment; a symbol is the line that begins with its name."""

    def _words(self, text: bytes) -> list[list[bytes]]:
        return [words for line in text.splitlines() if (words := line.split(b"#")[0].split())]

    def same_file(self, path: str, seen: bytes, now: bytes) -> bool:
        return self._words(seen) == self._words(now)

    def symbol_text(self, path: str, name: str, text: bytes) -> bytes | None:
        return next((line for line in text.splitlines() if line.split()[:1] == [name.encode()]), None)

    def same_symbol(self, path: str, seen: bytes, now: bytes) -> bool:
        return self._words(seen) == self._words(now)


class Desk:
    """One person, one repository, and decisions by id."""

    def __init__(self, *, revival: bool = False) -> None:
        self.git = FakeHistory()
        self.judge = Judge(self.git, Words(), revival=revival)
        self.memory = Memory()

    def record(
        self,
        head: str | None,
        *anchors: str,
        id: DecisionId = ONE,  # noqa: A002
        seen: dict[str, str | None] | None = None,
        depends: Sequence[DecisionId] = (),
        again: bool = False,
    ) -> None:
        """Record at `head`; `seen` has texts that were not committed. `again` adds a confirmation instead."""
        parsed = [parse_anchor(one) for one in anchors]
        committed = self.git.trees[head] if head else {}
        contents = {path: None if text is None else blob(text) for path, text in (seen or {}).items()}
        texts = {}
        for anchor in parsed:
            if anchor.symbol is not None:
                text = (seen or {}).get(anchor.path) or self.git.texts[committed[anchor.path]]
                found = Words().symbol_text("", anchor.symbol, text.encode())
                assert found is not None
                texts[anchor] = found
        one = confirmation(head, parsed, committed, contents, texts, self._ancestors(head))
        if again:
            old = self.memory.records[id]
            confirmations = (*old.confirmations, one)
        else:
            confirmations = (one,)
        decision = Decision(id, "title", "rationale", tuple(parsed), depends_on=tuple(depends))
        time = "2026-01-01T00:00:00.000000Z"
        self.memory.records[id] = DecisionRecord(decision, 1, Standing.ACTIVE, confirmations, time, "Ada", time, time)

    def _ancestors(self, head: str | None) -> list[str]:
        found = []
        while head is not None and self.git.parents[head]:
            head = self.git.parents[head][0]
            found.append(head)
        return found

    def look(self, head: str | None, id: DecisionId = ONE) -> Verdict:  # noqa: A002
        verdict = self.judge.look(head, self.memory)[id]
        fresh = Judge(self.git, Words(), revival=self.judge._revival).look(head, self.memory)[id]
        assert (verdict.status, verdict.reason, verdict.commit) == (fresh.status, fresh.reason, fresh.commit)
        return verdict


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_commit_that_changes_the_file_is_the_reason_and_others_are_not(desk: Desk) -> None:
    a = desk.git.commit(gov="1", other="1")
    desk.record(a, "gov.py")
    b = desk.git.commit(a, gov="1", other="2")
    assert desk.look(b).status is Status.ACTIVE
    c = desk.git.commit(b, gov="2", other="2")
    verdict = desk.look(c)
    assert (verdict.status, verdict.reason, verdict.severity) == (Status.STALE, Reason.CHANGED, Severity.WARNING)
    assert (verdict.commit, verdict.path) == (c, "gov.py")
    d = desk.git.commit(c, gov="3", other="2")
    verdict = desk.look(d)
    assert (verdict.commit, verdict.since) == (d, c)
    assert [finding.commit for finding in verdict.findings] == [c, d]


def test_a_return_to_the_bytes_leaves_it_stale_but_says_so() -> None:
    for revival, status in ((False, Status.STALE), (True, Status.ACTIVE)):
        desk = Desk(revival=revival)
        a = desk.git.commit(gov="1")
        desk.record(a, "gov.py")
        b = desk.git.commit(a, gov="2")
        c = desk.git.commit(b, gov="1")
        verdict = desk.look(c)
        assert (verdict.status, verdict.reverted) == (status, True)
        assert verdict.findings[0].commit == b


def test_a_merge_is_compared_with_the_side_the_confirmation_came_in_by(desk: Desk) -> None:
    base = desk.git.commit(gov="1", x="1")
    topic = desk.git.commit(base, gov="2", x="1")
    desk.record(topic, "gov.py")
    main = desk.git.commit(base, gov="1", x="2")
    taken = desk.git.commit(main, topic, gov="2", x="2")
    assert desk.look(taken).status is Status.ACTIVE
    lost = desk.git.commit(main, topic, gov="1", x="2")
    verdict = desk.look(lost)
    assert verdict.findings[0].parent == topic
    assert (verdict.reason, verdict.commit) == (Reason.CHANGED, lost)


def test_the_commit_that_lands_the_bytes_seen_is_no_doubt_and_another_says_so(desk: Desk) -> None:
    a = desk.git.commit(gov="1")
    desk.record(a, "gov.py", seen={"gov.py": "2"})
    assert desk.look(a).unlanded == ("gov.py",)
    landed = desk.git.commit(a, gov="2")
    verdict = desk.look(landed)
    assert (verdict.status, verdict.unlanded) == (Status.ACTIVE, ())
    other = desk.git.commit(a, gov="3")
    assert desk.look(other).reason is Reason.LANDED_OTHER
    later = desk.git.commit(landed, gov="1")
    assert desk.look(later).reason is Reason.CHANGED


def test_before_the_first_commit(desk: Desk) -> None:
    desk.record(None, "gov.py", seen={"gov.py": "1"})
    assert desk.look(None).status is Status.ACTIVE
    first = desk.git.commit(gov="1")
    assert desk.look(first).status is Status.ACTIVE
    second = desk.git.commit(first, gov="2")
    assert desk.look(second).status is Status.STALE
    assert desk.look(desk.git.commit(gov="2")).reason is Reason.LANDED_OTHER


def test_a_rename_that_keeps_the_bytes_moves_the_anchor(desk: Desk) -> None:
    a = desk.git.commit(gov="1")
    desk.record(a, "gov.py")
    b = desk.git.commit(a, core__gov="1")
    verdict = desk.look(b)
    assert (verdict.status, verdict.anchors[0].now.path, verdict.anchors[0].moved) == (
        Status.ACTIVE,
        "core/gov.py",
        True,
    )
    assert [(move.commit, move.old, move.new) for move in verdict.moves] == [(b, "gov.py", "core/gov.py")]
    c = desk.git.commit(b, core__gov="2")
    assert desk.look(c).path == "core/gov.py"
    d = desk.git.commit(b)
    verdict = desk.look(d)
    assert (verdict.reason, verdict.anchors[0].gone) == (Reason.REMOVED, True)


def test_renames_pair_one_to_one_by_base_name_then_in_path_order(desk: Desk) -> None:
    a = desk.git.commit(a="same", b="same", c="same")
    for number, path in enumerate(("a.py", "b.py", "c.py"), 2):
        desk.record(a, path, id=DecisionId(f"nm-aaaaaaa{number}"))
    b = desk.git.commit(a, x__b="same", w="same")
    verdicts = desk.judge.look(b, desk.memory)
    where = [verdicts[DecisionId(f"nm-aaaaaaa{n}")].anchors[0] for n in (2, 3, 4)]
    assert [(view.now.path, view.gone) for view in where] == [
        ("w.py", False),
        ("x/b.py", False),
        ("c.py", True),
    ]


def test_git_s_empty_files_pair_only_by_base_name() -> None:

    for empty in EMPTY_FILES:
        gone = [Change("p/__init__.py", empty, None), Change("p/x.py", empty, None)]
        come = [Change("q/__init__.py", None, empty), Change("q/y.py", None, empty)]
        assert pair_renames([*gone, *come]) == {"p/__init__.py": "q/__init__.py"}


def test_a_symbol_is_doubted_by_its_code_alone(desk: Desk) -> None:
    a = desk.git.commit(gov="f 1 # note\ng 1")
    desk.record(a, "gov.py::f")
    b = desk.git.commit(a, gov="f   1\ng 2")
    assert desk.look(b).status is Status.ACTIVE
    c = desk.git.commit(b, gov="f 2\ng 2")
    assert desk.look(c).reason is Reason.CHANGED
    d = desk.git.commit(b, gov="g 2")
    assert desk.look(d).reason is Reason.CHANGED


def test_a_symbol_kept_by_another_grammar_is_read_from_what_was_seen() -> None:
    texts = {blob(text): text.encode() for text in ("f 1", "f 1 # note", "f 2")}
    sighting = Sighting(
        parse_anchor("gov.py::f"), (SeenFile("gov.py", blob("f 1"), None),), pack_text(b"f 1 decorated")
    )
    reader = SymbolReader(texts.get, Words())
    assert reader.holds(sighting, "gov.py", blob("f 1 # note"))
    assert not reader.holds(sighting, "gov.py", blob("f 2"))
    del texts[blob("f 1")]
    assert not SymbolReader(texts.get, Words()).holds(sighting, "gov.py", blob("f 1 # note"))


def test_a_symbol_follows_into_the_only_added_file_that_holds_it(desk: Desk) -> None:
    a = desk.git.commit(gov="f 1\ng 1")
    desk.record(a, "gov.py::f")
    one = desk.git.commit(a, new="f 1", other="h 1")
    assert (desk.look(one).status, desk.look(one).anchors[0].now.path) == (Status.ACTIVE, "new.py")
    two = desk.git.commit(a, new="f 1", other="f 1 # copy")
    assert desk.look(two).reason is Reason.REMOVED
    cut_out = desk.git.commit(a, gov="g 1", new="f 1")
    assert desk.look(cut_out).reason is Reason.CHANGED


def test_file_to_link_is_a_change(desk: Desk) -> None:
    a = desk.git.commit(gov="x")
    desk.record(a, "gov.py")
    assert desk.look(desk.git.commit(a, gov="x", links=["gov"])).reason is Reason.CHANGED


def test_a_folder_is_doubted_by_what_changes_or_leaves_not_by_what_joins_or_moves_inside(desk: Desk) -> None:
    a = desk.git.commit(src__a="1", src__b="2", x="3")
    desk.record(a, "src/")
    joined = desk.git.commit(a, src__a="1", src__b="2", src__c="4", x="3")
    assert desk.look(joined).status is Status.ACTIVE
    inside = desk.git.commit(joined, src__a="1", src__deep__b="2", src__c="4", x="3")
    assert desk.look(inside).status is Status.ACTIVE
    assert desk.look(desk.git.commit(inside, src__a="1", src__deep__b="2", src__c="5", x="3")).path == "src/c.py"
    assert desk.look(desk.git.commit(inside, src__a="1", src__deep__b="9", src__c="4", x="3")).path == "src/deep/b.py"
    out = desk.look(desk.git.commit(inside, src__a="1", b="2", src__c="4", x="3"))
    assert (out.reason, out.path) == (Reason.MOVED_OUT, "src/deep/b.py")
    assert desk.look(desk.git.commit(inside, src__a="1", src__c="4", x="3")).reason is Reason.REMOVED


def test_a_folder_moves_whole_into_a_folder_that_held_nothing(desk: Desk) -> None:
    a = desk.git.commit(src__a="1", src__d__b="2", lib__x="3")
    desk.record(a, "src/")
    moved = desk.git.commit(a, new__a="1", new__d__b="2", new__joined="4", lib__x="3")
    verdict = desk.look(moved)
    assert (verdict.status, str(verdict.anchors[0].now)) == (Status.ACTIVE, "new/")
    assert (
        desk.look(desk.git.commit(moved, new__a="1", new__d__b="2", new__joined="5", lib__x="3")).path
        == "new/joined.py"
    )
    into_old = desk.git.commit(a, lib__a="1", lib__d__b="2", lib__x="3")
    assert desk.look(into_old).reason is Reason.MOVED_OUT
    not_all = desk.git.commit(a, new__a="1", src__d__b="2", lib__x="3")
    assert desk.look(not_all).reason is Reason.MOVED_OUT


def test_a_glob_governs_and_moves_with_its_folder(desk: Desk) -> None:
    a = desk.git.commit(src__a="1", **{"src__n.md": "2"})
    desk.record(a, "src/*.py")
    assert desk.look(desk.git.commit(a, src__a="1", **{"src__n.md": "3"})).status is Status.ACTIVE
    moved = desk.git.commit(a, lib__a="1", **{"src__n.md": "2"})
    assert str(desk.look(moved).anchors[0].now) == "lib/*.py"


@pytest.mark.parametrize(
    ("pattern", "path", "governed"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**", "src/x/y", True),
        ("src/**/t?.py", "src/t1.py", True),
        ("src/**/t?.py", "src/x/t/.py", False),
        ("src/[ab].py", "src/b.py", True),
        ("src/[!ab].py", "src/b.py", False),
        ("src/[!ab].py", "src/c.py", True),
        ("a[/]b/*", "a/b/c", False),
        ("src/", "src/x", True),
        ("src/", "src2/x", False),
        ("*", "new\nline", True),
    ],
)
def test_what_a_pattern_governs(pattern: str, path: str, governed: bool) -> None:
    assert anchor_governs(parse_anchor(pattern), path) is governed


def test_another_branch_that_merely_differs_is_information_and_one_that_took_it_away_a_warning(desk: Desk) -> None:
    base = desk.git.commit(gov="1")
    topic = desk.git.commit(base, gov="2")
    desk.record(topic, "gov.py")
    verdict = desk.look(base)
    assert (verdict.reason, verdict.severity, verdict.relation) == (
        Reason.DIFFERS,
        Severity.INFORMATION,
        Relation.OLDER_CHECKOUT,
    )
    main = desk.git.commit(base, gov="1", x="1")
    assert (desk.look(main).severity, desk.look(main).relation) == (Severity.INFORMATION, Relation.OTHER_BRANCH)
    squashed = desk.git.commit(main, gov="2", x="1")
    assert desk.look(squashed).status is Status.ACTIVE
    away = desk.git.commit(squashed, gov="3", x="1")
    verdict = desk.look(away)
    assert (verdict.reason, verdict.severity, verdict.commit) == (Reason.CHANGED, Severity.WARNING, away)
    after = desk.git.commit(away, gov="4", x="1")
    assert desk.look(after).commit == away


def test_a_commit_that_is_gone_is_judged_by_names_and_found_by_its_ancestors(desk: Desk) -> None:
    base = desk.git.commit(gov="1")
    topic = desk.git.commit(base, gov="2")
    desk.record(topic, "gov.py")
    main = desk.git.commit(base, gov="2", x="1")
    later = desk.git.commit(main, gov="3", x="1")
    desk.git.missing.add(topic)
    assert (desk.look(main).status, desk.look(main).relation) == (Status.ACTIVE, Relation.GONE)
    verdict = desk.look(later)
    assert (verdict.reason, verdict.commit, verdict.severity) == (Reason.CHANGED, later, Severity.WARNING)
    assert orphaned(desk.memory.records[ONE], {base})
    assert not orphaned(desk.memory.records[ONE], {topic})


def test_restores_on_two_branches_doubt_neither(desk: Desk) -> None:
    base = desk.git.commit(gov="1")
    desk.record(base, "gov.py")
    left, right = desk.git.commit(base, gov="2"), desk.git.commit(base, gov="3")
    desk.record(left, "gov.py", again=True)
    desk.record(right, "gov.py", again=True)
    assert [desk.look(head).status for head in (base, left, right)] == [Status.ACTIVE] * 3
    merged = desk.git.commit(left, right, gov="2")
    assert desk.look(merged).status is Status.ACTIVE
    assert desk.look(desk.git.commit(left, right, gov="4")).status is Status.STALE


def test_a_rewritten_commit_joins_if_it_holds_what_was_seen(desk: Desk) -> None:
    base = desk.git.commit(gov="1", x="1")
    old = desk.git.commit(base, gov="2", x="1")
    desk.record(old, "gov.py")
    new = desk.git.commit(base, gov="2", x="2")
    back = desk.git.commit(new, gov="5", x="2")
    again = desk.git.commit(back, gov="2", x="2")
    assert desk.look(again).status is Status.ACTIVE
    desk.memory.rewrites.append((old, new))
    verdict = desk.look(again)
    assert (verdict.status, verdict.commit, verdict.reverted) == (Status.STALE, back, True)
    other = desk.git.commit(base, gov="9", x="1")
    desk.memory.rewrites.append((old, other))
    assert desk.look(other).relation is Relation.OTHER_BRANCH


def test_comments_and_layout_alone_are_information(desk: Desk) -> None:
    a = desk.git.commit(gov="f 1", src__a="g 1")
    desk.record(a, "gov.py", "src/")
    desk.record(a, "gov.py::f", "src/a.py", id=TWO)
    b = desk.git.commit(a, gov="f 1 # why", src__a="g   1")
    verdicts = desk.judge.look(b, desk.memory)
    assert verdicts[ONE].reason is Reason.CHANGED
    layout = desk.judge.classify(verdicts)
    assert {i: (v.reason, v.severity) for i, v in layout.items()} == {
        ONE: (Reason.LAYOUT, Severity.INFORMATION),
        TWO: (Reason.LAYOUT, Severity.INFORMATION),
    }
    c = desk.git.commit(b, gov="f 2", src__a="g   1")
    assert set(desk.judge.classify(desk.judge.look(c, desk.memory))) == set()
    d = desk.git.commit(a, gov="f 1 # why")
    assert desk.judge.classify(desk.judge.look(d, desk.memory)) == {}


def test_dependencies_over_any_chain_cycles_and_unknown(desk: Desk) -> None:
    a = desk.git.commit(x="1", y="1", z="f 1")
    desk.record(a, "x.py", depends=[TWO])
    desk.record(a, "y.py", id=TWO, depends=[THREE, ONE])
    desk.record(a, "z.py::f", id=THREE)
    assert desk.look(a).status is Status.ACTIVE
    b = desk.git.commit(a, x="1", y="1", z="f 2")
    verdict = desk.look(b)
    assert (verdict.status, verdict.reason, verdict.dependency) == (Status.STALE, Reason.DEPENDENCY, THREE)
    assert not verdict.stale_by_itself
    desk.git.missing.add(blob("f 2"))
    desk.judge = Judge(desk.git, Words())
    assert (desk.look(b).status, desk.look(b, THREE).status) == (Status.UNKNOWN, Status.UNKNOWN)
    assert desk.look(a).status is Status.ACTIVE


def test_where_git_cannot_answer_the_status_is_unknown_and_recovers(desk: Desk) -> None:
    a = desk.git.commit(gov="f 1")
    desk.record(a, "gov.py::f")
    b = desk.git.commit(a, gov="f 1 # note")
    desk.git.broken = True
    verdict = desk.look(b)
    assert (verdict.status, verdict.reason, verdict.cause) == (
        Status.UNKNOWN,
        Reason.GIT,
        "git refuses. Run: git something",
    )
    desk.git.broken = False
    desk.git.missing.add(blob("f 1 # note"))
    verdict = desk.look(b)
    assert (verdict.status, verdict.cause) == (
        Status.UNKNOWN,
        "the committed bytes of gov.py are not in this clone",
    )
    desk.git.missing.clear()
    assert desk.look(b).status is Status.ACTIVE


def test_each_commit_is_compared_once(desk: Desk) -> None:
    head = desk.git.commit(gov="1")
    desk.record(head, "gov.py")
    for n in range(20):
        head = desk.git.commit(head, gov="1", x=str(n))
    judge = desk.judge
    judge.look(head, desk.memory)
    assert desk.git.n_compared == 20
    judge.look(head, desk.memory)
    for n in range(5):
        head = desk.git.commit(head, gov="1", x=f"more {n}")
        judge.look(head, desk.memory)
    assert desk.git.n_compared == 25


def test_a_change_at_the_head_of_the_last_look_is_judged_with_all_that_depends_on_it(desk: Desk) -> None:
    a = desk.git.commit(x="1", y="1")
    desk.record(a, "x.py")
    desk.record(a, "y.py", id=TWO, depends=[ONE])
    b = desk.git.commit(a, x="2", y="1")
    assert desk.look(b, TWO).reason is Reason.DEPENDENCY
    desk.record(b, "x.py", again=True)
    assert [desk.look(b, one).status for one in (ONE, TWO)] == [Status.ACTIVE, Status.ACTIVE]
    desk.record(b, "y.py", id=THREE)
    assert desk.look(b, THREE).status is Status.ACTIVE
    c = desk.git.commit(b, x="2", y="2")
    assert [desk.look(c, one).status for one in (ONE, TWO, THREE)] == [Status.ACTIVE, Status.STALE, Status.STALE]
    del desk.memory.records[ONE]
    assert set(desk.judge.look(c, desk.memory)) == {TWO, THREE}


def test_an_unchanged_decision_keeps_its_verdict_object(desk: Desk) -> None:
    head = desk.git.commit(gov="1")
    desk.record(head, "gov.py")
    before = desk.judge.look(head, desk.memory)[ONE]
    head = desk.git.commit(head, gov="1", x="2")
    assert desk.judge.look(head, desk.memory)[ONE] is before


def test_at_risk_is_what_a_commit_of_the_uncommitted_bytes_would_doubt(desk: Desk) -> None:
    a = desk.git.commit(gov="f 1", x="1", src__a="1")
    desk.record(a, "gov.py::f")
    desk.record(a, "x.py", id=TWO, seen={"x.py": "2"})
    desk.record(a, "src/", id=THREE)
    verdicts = desk.judge.look(a, desk.memory)
    texts = {blob(text): text for text in ("f 1 # note", "f 2", "2", "3")}

    def risk(**now: str | None) -> dict[DecisionId, list[DoubtKind]]:
        paths = {name.replace("__", "/") + ".py": text for name, text in now.items()}
        changes = [Change(p, desk.git.trees[a].get(p), None if t is None else blob(t)) for p, t in paths.items()]
        found = desk.judge.at_risk(a, verdicts, changes, lambda content: texts.get(content, "f 1").encode())
        return {identity: [doubt.kind for doubt in doubts] for identity, doubts in found.items()}

    assert risk(gov="f 1 # note", x="2", src__new="3") == {}
    assert risk(gov="f 2", x="3") == {ONE: [DoubtKind.CHANGED], TWO: [DoubtKind.LANDED_OTHER]}
    assert risk(src__a=None) == {THREE: [DoubtKind.REMOVED]}
    assert risk(src__a=None, new__a="1", gov=None) == {ONE: [DoubtKind.REMOVED]}


def test_a_restore_is_refused_with_what_to_do_instead(desk: Desk) -> None:
    a = desk.git.commit(gov="1", x="1")
    desk.record(a, "gov.py")
    desk.record(a, "x.py", id=TWO, depends=[ONE])
    b = desk.git.commit(a, gov="2", x="1")
    with pytest.raises(Refused, match="nothing to restore"):
        restorable(ONE, desk.look(a))
    assert restorable(ONE, desk.look(b)) == (Anchor(AnchorKind.FILE, "gov.py"),)
    with pytest.raises(Refused, match="Restore nm-aaaaaaaa"):
        restorable(TWO, desk.look(b, TWO))
    c = desk.git.commit(b, x="1")
    with pytest.raises(Refused, match=r"gov\.py is gone.*Amend the decision to govern"):
        restorable(ONE, desk.look(c))
    nothing_known = unknown_verdicts(desk.memory, "git refuses")
    with pytest.raises(Refused, match=f"{ONE} is unknown: git refuses"):
        restorable(ONE, nothing_known[ONE])


def test_a_restore_confirms_the_anchors_by_their_names_now(desk: Desk) -> None:
    a = desk.git.commit(gov="1")
    desk.record(a, "gov.py")
    b = desk.git.commit(a, core__gov="1")
    c = desk.git.commit(b, core__gov="2")
    names = restorable(ONE, desk.look(c))
    assert names == (Anchor(AnchorKind.FILE, "core/gov.py"),)
    desk.record(c, *(str(name) for name in names), again=True)
    assert desk.look(c).status is Status.ACTIVE
    assert desk.look(a).status is Status.ACTIVE


def test_a_confirmation_names_what_is_governed_and_refuses_what_names_nothing() -> None:
    committed = {"a.py": blob("1"), "src/x.py": blob("2"), "src/gone.py": blob("3")}
    seen = {"a.py": blob("9"), "src/new.py": blob("4"), "src/gone.py": None}
    one = confirmation(None, [parse_anchor("src/"), parse_anchor("a.py")], committed, seen, {})
    assert one.seen[0].files == (
        SeenFile("src/gone.py", None, blob("3")),
        SeenFile("src/new.py", blob("4"), None),
        SeenFile("src/x.py", blob("2"), blob("2")),
    )
    assert one.seen[1].files == (SeenFile("a.py", blob("9"), blob("1")),)
    for nothing in ("b.py", "lib/", "*.md"):
        with pytest.raises(InvalidInput, match="names nothing"):
            confirmation(None, [parse_anchor(nothing)], committed, seen, {})
    with pytest.raises(InvalidInput, match="no symbol f"):
        confirmation(None, [parse_anchor("a.py::f")], committed, seen, {})


def test_an_acknowledgement_lasts_until_the_next_finding(desk: Desk) -> None:
    a = desk.git.commit(gov="1")
    desk.record(a, "gov.py")
    assert desk.look(a).finding is None
    b = desk.git.commit(a, gov="2")
    keys = [FindingKey(b, "gov.py")]
    assert desk.look(b).acknowledged(keys)
    assert desk.look(desk.git.commit(b, gov="2", x="1")).acknowledged(keys)
    assert not desk.look(desk.git.commit(b, gov="3")).acknowledged(keys)


def test_without_git_a_save_plays_the_part_of_a_commit(desk: Desk) -> None:
    desk.record(None, "gov.py", seen={"gov.py": "1"})
    record = desk.memory.records[ONE]
    assert judge_saved(record, {"gov.py": blob("1")}) is Status.ACTIVE
    assert judge_saved(record, {"gov.py": blob("2")}) is Status.STALE
    assert judge_saved(record, {}) is Status.STALE
    assert judge_saved(record, {"gov.py": blob("1")}, [("gov.py", blob("2"))]) is Status.STALE


def test_aged_is_not_stale(desk: Desk) -> None:
    desk.record(desk.git.commit(gov="1"), "gov.py")
    record: Any = desk.memory.records[ONE]
    assert not aged(record, datetime(2026, 4, 1, tzinfo=UTC))
    assert aged(record, datetime(2026, 4, 2, tzinfo=UTC))
