"""The rules in real repositories, where git has a say: filters, submodules, partial and shallow clones, refusal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.acts import confirmation, governed
from nm_lsp.decisions.fold import DecisionRecord, Memory, Standing
from nm_lsp.decisions.model import Anchor, AnchorKind, Decision, DecisionId, parse_anchor
from nm_lsp.decisions.staleness import Judge, unknown_verdicts
from nm_lsp.decisions.verdicts import Reason, Relation, Status, Verdict
from nm_lsp.git import Repository, discover
from tests.decisions.holding import Code

ONE = DecisionId("nm-aaaaaaaa")


class Desk:
    """A work tree, the user's git, and one decision."""

    def __init__(self, root: Path, *init: str) -> None:
        self.root = root
        self.memory = Memory()
        self._clock = 1_700_000_000
        root.mkdir(parents=True, exist_ok=True)
        if not (root / ".git").exists():
            self.git("init", "-q", "-b", "main", *init)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        place = discover(root)
        assert place is not None
        self.repository = Repository(place)
        self.judge = Judge(self.repository, Code())

    def git(self, *arguments: str) -> str:
        self._clock += 60
        date = f"{self._clock} +0000"
        env = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        return subprocess.run(
            command, cwd=self.root, env=env, capture_output=True, check=True, text=True
        ).stdout.strip()

    def write(self, path: str, text: str | bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, **files: str) -> str:
        for path, text in files.items():
            self.write(f"{path}.py", text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")

    def record(self, *anchors: Anchor | str) -> None:
        """Record what is on disk now."""
        head = self.repository.head().commit
        parsed = [parse_anchor(one) if isinstance(one, str) else one for one in anchors]
        committed = self.repository.files(head) if head else {}
        paths = {path for anchor in parsed for path in governed(anchor, self.repository.listing())}
        seen = self.repository.working_contents(paths)
        texts = {}
        for anchor in parsed:
            if anchor.symbol is not None:
                text = Code().symbol_text(anchor.path, anchor.symbol, (self.root / anchor.path).read_bytes())
                assert text is not None
                texts[anchor] = text
        ancestors = self.repository.first_parents(head, 200) if head else ()
        one = confirmation(head, parsed, committed, seen, texts, ancestors)
        decision = Decision(ONE, "title", "rationale", tuple(parsed))
        time = "2026-01-01T00:00:00.000000Z"
        self.memory.records[ONE] = DecisionRecord(decision, 1, Standing.ACTIVE, (one,), time, "Ada", time, time)

    def look(self) -> Verdict:
        try:
            head = self.repository.head()
        except GitUnavailable as error:
            return unknown_verdicts(self.memory, str(error))[ONE]
        return self.judge.look(head.commit, self.memory)[ONE]

    def clone(self, target: Path, *how: str) -> Desk:
        self.git("clone", "-q", *how, f"file://{self.root}", str(target))
        other = Desk(target)
        other.memory = self.memory
        return other


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "repo")
    yield desk
    desk.repository.close()


def test_from_the_unborn_branch_on(desk: Desk) -> None:
    desk.write("gov.py", "a = 1\n")
    desk.record("gov.py")
    assert desk.look().status is Status.ACTIVE
    desk.commit()
    assert desk.look().status is Status.ACTIVE
    desk.commit(gov="a = 2\n")
    assert desk.look().reason is Reason.CHANGED


def test_crlf_in_the_work_tree_is_the_blob_of_lf(desk: Desk) -> None:
    desk.git("config", "core.autocrlf", "true")
    desk.write("gov.py", b"a = 1\r\nb = 2\r\n")
    desk.commit()
    desk.record("gov.py")
    seen = desk.memory.records[ONE].confirmations[0].seen[0].files[0]
    assert seen.fp == seen.base
    desk.commit(other="x\n")
    assert desk.look().status is Status.ACTIVE
    desk.commit(gov="a = 3\r\nb = 2\r\n")
    assert desk.look().status is Status.STALE


def test_a_renormalisation_is_layout(desk: Desk) -> None:
    desk.write("gov.py", b"a = 1\r\nb = 2\r\n")
    desk.commit()
    desk.record("gov.py")
    desk.write(".gitattributes", "*.py text\n")
    desk.git("add", "--renormalize", ".")
    desk.commit()
    verdict = desk.look()
    assert verdict.reason is Reason.CHANGED
    assert desk.judge.classify({ONE: verdict})[ONE].reason is Reason.LAYOUT


def test_modes_and_attributes_are_no_change(desk: Desk) -> None:
    desk.commit(gov="a = 1\n")
    desk.record("gov.py")
    (desk.root / "gov.py").chmod(0o755)
    desk.commit()
    desk.write(".gitattributes", "*.py diff=python\n")
    desk.commit()
    assert desk.look().status is Status.ACTIVE


def test_a_submodule_is_governed_by_its_commit(desk: Desk, tmp_path: Path) -> None:
    inner = Desk(tmp_path / "inner")
    inner.commit(x="1\n")
    desk.git("submodule", "add", "-q", str(inner.root), "lib")
    desk.commit()
    desk.record(Anchor(AnchorKind.SUBMODULE, "lib"))
    assert desk.look().status is Status.ACTIVE
    newer = inner.commit(x="2\n")
    desk.git("-C", "lib", "fetch", "-q")
    desk.git("-C", "lib", "checkout", "-q", newer)
    assert desk.look().status is Status.ACTIVE
    desk.commit()
    verdict = desk.look()
    assert (verdict.status, verdict.path) == (Status.STALE, "lib")
    inner.repository.close()


