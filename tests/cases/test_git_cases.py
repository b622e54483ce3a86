"""Cases G: whatever git does to a repository, a decision on it reads the same for everyone. Hooks have their own page.

Each test names a change of our own code that makes it fail.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from case_bench import (
    Bench,
    alive,
    also,
    bytes_below,
    changed,
    detail_of,
    nudge,
    program,
    real_git,
    status_of,
)
from decision_session import GOV, Repo, Session
from lsp_harness import LspError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for programs")


def test_g01_a_merge_is_the_reason(bench: Bench, repo: Repo) -> None:
    """G01, without a nudge. Fails if `git.queries.differences` asks for one commit instead of a pair."""
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        repo.git("checkout", "-q", "-b", "side")
        repo.commit("on the side", {"gov.py": changed(3)})
        repo.git("checkout", "-q", "main")
        s.until(lambda: s.scan()["branch"] == "main")
        repo.commit("on main", {"other.py": "x = 2\n"})
        repo.git("merge", "-q", "--no-ff", "-m", "the merge", "side")
        mark = s.until_stale(repo.uri("gov.py"), identity)
        assert "(the merge)" in mark["message"]


@pytest.mark.slow
def test_g03_whatever_moves_head(bench: Bench, repo: Repo) -> None:
    """G03: a fast-forward, a reset, a plain update of the ref and a commit that runs no hook, each without a nudge.

    Fails if `git.place.head_stamp` leaves out the branch's ref and the log.
    """
    gov = repo.uri("gov.py")
    other = bench.repo("other", {})
    other.git("remote", "add", "origin", str(repo.path))
    other.git("fetch", "-q", "origin")
    other.git("reset", "-q", "--hard", "origin/main")
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")

        def restore() -> None:
            s.execute(s.action(gov, "Restore"))
            s.until_clean(gov)

        other.commit("theirs", {"gov.py": changed(3)})
        repo.git("pull", "-q", "--ff-only", str(other.path), "main")
        s.until_stale(gov, identity)
        restore()
        other.commit("theirs", {"gov.py": changed(4)})
        repo.git("fetch", "-q", str(other.path), "main")
        repo.git("reset", "-q", "--hard", "FETCH_HEAD")
        s.until_stale(gov, identity)
        restore()
        other.commit("theirs", {"gov.py": changed(5)})
        repo.git("fetch", "-q", str(other.path), "main")
        repo.git("update-ref", "refs/heads/main", "FETCH_HEAD")
        s.until(lambda: ("decision-stale", identity) in s.marks(gov))
        repo.git("reset", "-q", "--hard")
        restore()
        repo.git("config", "core.hooksPath", os.devnull)
        repo.commit("no hooks", {"gov.py": changed(6)})
        s.until_stale(gov, identity)


@pytest.mark.parametrize(("n_commits", "n_rebases"), [(20, 2), also(200, 20)])
def test_g05_the_users_own_git_is_never_in_the_way(bench: Bench, repo: Repo, n_commits: int, n_rebases: int) -> None:
    """G05: commits, rebases and stashes in two work trees while both are looked at all the time: none fails, and
    nothing is written to `.git`, not even an index that could be refreshed.

    Fails if `git.process._SET` leaves out `GIT_OPTIONAL_LOCKS`.
    """
    complaints = bench.folder / "complaints"
    shim = program(
        bench.folder / "bin/git",
        f'[ "$GIT_OPTIONAL_LOCKS" = 0 ] || echo "$@" >>{complaints}\nexec {real_git()} "$@"',
    )
    linked = bench.linked(repo, "linked", "side")
    with bench.session(repo.path, linked.path, settings={"git": {"path": str(shim)}}) as s:
        folders = [each.path.as_uri() for each in (repo, linked)]
        s.call("decisions.record", title="t", rationale="r", files=["gov.py"], folder=folders[0])
        scan = [s.call("decisions.scan", folder=folder)["active"] for folder in folders]
        assert scan == [1, 1]
        # An index that `git status` would refresh stays as it is.
        repo.write({"gov.py": GOV})
        before = bytes_below(repo.path / ".git")
        s.open(repo.uri("gov.py"), changed(3))
        s.until(lambda: s.marks(repo.uri("gov.py")))
        s.call("decisions.scan", folder=folders[0])
        assert bytes_below(repo.path / ".git") == before
        s.close(repo.uri("gov.py"))
        with _looking(s, folders):
            for number in range(n_commits):
                repo.commit(f"commit {number}", {"other.py": f"x = {number}\n"})
            linked.commit("theirs", {"docs/a.md": "# B\n"})
            for number in range(n_rebases):
                linked.git("rebase", "-q", f"main~{n_rebases - 1 - number}")
                linked.write({"docs/a.md": f"# {number}\n"})
                linked.git("add", "-A")
                linked.git("stash", "-q")
                linked.git("stash", "pop", "-q")
                linked.commit(f"stashed {number}")
        alive(s, repo)
    assert not complaints.exists()
    for name in ("index.lock", "worktrees/linked/index.lock"):
        assert not (repo.path / ".git" / name).exists()


@contextmanager
def _looking(s: Session, folders: list[str]) -> Iterator[None]:
    """Rescans of all folders, one after the other, as long as the block takes."""
    over = threading.Event()
    failures: list[Exception] = []

    def look() -> None:
        while not over.is_set():
            for folder in folders:
                try:
                    s.call("decisions.scan", folder=folder)
                except (LspError, TimeoutError) as failure:
                    failures.append(failure)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failures == []


def test_g07_squashed_and_collected(bench: Bench, repo: Repo) -> None:
    """G07: the commit of the recording is squashed away and collected. The bytes are the same: ACTIVE, and the hover
    says that the commit is gone. What holds needs no restore (DESIGN, rule 6), so that is refused; once a commit made
    it STALE, a restore gives it a commit that is there.

    Fails if `engine.decisions.rows.Describer._remark` says nothing for `Relation.GONE`.
    """
    gov = repo.uri("gov.py")
    with bench.session(repo.path) as s:
        repo.git("checkout", "-q", "-b", "side")
        lost = repo.commit("on the side", {"gov.py": changed(3)})
        identity = s.record("gov.py", "gov.py::governed")
        repo.git("checkout", "-q", "main")
        repo.git("merge", "-q", "--squash", "side")
        repo.commit("squashed")
        repo.git("branch", "-q", "-D", "side")
        repo.git("reflog", "expire", "--expire=now", "--all")
        repo.git("gc", "-q", "--prune=now")
        assert "commit" not in repo.git("cat-file", "--batch-all-objects", "--batch-check").partition(lost)[2][:10]
        assert status_of(s, identity) == "active"
        s.open(gov, changed(3))
        assert "no longer in this repository" in s.hover_text(gov)
        with pytest.raises(LspError, match="holds as it stands"):
            s.call("decisions.restore", ids=[identity])
        assert [row["id"] for row in s.call("decisions.list", status="orphaned")["decisions"]] == [identity]
        head = repo.commit("change", {"gov.py": changed(4)})
        s.scan()
        s.change(gov, changed(4), 2)
        s.until(lambda: set(s.marks(gov)) == {("decision-stale", identity)})
        s.execute(s.action(gov, "Restore"))
        s.until_clean(gov)
        assert s.call("decisions.list", status="orphaned")["decisions"] == []
        last = s.call("decisions.history", id=identity)["rows"][-1]
        assert (last["kind"], last["commit"]) == ("restored", head)
        assert s.messages() == []


def test_g08_there_and_back(bench: Bench, repo: Repo) -> None:
    """G08: back at the recorded bytes the verdict is one and the same, whether somebody looked in between or not:
    STALE, with the message that the bytes are back and one act to restore. So it is for a revert of a revert, and for a
    merge of two branches with one content.

    Fails if `decisions.steps._file_held` forgets the doubts where the seen bytes are back.
    """
    gov = repo.uri("gov.py")
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("there", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(gov, identity)
        repo.git("revert", "--no-edit", "HEAD")
        s.scan()
        looked = s.until(lambda: "holds the recorded content again" in _message(s, gov) and s.shown[gov])
    with bench.session(repo.path) as s:
        assert [s.until_stale(gov, identity)] == looked
        s.execute(s.action(gov, "Restore (the recorded content is back)"))
        s.until_clean(gov)
        repo.git("revert", "--no-edit", "HEAD")
        repo.git("revert", "--no-edit", "HEAD")
        s.scan()
        s.until_stale(gov, identity)
        s.execute(s.action(gov, "Restore (the recorded content is back)"))
        s.until_clean(gov)
        for branch in ("one", "two"):
            repo.git("checkout", "-q", "-B", branch, "main")
            repo.commit(branch, {"gov.py": changed(5), f"{branch}.py": "x = 1\n"})
        repo.git("checkout", "-q", "main")
        repo.git("merge", "-q", "--no-ff", "-m", "first", "one")
        repo.git("merge", "-q", "--no-ff", "-m", "second", "two")
        s.scan()
        mark = s.until_stale(gov, identity)
        assert "(first)" in mark["message"]
        assert "again" not in mark["message"]
    with bench.session(repo.path, settings={"decisions": {"revival": "automatic"}}) as s:
        repo.commit("back", {"gov.py": GOV})
        assert status_of(s, identity) == "active"


def _message(s: Session, uri: str) -> str:
    return str(s.shown[uri][0]["message"]) if s.shown.get(uri) else ""


def test_g09_modes_and_attributes_are_no_change(bench: Bench, repo: Repo) -> None:
    """G09: the right to execute and attributes change no content, blanks do (and are called layout).

    Fails if `decisions.staleness.Judge.classify` finds nothing, and if `git.parse.content` tells modes apart.
    """
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        (repo.path / "gov.py").chmod(0o755)
        repo.commit("mode")
        assert "100755" in repo.git("ls-tree", "HEAD", "gov.py")
        assert status_of(s, identity) == "active"
        repo.commit("attributes", {".gitattributes": "*.py diff=python\n"})
        assert status_of(s, identity) == "active"
        assert s.publications() == []
        repo.commit("blanks", {"gov.py": GOV.replace("    return value * 2", "    return  value * 2")})
        s.scan()
        mark = s.until_stale(repo.uri("gov.py"), identity)
        assert "only comments or layout changed" in mark["message"]
        assert mark["severity"] == 3


def test_g10_a_rename_takes_its_decisions_along(bench: Bench, repo: Repo) -> None:
    """G10: after the rename the decision is at the new path, after an edit it is STALE there; nothing at the old one.

    Fails if `decisions.steps._file_removed` never has a target.
    """
    gov, moved = repo.uri("gov.py"), repo.uri("core/gov.py")
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        (repo.path / "core").mkdir()
        repo.git("mv", "gov.py", "core/gov.py")
        repo.commit("rename")
        row = detail_of(s, identity)
        assert (row["status"], row["anchors"][0]["movedTo"]) == ("active", "core/gov.py")
        s.open(moved, GOV)
        assert "moved: gov.py is now core/gov.py" in s.hover_text(moved).replace("\\", "")
        assert s.publications() == []
        repo.commit("edit", {"core/gov.py": changed(3)})
        nudge(s, moved)
        s.until_stale(moved, identity)
        assert set(s.shown) == {moved}
        assert s.hover(gov) is None


@pytest.mark.parametrize("how", ["autocrlf", also("attributes")])
def test_g12_filters_of_git_are_its_own_business(bench: Bench, how: str) -> None:
    """G12: with line ends converted on the way to disk a clean file is clean, at the recording, later and after a
    restart, for a file and for a symbol.

    Fails if `git.queries._hashed_files` asks for `--no-filters`.
    """
    repo = bench.repo(files={"gov.py": GOV, "other.py": "x = 1\n"})
    if how == "autocrlf":
        repo.git("config", "core.autocrlf", "true")
    else:
        repo.commit("attributes", {".gitattributes": "* text=auto eol=crlf\n"})
    repo.git("rm", "-q", "--cached", "-r", ".")
    repo.git("reset", "-q", "--hard")
    assert b"\r\n" in (repo.path / "gov.py").read_bytes()
    gov = repo.uri("gov.py")
    with bench.session(repo.path) as s:
        ids = [s.record("gov.py"), s.record("gov.py::governed")]
        repo.commit("elsewhere", {"other.py": "x = 2\r\n"})
        s.open(gov, GOV.replace("\n", "\r\n"))
        assert [status_of(s, identity) for identity in ids] == ["active", "active"]
    with bench.session(repo.path) as s:
        assert [status_of(s, identity) for identity in ids] == ["active", "active"]
        assert s.call("decisions.list", status="at-risk")["decisions"] == []
        assert s.publications() == []
        repo.commit("edit", {"gov.py": changed(3).replace("\n", "\r\n")})
        s.scan()
        s.until(lambda: sorted(s.marks(gov)) == sorted(("decision-stale", identity) for identity in ids))


def test_g13_line_ends_are_put_right(bench: Bench) -> None:
    """G13: one commit gives forty governed files other line ends: all are marked as layout, one message says so, one
    act restores them.

    Fails if `decisions.staleness.Judge._same_file` says no.
    """
    files = {f"m{number:02}.py": GOV.replace("\n", "\r\n") for number in range(40)}
    repo = bench.repo(files=files)
    with bench.session(repo.path) as s:
        for name in files:
            s.record(name, title=f"Decision on {name}")
        repo.write({".gitattributes": "* text=auto\n"})
        repo.git("add", "--renormalize", ".")
        repo.commit("line ends")
        assert "\r" not in repo.git("cat-file", "-p", "HEAD:m00.py")
        s.scan()
        s.until(lambda: [shown[0]["severity"] for shown in s.shown.values() if shown] == [3] * 40)
        assert "only comments or layout changed" in _message(s, repo.uri("m00.py"))
        (message,) = s.until(s.messages)
        assert "40 decisions became stale" in message
        assert "In 40 of them only comments or layout changed" in message
        s.execute(s.action(repo.uri("m07.py"), "Restore all 40"))
        s.until(lambda: not any(s.shown.values()))
        assert len(s.messages()) == 1


@pytest.mark.slow
def test_g16_every_work_tree_by_its_own_head(bench: Bench, repo: Repo) -> None:
    """G16: two work trees of one repository, by one server each and then in one window: what one branch changed is
    STALE there alone, and a restore there hides nothing that happens here. The store is the repository's.

    Fails if `git.queries.Repository` runs git in the main work tree.
    """
    linked = bench.linked(repo, "linked", "side")
    gov, theirs = repo.uri("gov.py"), linked.uri("gov.py")
    with bench.session(repo.path) as a, bench.session(linked.path) as b:
        identity = a.record("gov.py")
        linked.commit("change", {"gov.py": changed(3)})
        b.scan()
        b.until_stale(theirs, identity)
        assert status_of(a, identity) == "active"
        b.execute(b.action(theirs, "Restore"))
        b.until_clean(theirs)
        repo.commit("here too", {"gov.py": changed(4)})
        a.scan()
        a.until_stale(gov, identity)
        assert set(a.shown) == {gov}
        assert status_of(b, identity) == "active"
    assert not (linked.path / ".neuralmind").exists()
    with bench.session(repo.path, linked.path) as s:
        s.until_stale(gov, identity)
        s.open(theirs, changed(3))
        s.until(lambda: "ACTIVE" in s.hover_text(theirs))
        assert set(s.shown) == {gov}


@pytest.mark.parametrize("spelling", ["relative", also("absolute")])
def test_g18_an_inherited_repository_is_not_ours(bench: Bench, repo: Repo, spelling: str) -> None:
    """G18: a server that Neovim started as editor of a commit in another repository has that one's `GIT_DIR` and
    `GIT_INDEX_FILE`: all answers are about the opened folder, and not a byte of the other one changes.

    Fails if `git.process.environment` keeps git's variables.
    """
    x = bench.repo("x", {"gov.py": "nothing = 1\n"})
    before = bytes_below(x.path)
    git_dir = str(x.path / ".git") if spelling == "absolute" else os.path.relpath(x.path / ".git", repo.path)
    env = {"GIT_DIR": git_dir, "GIT_INDEX_FILE": f"{git_dir}/index", "GIT_WORK_TREE": str(x.path), "GIT_PREFIX": ""}
    with bench.session(repo.path, env=env) as s:
        identity = s.record("gov.py")
        installed = bench.run(sys.executable, "-m", "nm_lsp", "hooks", "install", cwd=repo.path, env=env)
        assert installed.returncode == 0, installed.stderr
        assert (repo.path / ".git/hooks/post-commit").exists()
        head = repo.commit("change", {"gov.py": changed(3)})
        assert s.scan()["head"] == head
        s.until_stale(repo.uri("gov.py"), identity)
        assert str(repo.path) in (repo.path / ".git/nm-lsp").resolve().as_posix()
    assert bytes_below(x.path) == before


def test_g19_a_commit_editor_leaves_git_alone(bench: Bench, repo: Repo) -> None:
    """G19: the folder `.git` as root, with the files a commit editor opens: nothing is indexed, learned, created or
    shown, and the end is quick.

    Fails if `server.roots` takes a folder inside `.git` for a workspace.
    """
    todo = repo.path / ".git/rebase-merge/git-rebase-todo"
    todo.parent.mkdir()
    todo.write_text("pick 1234567 x\n")
    message = repo.path / ".git/COMMIT_EDITMSG"
    before = bytes_below(repo.path)
    with bench.session(repo.path / ".git", settings={"index": {"enabled": True}}) as s:
        for path in (message, todo):
            s.open(path.as_uri(), path.read_text())
            for version in range(2, 6):
                s.change(path.as_uri(), f"text {version}\n", version)
            s.client.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
        s.client.request("neuralmind/status", {})
        assert s.hover(message.as_uri()) is None
        assert s.publications() == []
        assert s.messages() == []
        started = time.monotonic()
    assert time.monotonic() - started < 10
    assert bytes_below(repo.path) == before
    assert not list(bench.folder.rglob("manifest*"))
    todo.unlink()
    todo.parent.rmdir()


@pytest.mark.parametrize("how", ["assumed", also("chown")])
def test_g20_a_repository_that_git_refuses_is_unknown(bench: Bench, repo: Repo, how: str) -> None:
    """G20: another owner: the status is unknown and never ACTIVE, one message has the cause and the command to run, and
    nobody's configuration is written.

    Fails if `git.place.discover` takes every failure for "no repository".
    """
    if how == "chown" and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    gov = repo.uri("gov.py")
    config = bench.folder / "gitconfig"
    config.write_text("")
    env = {"GIT_CONFIG_GLOBAL": str(config)}
    with bench.session(repo.path, env=env) as s:
        identity = s.record("gov.py")
    if how == "assumed":
        env["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    else:
        _give(repo.path, 12345)
    try:
        with bench.session(repo.path, env=env) as s:
            s.open(gov, GOV)
            (message,) = s.until(s.messages)
            assert "another user owns it" in message
            assert f"git config --global --add safe.directory {repo.path}" in message
            assert status_of(s, identity) == "unknown"
            assert "unknown" in s.hover_text(gov)
            assert "ACTIVE" not in s.hover_text(gov)
            assert s.call("decisions.list", status="active")["decisions"] == []
            with pytest.raises(LspError, match="another user owns it"):
                s.record("gov.py")
            s.scan()
            assert len(s.messages()) == 1
    finally:
        _give(repo.path, os.geteuid())
    assert config.read_text() == ""


def _give(folder: Path, uid: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, -1, follow_symlinks=False)


@pytest.mark.parametrize("form", ["NFD", also("NFC")])
def test_g21_names_in_every_script(bench: Bench, form: str) -> None:
    """G21: letters outside ASCII, a blank, either normal form, git as it comes and the plainest locale.

    Fails if `git.parse.name` decodes as Latin-1.
    """
    name = unicodedata.normalize(form, "ünï/файл 文.py")
    repo = bench.repo(files={name: GOV, "other.py": "x = 1\n"})
    with bench.session(repo.path, env={"LANG": "C", "LC_ALL": "C", "LC_CTYPE": "C"}) as s:
        identity = s.record(name)
        repo.commit("change", {name: changed(3)})
        s.scan()
        mark = s.until_stale(repo.uri(name), identity)
        assert name in mark["message"]
        assert set(s.shown) == {repo.uri(name)}


OLD_GIT = f"""case "$*" in *ls-tree*--format*|*ls-files*--format*) exit 129 ;; esac
for word; do case $word in
--end-of-options|--path-format*|--batch-command*|--no-lazy-fetch|--merge-base*|--show-scope|-Z)
echo "error: unknown option $word" >&2; exit 129 ;; esac; done
exec {real_git()} "$@\""""


