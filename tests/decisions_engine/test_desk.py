"""Decisions through the desk, in real repositories: what people do, what commits do to it, and what is refused."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Conflict, GitUnavailable, InvalidInput, NotFound, Refused, StoreProblem
from nm_lsp.decisions.verdicts import Status
from nm_lsp.engine import hooks
from nm_lsp.engine.decision_requests import (
    AcknowledgeParams,
    AmendFields,
    AmendParams,
    AsOfParams,
    AuditParams,
    DecisionRow,
    DiffParams,
    GetParams,
    HistoryParams,
    InvalidateParams,
    ListParams,
    RecordParams,
    RedactParams,
    ReinstateParams,
    RestoreParams,
    SupersedeParams,
    VerifyParams,
)
from nm_lsp.engine.decisions.guard import guard
from nm_lsp.engine.requests import Nothing
from nm_lsp.storage.backups import Backup, Backups, CopyTo
from nm_lsp.storage.recovery import StoreLost

from .conftest import CALLER, Bench

GO = Cancellation()


def row(bench: Bench, identity: str) -> DecisionRow:
    return bench.desk.get(GetParams(ids=(identity,)), GO, CALLER).decisions[0].row


def status(bench: Bench, identity: str) -> str:
    return row(bench, identity).status


def restore(bench: Bench, *ids: str, **options: object) -> None:
    bench.desk.restore(RestoreParams(ids=ids, **options), GO, CALLER)  # type: ignore[arg-type]


# -- the life of a decision ------------------------------------------------------------------------------------------


def test_a_commit_doubts_and_a_person_restores(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    assert status(bench, identity) == "active"
    commit = bench.commit({"a.py": "x = 2\n"}, "raise x")
    stale = row(bench, identity)
    assert (stale.status, stale.stale_commit, stale.stale_path) == ("stale", commit, "a.py")
    assert stale.status_reason == f"a.py was changed by {commit[:8]} (raise x)"
    restore(bench, identity, note="still so")
    assert status(bench, identity) == "active"
    bench.reopen()
    assert status(bench, identity) == "active"


def test_the_commit_that_lands_the_seen_bytes_is_no_doubt(bench: Bench) -> None:
    bench.write({"a.py": "x = 5\n"})
    identity = bench.record("x is five", "a.py")
    bench.git("commit", "-qam", "five")
    assert status(bench, identity) == "active"
    bench.commit({"a.py": "x = 6\n"})
    assert status(bench, identity) == "stale"


def test_a_later_return_to_the_seen_bytes_does_not_clear_by_itself(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.commit({"a.py": "x = 2\n"})
    bench.commit({"a.py": "x = 1\n"})
    assert (row(bench, identity).status, row(bench, identity).reverted) == ("stale", True)
    with pytest.raises(Conflict, match="1 decisions are of that kind"):
        bench.desk.restore(RestoreParams(all="reverted"), GO, CALLER)
    bench.desk.restore(RestoreParams(all="reverted", confirm=1), GO, CALLER)
    assert status(bench, identity) == "active"


def test_only_layout_is_told_apart_and_restored_in_one_step(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    other = bench.record("Keep y", "b.py")
    bench.commit({"a.py": "# why\nx  =  1\n", "b.py": "y = 2\n"}, "format")
    found = row(bench, identity)
    assert (found.status, found.reason, found.severity) == ("stale", "layout", "information")
    bench.desk.restore(RestoreParams(all="layout", confirm=1), GO, CALLER)
    assert (status(bench, identity), status(bench, other)) == ("active", "stale")


def test_a_symbol_is_compared_as_code(bench: Bench) -> None:
    bench.commit({"m.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n"})
    identity = bench.record("f returns one", "m.py::f")
    bench.commit({"m.py": "# head\n\ndef f():\n    # why\n    return  1\n\n\ndef g():\n    return 3\n"})
    assert status(bench, identity) == "active"
    bench.commit({"m.py": "def f():\n    return 4\n\n\ndef g():\n    return 3\n"})
    assert status(bench, identity) == "stale"


def test_a_rename_that_keeps_the_bytes_moves_the_anchor(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    (bench.root / "pkg").mkdir()
    bench.git("mv", "a.py", "pkg/moved.py")
    bench.git("commit", "-qm", "move")
    found = row(bench, identity)
    assert (found.status, found.anchors[0].moved_to) == ("active", "pkg/moved.py")
    bench.commit({"pkg/moved.py": "x = 9\n"})
    assert (row(bench, identity).status, row(bench, identity).stale_path) == ("stale", "pkg/moved.py")


def test_folders_and_globs_govern_what_joins_later(bench: Bench) -> None:
    bench.commit({"src/a.py": "1\n", "src/sub/b.py": "2\n", "src/c.txt": "3\n"})
    folder = bench.record("The source", "src/")
    glob = bench.record("The scripts", "src/**/*.py")
    bench.commit({"src/new.py": "4\n"})
    assert (status(bench, folder), status(bench, glob)) == ("active", "active")
    bench.commit({"src/new.py": "5\n"})
    assert (status(bench, folder), status(bench, glob)) == ("stale", "stale")


def test_branches_disagree_and_a_checkout_changes_nothing_for_good(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.git("checkout", "-q", "-b", "feature")
    bench.commit({"a.py": "x = 2\n"})
    assert status(bench, identity) == "stale"
    bench.git("checkout", "-q", "main")
    assert status(bench, identity) == "active"
    bench.git("merge", "-q", "--no-ff", "-m", "merge", "feature")
    assert status(bench, identity) == "stale"


def test_what_depends_on_a_doubted_decision_is_doubted_with_that_reason(bench: Bench) -> None:
    base = bench.record("Base", "a.py")
    top = bench.record("Top", "b.py", depends_on=(base,))
    bench.commit({"a.py": "x = 2\n"})
    assert (row(bench, top).status, row(bench, top).reason) == ("stale", "dependency")
    with pytest.raises(Refused, match=f"stale only because {base} is"):
        restore(bench, top)
    restore(bench, base)
    assert status(bench, top) == "active"
    with pytest.raises(Refused, match="cycle"):
        bench.desk.amend(AmendParams(id=base, set=AmendFields(depends_on=(top,))), GO, CALLER)


def test_amending_keeps_what_was_said_before(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py", rationale="First reason.")
    bench.desk.amend(
        AmendParams(id=identity, set=AmendFields(rationale="Better reason."), reason="clearer"), GO, CALLER
    )
    rows = bench.desk.history(HistoryParams(id=identity), GO, CALLER).rows
    assert [r.kind for r in rows] == ["recorded", "amended"]
    assert (rows[1].before["rationale"], rows[1].after["rationale"]) == ("First reason.", "Better reason.")
    assert (rows[1].reason, rows[1].face, rows[1].client) == ("clearer", "cli", "tests")
    with pytest.raises(InvalidInput, match="changes nothing"):
        bench.desk.amend(AmendParams(id=identity, set=AmendFields(rationale="Better reason.")), GO, CALLER)


def test_new_anchors_make_one_confirmation_anew(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.commit({"a.py": "x = 2\n"})
    bench.desk.amend(AmendParams(id=identity, set=AmendFields(files=("b.py",))), GO, CALLER)
    detail = bench.desk.get(GetParams(ids=(identity,)), GO, CALLER).decisions[0]
    assert (detail.row.status, detail.confirmations) == ("active", 1)
    assert [anchor.repo_path for anchor in detail.row.anchors] == ["b.py"]


def test_invalidation_holds_everywhere_until_it_is_taken_back(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.desk.invalidate(InvalidateParams(id=identity, reason="x is gone"), GO, CALLER)
    bench.git("checkout", "-q", "-b", "feature")
    found = row(bench, identity)
    assert found.status == "invalidated"
    assert found.status_reason is not None
    assert "on main" in found.status_reason
    with pytest.raises(Refused, match="Reinstate it"):
        restore(bench, identity)
    bench.desk.reinstate(ReinstateParams(id=identity, reason="x is back"), GO, CALLER)
    assert status(bench, identity) == "active"
    with pytest.raises(Refused, match="nothing to reinstate"):
        bench.desk.reinstate(ReinstateParams(id=identity, reason="again"), GO, CALLER)


def test_a_replaced_decision_names_the_live_end_of_the_chain(bench: Bench) -> None:
    first, second, third = (bench.record(f"Version {n}", "a.py") for n in range(3))
    bench.desk.supersede(SupersedeParams(id=first, by=second, reason="newer"), GO, CALLER)
    bench.desk.supersede(SupersedeParams(id=second, by=third, reason="newest"), GO, CALLER)
    detail = bench.desk.get(GetParams(ids=(first,)), GO, CALLER).decisions[0]
    assert (detail.row.superseded_by, detail.live_end) == (second, third)
    with pytest.raises(Refused, match="invalidated"):
        bench.desk.supersede(SupersedeParams(id=third, by=first, reason="back"), GO, CALLER)


def test_an_acknowledged_finding_is_quiet_until_the_next_one(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.commit({"a.py": "x = 2\n"})
    bench.desk.acknowledge(AcknowledgeParams(ids=(identity,)), GO, CALLER)
    assert (row(bench, identity).status, row(bench, identity).acknowledged) == ("stale", True)
    bench.commit({"a.py": "x = 3\n"})
    assert (row(bench, identity).status, row(bench, identity).acknowledged) == ("stale", False)


def test_the_past_is_answered_as_it_was_believed(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    before = bench.git("rev-parse", "HEAD")
    then = "2027-01-15T08:00:30Z"
    bench.commit({"a.py": "x = 2\n"})
    bench.time += 3_600
    bench.desk.invalidate(InvalidateParams(id=identity, reason="gone"), GO, CALLER)
    later = bench.record("Later", "a.py")

    def statuses(commit: str) -> dict[str, str]:
        return {r.id: r.status for r in bench.desk.as_of(AsOfParams(commit=commit), GO, CALLER).decisions}

    assert statuses(before) == {identity: "active"}
    assert statuses("HEAD") == {identity: "invalidated", later: "active"}
    at_time = bench.desk.as_of(AsOfParams(time=then), GO, CALLER).decisions
    assert [r.status for r in at_time] == ["stale"]
    assert bench.desk.as_of(AsOfParams(time="2026-06-01"), GO, CALLER).decisions == ()
    with pytest.raises(InvalidInput, match="either a commit or a time"):
        bench.desk.as_of(AsOfParams(), GO, CALLER)
    with pytest.raises(NotFound, match="no commit nosuch"):
        bench.desk.as_of(AsOfParams(commit="nosuch"), GO, CALLER)


@pytest.mark.parametrize(("data", "why"), [(b"x\0", "is binary"), (b"x\n" * 1_000_001, "2,000,002 bytes are too many")])
def test_what_nobody_can_read_is_not_shown(bench: Bench, data: bytes, why: str) -> None:
    identity = bench.record("Keep x", "a.py")
    (bench.root / "a.py").write_bytes(data)
    bench.commit({})
    found = bench.desk.diff(DiffParams(id=identity), GO, CALLER)
    assert (found.seen, found.now) == (None, None)
    assert why in found.text


@pytest.mark.parametrize(
    ("attributes", "codec"),
    [("* text eol=crlf", "utf-8"), ("*.py working-tree-encoding=UTF-16LE", "utf-16-le"), ("*.py ident", "utf-8")],
)
def test_what_filters_do_to_the_disk_is_no_part_of_a_symbol(bench: Bench, attributes: str, codec: str) -> None:
    bench.commit({".gitattributes": attributes + "\n"})
    text = 'def f():\n    """$Id$\n\n    more\n    """\n\n\ndef g():\n    return 1\n'
    (bench.root / "f.py").write_bytes(text.encode(codec))
    bench.commit({})
    (bench.root / "f.py").unlink()
    bench.git("checkout", "f.py")
    identity = bench.record("Keep f", "f.py::f")
    there = (bench.root / "f.py").read_bytes()
    assert there != text.encode()

    def edit(old: str, new: str) -> None:
        (bench.root / "f.py").write_bytes(there.replace(old.encode(codec), new.encode(codec)))

    edit("return 1", "return 2")
    assert bench.desk.risks(None, GO) == {}
    other = bench.record("Keep f as well", "f.py::f", rationale="Recorded while the file was not committed.")
    edit("more", "less")
    assert {mark.decision.id for marks in bench.desk.risks(None, GO).values() for mark in marks} == {identity, other}
    changed = bench.desk.diff(DiffParams(id=identity), GO, CALLER).text.splitlines()[2:]
    assert [line for line in changed if line[0] in "+-"] == ["-    more", "+    less"]


def test_what_changed_since_is_shown_as_two_texts(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.commit({"a.py": "x = 2\n"})
    found = bench.desk.diff(DiffParams(id=identity), GO, CALLER)
    assert (found.seen, found.now, found.repo_path) == ("x = 1\n", "x = 2\n", "a.py")
    assert "-x = 1\n+x = 2" in found.text


def test_a_secret_is_taken_out_of_everything_and_that_is_on_record(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py", rationale="The key is hunter2.")
    bench.desk.redact(RedactParams(id=identity, field="rationale", reason="a secret"), GO, CALLER)
    store = bench.root / ".neuralmind" / "lsp"
    assert all(b"hunter2" not in path.read_bytes() for path in store.iterdir())
    verified = bench.desk.audit_verify(VerifyParams(), GO, CALLER)
    assert (verified.valid, verified.problems) == (True, ())
    assert verified.redacted > 0


def test_a_rotated_audit_still_verifies_and_is_still_redacted(bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.desk.audit_rotate(Nothing(), GO, CALLER)
    identity = bench.record("Keep x", "a.py", rationale="the password is hunter2")
    anchor = bench.desk.audit_anchor(Nothing(), GO, CALLER)
    rotated = bench.desk.audit_rotate(Nothing(), GO, CALLER)
    assert (rotated.sequence, rotated.head) == (anchor.sequence, anchor.head)
    assert Path(rotated.archive).read_bytes().count(b"\n") == anchor.sequence
    bench.desk.redact(RedactParams(id=identity, field="rationale", reason="a secret"), GO, CALLER)
    assert all(b"hunter2" not in path.read_bytes() for path in Path(rotated.archive).parent.iterdir())
    assert bench.desk.audit_verify(VerifyParams(head=anchor.text), GO, CALLER).problems == ()
    Path(rotated.archive).unlink()
    assert not bench.desk.audit_verify(VerifyParams(), GO, CALLER).valid


def test_no_answer_waits_for_the_backup_of_the_day_and_closing_does(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, make = threading.Event(), Backups.make

    def slow(backups: Backups, copy_to: CopyTo, now: float, reason: str) -> Backup:
        assert may_go_on.wait(timeout=20)
        return make(backups, copy_to, now, reason)

    monkeypatch.setattr(Backups, "make", slow)
    identity = bench.record("Keep x", "a.py")
    assert status(bench, identity) == "active"
    backups = bench.desk.tree.keeper.writable_store().backups
    assert backups.all() == []
    may_go_on.set()
    bench.repositories.close()
    assert [backup.reason for backup in backups.all()] == ["day"]


# -- looking ---------------------------------------------------------------------------------------------------------


def test_commits_made_while_nothing_ran_are_seen_at_start(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.repositories.close()
    for n in range(7):
        bench.commit({"a.py": f"x = {n + 10}\n"})
    bench.reopen()
    assert status(bench, identity) == "stale"


def test_a_scan_says_what_is_new(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.desk.scan(Nothing(), GO, CALLER)
    commit = bench.commit({"a.py": "x = 2\n"})
    found = bench.desk.scan(Nothing(), GO, CALLER)
    assert (found.head, found.stale, found.active) == (commit, 1, 0)
    assert [r.id for r in found.newly_stale] == [identity]
    assert bench.desk.scan(Nothing(), GO, CALLER).newly_stale == ()


def test_another_process_is_seen_and_never_overwritten(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    seen = row(bench, identity).revision
    other = Bench(bench.root)
    other.desk.amend(AmendParams(id=identity, set=AmendFields(title="Keep x small")), GO, CALLER)
    assert row(bench, identity).title == "Keep x small"
    with pytest.raises(Conflict, match="changed meanwhile"):
        bench.desk.amend(AmendParams(id=identity, set=AmendFields(title="Mine"), expect=seen), GO, CALLER)


def test_a_linked_work_tree_has_a_status_of_its_own_and_the_same_store(bench: Bench, tmp_path: Path) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    side = Bench(tmp_path / "linked")
    side.commit({"a.py": "x = 7\n"})
    assert (status(side, identity), status(bench, identity)) == ("stale", "active")
    assert not (tmp_path / "linked" / ".neuralmind").exists()
    restore(side, identity)
    assert (status(side, identity), status(bench, identity)) == ("active", "active")


def test_the_memory_of_a_bare_repository_stays_where_it_is(bench: Bench, tmp_path: Path) -> None:
    bench.git("clone", "-q", "--bare", ".", str(tmp_path / "shared.git"))
    bare = Bench(tmp_path / "shared.git")
    bare.git("worktree", "add", "-q", str(tmp_path / "main"), "main")
    first = Bench(tmp_path / "main")
    identity = first.record("Keep x", "a.py")
    bare.git("worktree", "add", "-q", str(tmp_path / "alpha"), "-b", "side")
    listed_first = Bench(tmp_path / "alpha")
    assert status(listed_first, identity) == "active"
    assert guard(["a.py"], tmp_path / "alpha").paths[0].decisions[0].decision.id == identity
    first.close()
    # What git ignores does not keep it from removing a work tree.
    bare.git("worktree", "remove", str(tmp_path / "main"))
    left = Bench(tmp_path / "alpha")
    assert left.tree.look().records == {}
    assert isinstance(left.tree.keeper.problem, StoreLost)
    assert "is missing" in guard(["a.py"], tmp_path / "alpha").problems[0]
    left.tree.keeper.recover("Ada", "cli")
    assert status(left, identity) == "active"


def test_a_repository_that_is_gone_is_not_the_one_around_it(bench: Bench) -> None:
    """The one around it even holds the same bytes; nothing is known of a commit that is nowhere."""
    bench.git("clone", "-q", ".", "sub")
    sub = Bench(bench.root / "sub")
    identity = sub.record("Keep x", "a.py")
    sub.git("config", "user.name", "Ada")
    (bench.root / "sub" / ".git").rename(bench.root / "elsewhere")
    assert sub.tree.look(sure=True).verdicts[identity].status is Status.UNKNOWN
    (bench.root / "elsewhere").rename(bench.root / "sub" / ".git")
    assert sub.tree.look(sure=True).verdicts[identity].status is Status.ACTIVE


def test_a_file_in_the_place_of_the_store_is_told_and_can_go_again(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    store = bench.root / ".neuralmind" / "lsp"
    store.rename(bench.root / "aside")
    store.write_text("not yours")
    assert status(bench, identity) == "active"
    assert any("cannot be put back" in problem for problem in bench.desk.problems())
    with pytest.raises(StoreProblem, match="cannot be put back"):
        bench.record("Keep y", "b.py")
    store.unlink()
    (bench.root / "aside").rename(store)
    bench.record("Keep y", "b.py")


def test_a_checkout_that_becomes_sparse_hides_nothing(bench: Bench) -> None:
    bench.commit({"in/a.py": "a = 1\n", "out/b.py": "b = 1\n"})
    first = bench.record("Keep b", "out/b.py")
    bench.git("sparse-checkout", "set", "--cone", "in")
    assert not (bench.root / "out" / "b.py").exists()
    second = bench.record("Keep b as well", "out/b.py")
    assert bench.desk.risks(None, GO) == {}
    bench.git("rm", "-q", "--sparse", "out/b.py")
    bench.git("commit", "-q", "-m", "drop b")
    assert (status(bench, first), status(bench, second)) == ("stale", "stale")


def test_a_git_folder_that_goes_elsewhere_is_followed(bench: Bench, tmp_path: Path) -> None:
    identity = bench.record("Keep x", "a.py")
    assert status(bench, identity) == "active"
    bench.git("init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"))
    assert bench.tree.look().verdicts[identity].status is Status.ACTIVE
    bench.commit({"a.py": "x = 2\n"})
    assert bench.tree.look().verdicts[identity].status is Status.STALE
    bench.git("checkout", "-q", "-b", "side", "HEAD~1")
    bench.commit({"a.py": "x = 3\n"})
    with pytest.raises(subprocess.CalledProcessError):
        bench.git("merge", "main")
    assert bench.tree.look().operation == "merge"


def test_an_event_that_is_written_is_not_refused_for_want_of_a_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        identity = bench.record("Keep x", "a.py")
    assert status(bench, identity) == "active"


def test_an_amended_commit_is_followed_by_the_hook(bench: Bench) -> None:
    """With the list of `post-rewrite` the confirmation is judged from the new commit on, not by the last difference."""
    hooks.install(bench.root)
    bench.commit({"c.py": "z = 5\n"})
    identity = bench.record("Keep x", "a.py")
    bench.git("commit", "-q", "--amend", "-m", "first, better said")
    bench.commit({"a.py": "x = 2\n"})
    bench.commit({"a.py": "x = 1\n"})
    found = row(bench, identity)
    assert (found.status, found.reverted) == ("stale", True)
    bench.reopen()
    assert status(bench, identity) == "stale"
    assert bench.desk.audit_verify(VerifyParams(), GO, CALLER).valid


def test_before_the_first_commit(make_bench: Callable[..., Bench], tmp_path: Path) -> None:
    root = tmp_path / "unborn"
    root.mkdir()
    bench = Bench(root)
    bench.git("init", "-q", "-b", "main")
    bench.write({"a.py": "x = 1\n"})
    identity = bench.record("Keep x", "a.py")
    assert status(bench, identity) == "active"
    bench.commit({"a.py": "x = 1\n"}, "first")
    assert status(bench, identity) == "active"
    bench.commit({"a.py": "x = 2\n"})
    assert status(bench, identity) == "stale"


def test_without_git_saving_plays_the_part_of_a_commit_and_git_can_come_later(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    bench = Bench(root)
    bench.write({"a.py": "x = 1\n"})
    identity = bench.record("Keep x", "a.py")
    assert status(bench, identity) == "active"
    bench.write({"a.py": "x = 2\n"})
    bench.desk.poll(sure=True)
    assert status(bench, identity) == "stale"
    bench.write({"a.py": "x = 1\n"})
    bench.git("init", "-q", "-b", "main")
    bench.monotonic += 100
    bench.commit({}, "first")
    assert status(bench, identity) == "active"


def test_a_git_that_refuses_makes_everything_unknown_and_nothing_active(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    deaf = Bench(bench.root, git="/nonexistent/git")
    found = row(deaf, identity)
    assert found.status == "unknown"
    assert found.status_reason is not None
    assert "nobody knows" in found.status_reason
    with pytest.raises(GitUnavailable):
        deaf.record("New", "a.py")
    assert status(bench, identity) == "active"


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [("./a.py", "a.py"), ("sub/../a.py", "a.py"), ("{root}/a.py", "a.py"), ("/a.py", "a.py"), ("a.py", "a.py")],
)
def test_every_spelling_of_a_path_is_one_anchor(bench: Bench, spelling: str, meant: str) -> None:
    identity = bench.record("Keep x", spelling.format(root=bench.root))
    assert [anchor.repo_path for anchor in row(bench, identity).anchors] == [meant]


def test_a_link_governs_what_it_points_to(bench: Bench) -> None:
    (bench.root / "link.py").symlink_to("a.py")
    bench.commit({})
    assert [anchor.repo_path for anchor in row(bench, bench.record("Keep x", "link.py")).anchors] == ["a.py"]


@pytest.mark.parametrize(
    ("anchor", "reason"),
    [
        ("missing.py", "names nothing"),
        ("../outside.py", "leaves the repository"),
        ("/etc/hostname", "outside the repository"),
        ("ignored.log", "ignored by git"),
        ("a.py::nosuch", "no nosuch in a.py"),
        ("nothing/*.py", "No file matches"),
        (".git/config", "cannot be governed"),
        ("", "names no file"),
        ("out.py", "leaves the repository"),
    ],
)
def test_an_anchor_that_means_nothing_is_refused_and_nothing_is_written(
    bench: Bench, anchor: str, reason: str, tmp_path: Path
) -> None:
    bench.write({".gitignore": "*.log\n", "ignored.log": "x"})
    (tmp_path / "far.py").write_text("")
    (bench.root / "out.py").symlink_to(tmp_path / "far.py")
    with pytest.raises((InvalidInput, NotFound, Refused), match=reason):
        bench.record("Keep x", anchor)
    assert not (bench.root / ".neuralmind").exists()


def test_nothing_uncommitted_is_confirmed(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.commit({"a.py": "x = 2\n"})
    bench.write({"a.py": "x = 3\n"})
    with pytest.raises(Refused, match=r"a\.py has changes that are not committed.*Commit"):
        restore(bench, identity)
    bench.git("checkout", "-q", "--", "a.py")
    bench.git("rm", "-q", "a.py")
    bench.git("commit", "-qm", "gone")
    with pytest.raises(Refused, match="is gone"):
        restore(bench, identity)


def test_a_head_that_moved_since_the_caller_looked_is_refused(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    seen = bench.commit({"a.py": "x = 2\n"})
    bench.commit({"a.py": "x = 3\n"})
    with pytest.raises(Conflict, match="HEAD has moved"):
        restore(bench, identity, head=seen)
    restore(bench, identity, head=bench.git("rev-parse", "HEAD"))


@pytest.mark.parametrize(
    "fields",
    [
        {"title": ""},
        {"title": "x" * 1_000_000},
        {"title": "two\nlines"},
        {"title": "turned \u202e round"},
        {"rationale": ""},
        {"confidence": 1.5},
        {"tags": ("",)},
        {"depends_on": ("nm-aaaaaaaa",)},
        {"files": ()},
    ],
)
def test_wrong_fields_are_refused_by_name(bench: Bench, fields: dict[str, object]) -> None:
    given = {"title": "Keep x", "rationale": "Because.", "files": ("a.py",), **fields}
    with pytest.raises((InvalidInput, NotFound)):
        bench.desk.record(RecordParams(**given), GO, CALLER)  # type: ignore[arg-type]
    assert not (bench.root / ".neuralmind").exists()


def test_lists_are_filtered_and_paged(bench: Bench) -> None:
    ids = [bench.record(f"Number {n}", "a.py" if n % 2 else "b.py") for n in range(5)]
    bench.commit({"a.py": "x = 2\n"})
    stale = bench.desk.list(ListParams(status="stale"), GO, CALLER)
    assert {r.id for r in stale.decisions} == {ids[1], ids[3]}
    assert {r.id for r in bench.desk.list(ListParams(path="b.py"), GO, CALLER).decisions} == {ids[0], ids[2], ids[4]}
    first = bench.desk.list(ListParams(limit=3), GO, CALLER)
    rest = bench.desk.list(ListParams(limit=3, cursor=first.cursor), GO, CALLER)
    assert [r.id for r in (*first.decisions, *rest.decisions)] == ids[::-1]
    assert (first.total, rest.cursor) == (5, None)
    with pytest.raises(InvalidInput, match="no status or view"):
        bench.desk.list(ListParams(status="rotten"), GO, CALLER)


def test_every_view_has_one_meaning(bench: Bench) -> None:
    """K02: a decision that a commit doubted is in `stale`, one that nobody touched for long in `aged`."""
    old = bench.record("Old", "b.py")
    bench.time += 100 * 24 * 3_600
    doubted = bench.record("Doubted", "a.py")
    retired = bench.record("Retired", "c.py")
    bench.desk.invalidate(InvalidateParams(id=retired, reason="gone"), GO, CALLER)
    bench.commit({"a.py": "x = 2\n"})
    bench.write({"b.py": "y = 2\n"})
    views = {v.name: {r.id for r in v.decisions} for v in bench.desk.audit(AuditParams(), GO, CALLER).views}
    assert views == {
        "stale": {doubted},
        "invalidated": {retired},
        "aged": {old},
        "orphaned": set(),
        "at-risk": {old},
    }


def test_the_users_status_stays_clean(bench: Bench) -> None:
    bench.record("Keep x", "a.py")
    assert bench.git("status", "--porcelain") == ""
    assert bench.git("fsck") == ""
    assert [path.name for path in (bench.root / ".neuralmind").iterdir()] == ["lsp"]


def test_the_mark_of_a_lost_file_sits_where_git_finds_it_again(bench: Bench) -> None:
    """Renamed with edits: by the rules a removal, but the mark is shown on the file that it has become."""
    text = "".join(f"line_{n} = {n}\n" for n in range(30))
    bench.commit({"long.py": text})
    identity = bench.record("Keep the lines", "long.py")
    bench.git("mv", "long.py", "renamed.py")
    bench.commit({"renamed.py": text.replace("line_7 = 7", "line_7 = 70")})
    found = row(bench, identity)
    assert (found.status, found.reason) == ("stale", "removed")
    assert list(bench.desk.marks().by_path) == ["renamed.py"]


def test_what_lies_in_a_repository_of_its_own_is_refused_and_a_submodule_can_be_governed(
    bench: Bench, make_bench: Callable[..., Bench]
) -> None:
    inner = make_bench("inner", files={"deep.py": "d = 1\n"})
    bench.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "lib")
    bench.commit({}, "a submodule")
    with pytest.raises(Refused, match="lies inside lib"):
        bench.record("Deep", "lib/deep.py")
    identity = bench.record("The library", "lib")
    assert row(bench, identity).anchors[0].kind == "submodule"
    commit = inner.commit({"deep.py": "d = 2\n"})
    Bench(bench.root / "lib").git("fetch", "-q")
    Bench(bench.root / "lib").git("checkout", "-q", commit)
    bench.commit({}, "newer library")
    assert status(bench, identity) == "stale"
    (bench.root / "nested").mkdir()
    Bench(bench.root / "nested").git("init", "-q")
    bench.write({"nested/n.py": "n = 1\n"})
    with pytest.raises(Refused, match="lies inside nested"):
        bench.record("Nested", "nested/n.py")


@pytest.mark.parametrize("damage", ["commit gone", "ref empty", "ref noise", "ref gone"])
def test_where_heads_commit_is_lost_nobody_knows(bench: Bench, damage: str) -> None:
    """git itself does not tell a branch whose commit or ref is lost from one that has no commits."""
    identity = bench.record("Keep x", "a.py")
    head = bench.commit({"b.py": "y = 1\n"})
    git = bench.root / ".git"
    spoilt = git / "objects" / head[:2] / head[2:] if damage == "commit gone" else git / "refs" / "heads" / "main"
    kept = spoilt.read_bytes()
    spoilt.chmod(0o644)
    if damage.endswith("gone"):
        spoilt.unlink()
    else:
        spoilt.write_bytes(b"" if damage == "ref empty" else b"\xff\x00\x81 noise\n")
    bench.reopen()
    assert row(bench, identity).status == "unknown"
    spoilt.write_bytes(kept)
    bench.reopen()
    assert row(bench, identity).status == "active"


def test_a_branch_without_commits_has_the_empty_tree(bench: Bench) -> None:
    identity = bench.record("Keep x", "a.py")
    bench.git("checkout", "-q", "--orphan", "anew")
    bench.reopen()
    assert row(bench, identity).status == "stale"