def test_a_shallow_clone_judges_by_what_it_has_and_a_deeper_one_anew(desk: Desk, tmp_path: Path) -> None:
    desk.commit(gov="a = 1\n")
    desk.record("gov.py")
    desk.commit(gov="a = 2\n")
    desk.commit(gov="a = 1\n")
    desk.commit(x="1\n")
    shallow = desk.clone(tmp_path / "shallow", "--depth=1")
    verdict = shallow.look()
    assert (verdict.status, verdict.relation) == (Status.ACTIVE, Relation.GONE)
    shallow.git("fetch", "-q", "--unshallow")
    shallow.judge = Judge(shallow.repository, Code())
    verdict = shallow.look()
    assert (verdict.status, verdict.reverted) == (Status.STALE, True)
    shallow.repository.close()


def test_a_partial_clone_knows_files_by_ids_and_says_unknown_where_bytes_are_needed(desk: Desk, tmp_path: Path) -> None:
    desk.git("config", "uploadpack.allowFilter", "true")
    desk.commit(gov="def f():\n    return 1\n")
    desk.record("gov.py::f")
    desk.commit(gov="def f():\n    return 1\n\n\nx = 1\n")
    desk.git("rm", "-q", "gov.py")
    head = desk.commit()
    desk.git("revert", "--no-edit", head)
    assert desk.look().reason is Reason.REMOVED
    assert desk.git("rev-parse", "HEAD^{tree}") == desk.git("rev-parse", "HEAD~2^{tree}")
    clone = desk.clone(tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    assert clone.look().reason is Reason.REMOVED
    clone.git("update-ref", "refs/heads/main", "HEAD~2")
    verdict = clone.look()
    assert (verdict.status, verdict.cause) == (Status.UNKNOWN, "the committed bytes of gov.py are not in this clone")
    clone.repository.close()


def test_a_refusal_of_git_is_unknown_with_the_command_to_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.commit(gov="a = 1\n")
    desk.record("gov.py")
    assert desk.look().status is Status.ACTIVE
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    verdict = desk.look()
    assert verdict.status is Status.UNKNOWN
    assert verdict.cause is not None
    assert "git config --global --add safe.directory" in verdict.cause
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    assert desk.look().status is Status.ACTIVE


def test_linked_work_trees_have_verdicts_of_their_own(desk: Desk, tmp_path: Path) -> None:
    desk.commit(gov="a = 1\n")
    desk.record("gov.py")
    desk.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    linked = Desk(tmp_path / "linked")
    linked.memory = desk.memory
    linked.commit(gov="a = 2\n")
    assert (desk.look().status, linked.look().status) == (Status.ACTIVE, Status.STALE)
    linked.repository.close()


def test_squash_branch_deletion_and_collection_leave_it_active(desk: Desk) -> None:
    desk.commit(x="1\n")
    desk.git("checkout", "-q", "-b", "topic")
    desk.commit(gov="a = 1\n")
    desk.record("gov.py")
    desk.git("checkout", "-q", "main")
    desk.git("merge", "-q", "--squash", "topic")
    desk.commit()
    desk.git("branch", "-q", "-D", "topic")
    desk.git("reflog", "expire", "--expire=now", "--all")
    desk.git("gc", "-q", "--prune=now")
    verdict = desk.look()
    assert (verdict.status, verdict.relation) == (Status.ACTIVE, Relation.GONE)
    away = desk.commit(gov="a = 2\n")
    assert (desk.look().reason, desk.look().commit) == (Reason.CHANGED, away)


def test_names_that_are_no_utf8_and_a_sha256_repository(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "repo", "--object-format=sha256")
    name = os.fsdecode(b"gov\xe9 \xd1\x84.py")
    desk.write(name, "a = 1\n")
    desk.commit()
    desk.record(Anchor(AnchorKind.FILE, name))
    assert desk.look().status is Status.ACTIVE
    desk.write(name, "a = 2\n")
    desk.commit()
    assert (desk.look().status, desk.look().path) == (Status.STALE, name)
    desk.repository.close()


def test_the_objects_of_an_old_boundary_do_not_stop_a_look(desk: Desk, tmp_path: Path) -> None:
    desk.commit(x="0\n")
    desk.commit(gov="a = 1\n")
    desk.record("gov.py")
    boundary = desk.git("rev-parse", "HEAD")
    clone = desk.clone(tmp_path / "shallow", "--depth=1")
    desk.commit(gov="a = 2\n")
    desk.commit(x="2\n")
    clone.git("fetch", "-q", "--depth=1", "origin")
    clone.git("update-ref", "refs/heads/main", "FETCH_HEAD")
    assert clone.git("cat-file", "-t", boundary) == "commit"
    clone.judge = Judge(clone.repository, Code())
    verdict = clone.look()
    assert (verdict.status, verdict.reason) == (Status.STALE, Reason.DIFFERS)
    clone.repository.close()