def test_g23_an_old_git_is_enough(bench: Bench, repo: Repo) -> None:
    """G23: a git that knows none of the options that came after 2.17, named by the setting.

    Fails if `git.queries.Repository.contents` asks `ls-tree` for `--format`.
    """
    shim = program(bench.folder / "bin/git", OLD_GIT)
    with bench.session(repo.path, settings={"git": {"path": str(shim)}}, env={"PATH": "/nonexistent"}) as s:
        identity = s.record("gov.py::governed")
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(repo.uri("gov.py"), identity)
        s.execute(s.action(repo.uri("gov.py"), "Restore", 5))
        s.until_clean(repo.uri("gov.py"))
        assert s.messages() == []


@pytest.mark.parametrize("how", ["broken", also("nowhere")])
def test_g23_without_git(bench: Bench, repo: Repo, how: str) -> None:
    """G23: no git on PATH, or one that fails without a word: search and hover work, decisions are unknown, one message
    names the setting; when git is there, or the setting names it, all is well without a restart.

    Fails if `engine.decisions.worktree.WorkTree.configure` does not take the new path.
    """
    gov = repo.uri("gov.py")
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
    path = bench.folder / "bin"
    path.mkdir()
    if how == "broken":
        program(path / "git", "exit 1")
    index = {"index": {"enabled": True}}
    with bench.session(repo.path, settings=index, env={"PATH": str(path)}) as s:
        s.open(gov, GOV)
        (message,) = s.until(s.messages)
        assert "git.path" in message
        assert "unknown" in s.until(lambda: s.hover_text(gov))
        assert "ACTIVE" not in s.hover_text(gov)
        s.until(lambda: s.client.request("neuralmind/status", {})["ready"], 60)
        assert s.client.request("neuralmind/search", {"query": "governed"})["hits"][0]["id"] == "gov.py::governed"
        if how == "nowhere":
            (path / "git").symlink_to(real_git())
        else:
            settings = {"nmLsp": {**index, "git": {"path": real_git()}}}
            s.client.notify("workspace/didChangeConfiguration", {"settings": settings})
        s.until(lambda: status_of(s, identity) == "active")
        assert "ACTIVE" in s.hover_text(gov)
        repo.commit("change", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(gov, identity)
        s.until(lambda: [each["code"] for each in s.call("status")["problems"]] == ["model"])
        assert len(s.messages()) == 1


def test_g25_before_the_first_commit(bench: Bench) -> None:
    """G25: recorded where there is no commit yet: ACTIVE with the first commit of the same bytes, STALE with the next;
    STALE at once where the first commit has other bytes.

    Fails if `git.queries.differences` leaves out `--root`.
    """
    repo = Repo(bench.folder / "repo", {"gov.py": GOV, "other.py": "x = 1\n"}, born=False)
    gov = repo.uri("gov.py")
    with bench.session(repo.path) as s:
        s.open(gov, GOV)
        identity, other = s.record("gov.py"), s.record("other.py")
        assert status_of(s, identity) == "active"
        assert "ACTIVE" in s.hover_text(gov)
        repo.commit("first", {"other.py": "x = 2\n"})
        row = detail_of(s, other)
        assert (row["status"], "landed with other bytes than recorded" in row["statusReason"]) == ("stale", True)
        s.until_stale(repo.uri("other.py"), other)
        assert status_of(s, identity) == "active"
        assert s.publications(gov) == []
        repo.commit("second", {"gov.py": changed(3)})
        s.scan()
        s.until_stale(gov, identity)
        assert s.messages() == []


def test_g27_looking_at_the_past_changes_nothing(bench: Bench, repo: Repo) -> None:
    """G27: an old branch, a detached HEAD, a bisection, uncommitted edits and a stash: back on main the decision is
    ACTIVE and no finding is left; nothing of it is ever shown as STALE.

    Fails if `engine.decisions.marks._is_shown` shows what was recorded later than an older checkout.
    """
    gov = repo.uri("gov.py")
    repo.git("branch", "old")
    for factor in (3, 4, 5):
        repo.commit(f"times {factor}", {"gov.py": changed(factor)})
    with bench.session(repo.path, settings={"decisions": {"atRisk": "off"}}) as s:
        identity = s.record("gov.py")
        for where in ("old", "HEAD~2"):
            repo.git("checkout", "-q", where)
            s.scan()
            repo.git("checkout", "-q", "main")
            assert status_of(s, identity) == "active"
        repo.git("bisect", "start", "HEAD", "old")
        s.scan()
        repo.git("bisect", "reset")
        assert status_of(s, identity) == "active"
        repo.write({"gov.py": changed(9)})
        assert status_of(s, identity) == "active"
        repo.git("stash", "-q")
        assert status_of(s, identity) == "active"
        repo.git("stash", "pop", "-q")
        assert status_of(s, identity) == "active"
        nudge(s, gov, "watched")
        s.hover(gov)
        assert [row["kind"] for row in s.call("decisions.history", id=identity)["rows"]] == ["recorded"]
        assert not any(s.publications())
        repo.git("checkout", "-q", "--", "gov.py")


def test_g29_a_file_outside_the_cone_is_not_gone(bench: Bench, repo: Repo) -> None:
    """G29: gov.py is left out by a sparse checkout: ACTIVE by its blob, STALE by a commit, restored without a file on
    disk, and nobody says it was removed. A file that is not on disk shows no diagnostic; the list has it.

    Fails if `git.queries.Repository.working_contents` does not ask the index for what a sparse checkout leaves out.
    """
    other = Repo(bench.folder / "other", {}, born=False)
    other.git("pull", "-q", str(repo.path), "main")
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/gov.py")
    assert not (repo.path / "gov.py").exists()
    with bench.session(repo.path) as s:
        assert status_of(s, identity) == "active"
        second = s.record("gov.py", title="Recorded without the file")
        other.commit("theirs", {"gov.py": changed(3)})
        repo.git("pull", "-q", "--ff-only", str(other.path), "main")
        for row in (detail_of(s, identity), detail_of(s, second)):
            assert row["status"] == "stale"
            assert "gov.py was changed by" in row["statusReason"]
        s.call("decisions.restore", ids=[identity, second])
        assert status_of(s, identity) == "active"
        assert s.messages() == []
        assert s.publications(repo.uri("gov.py")) == []


@pytest.mark.parametrize(("flood_s", "share"), [(1.0, 0.3), also(30.0, 0.05)], ids=["short", "whole"])
@pytest.mark.slow
def test_g30_packed_refs_and_a_busy_git_folder(bench: Bench, repo: Repo, flood_s: float, share: float) -> None:
    """G30: with all refs packed a commit is noticed by itself; files of `.git` that change sixty times a second cost
    next to nothing and slow no hover.

    Fails if `git.place.head_stamp` leaves out the branch's ref and the log.
    """
    gov = repo.uri("gov.py")
    repo.git("pack-refs", "--all")
    repo.git("gc", "-q")
    assert not any(path.is_file() for path in (repo.path / ".git/refs/heads").rglob("*"))
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.until_stale(gov, identity)
        server = psutil.Process(s.client.process.pid)
        before, started, slowest = _cpu(server), time.monotonic(), 0.0
        while time.monotonic() - started < flood_s:
            for name in ("FETCH_HEAD", "ORIG_HEAD.lock", "objects/maintenance.lock", "packed-refs"):
                (repo.path / ".git" / name).touch()
            time.sleep(1 / 60)
        used = (_cpu(server) - before) / (time.monotonic() - started)
        for _ in range(5):
            asked = time.monotonic()
            s.hover(gov)
            slowest = max(slowest, time.monotonic() - asked)
        print(f"{used:.1%} of a core in the flood, slowest hover {slowest * 1000:.0f} ms")
        assert used < share
        assert slowest < 3
        for name in ("ORIG_HEAD.lock", "objects/maintenance.lock"):
            (repo.path / ".git" / name).unlink()


def _cpu(process: psutil.Process) -> float:
    times: Any = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def test_g30_reftable(bench: Bench, tmp_path: Path) -> None:
    """G30 in a repository whose refs are tables.

    Fails if `git.place.head_stamp` leaves out `reftable/tables.list`.
    """
    made = bench.run("git", "init", "-q", "-b", "main", "--ref-format=reftable", "table", cwd=tmp_path)
    if made.returncode != 0:
        pytest.skip("this git makes no reftable repositories")
    repo = Repo(tmp_path / "table")
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        repo.commit("change", {"gov.py": changed(3)})
        s.until_stale(repo.uri("gov.py"), identity)


@pytest.mark.parametrize("idle_s", [2.0, also(60.0)])
@pytest.mark.slow
def test_g31_our_git_wakes_nobody(bench: Bench, repo: Repo, idle_s: float) -> None:
    """G31: with a file system monitor that writes into `.git` whenever git asks it, an idle server starts git a few
    times at most, and never the monitor.

    Fails if `git.process._OPTIONS` leaves `core.fsmonitor` as it is.
    """
    asked, calls = bench.folder / "asked", bench.folder / "calls"
    monitor = program(bench.folder / "bin/monitor", f"echo 1 >>{asked}\ntouch .git/cookie-$$\nprintf '/\\0'")
    shim = program(bench.folder / "bin/git", f'echo "$@" >>{calls}\nexec {real_git()} "$@"')
    repo.git("config", "core.fsmonitor", str(monitor))
    repo.git("update-index", "--fsmonitor")
    n_asked = len(asked.read_text().splitlines())
    settings = {"git": {"path": str(shim)}, "index": {"enabled": True}}
    with bench.session(repo.path, settings=settings) as s:
        s.until(lambda: s.client.request("neuralmind/status", {})["ready"], 60)
        s.record("gov.py")
        s.open(repo.uri("gov.py"), GOV)
        # What the work of getting ready started has ended when nothing new comes for a while.
        s.until(lambda: time.time() - calls.stat().st_mtime > 1)
        n_before = len(calls.read_text().splitlines())
        (repo.path / ".git/cookie").touch()
        time.sleep(idle_s)
        new = calls.read_text().splitlines()[n_before:]
        assert len(new) <= 5 + idle_s / 10, new
        nudge(s, repo.uri("gov.py"), "scan")
        s.call("decisions.list", status="at-risk")
        assert len(asked.read_text().splitlines()) == n_asked
    repo.git("config", "--unset", "core.fsmonitor")
