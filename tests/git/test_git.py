"""git access: what it answers, what it never does, and how it says that it cannot answer."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.changes import Change
from nm_lsp.git import Git, Repository, discover, head_stamp, operation_in_progress
from nm_lsp.git.filters import TRUST_KEY, FilterNotRun
from nm_lsp.git.process import environment

Sandbox = Any
Opened = Callable[[], Repository]


def test_the_place_of_a_work_tree_a_linked_one_and_a_bare_one(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.commit("one", a="1\n")
    sandbox.write("sub/deep/b", "2\n")
    main = discover(sandbox.root / "sub" / "deep")
    assert main is not None
    assert (main.work_tree, main.git_dir, main.linked) == (sandbox.root, sandbox.root / ".git", False)
    assert (main.bare, main.shallow, main.id_length) == (False, False, 40)
    sandbox.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    linked = discover(tmp_path / "linked")
    assert linked is not None
    assert (linked.work_tree, linked.common_dir, linked.linked) == (tmp_path / "linked", sandbox.root / ".git", True)
    trees = sandbox.open().work_trees()
    assert [(tree.path, tree.branch) for tree in trees] == [(sandbox.root, "main"), (tmp_path / "linked", "topic")]
    sandbox.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = discover(tmp_path / "bare.git")
    assert bare is not None
    assert (bare.bare, bare.work_tree) == (True, None)
    sandbox.git("clone", "-q", "--depth", "1", f"file://{sandbox.root}", str(tmp_path / "shallow"))
    shallow = discover(tmp_path / "shallow")
    assert shallow is not None
    assert shallow.shallow


def test_no_repository_is_none_and_the_git_folder_is_no_workspace(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert discover(tmp_path / "plain") is None
    assert discover(sandbox.root / ".git") is None


def test_head_on_an_unborn_branch_a_branch_and_detached(sandbox: Sandbox, opened: Opened) -> None:
    repository = opened()
    assert (repository.head().commit, repository.head().branch) == (None, "main")
    assert repository.head().unborn
    first = sandbox.commit("one", a="1\n")
    assert (repository.head().commit, repository.head().branch) == (first, "main")
    sandbox.git("checkout", "-q", "--detach")
    assert (repository.head().commit, repository.head().branch) == (first, None)


def test_the_stamp_of_head_moves_with_every_kind_of_move_and_rests_otherwise(sandbox: Sandbox, opened: Opened) -> None:
    first = sandbox.commit("one", a="1\n")
    place = opened().place
    seen = [head_stamp(place)]
    assert head_stamp(place) == seen[0]
    sandbox.write("a", "dirty\n")
    assert head_stamp(place) == seen[0]
    sandbox.commit("two")
    seen.append(head_stamp(place))
    sandbox.git("update-ref", "refs/heads/main", first)
    seen.append(head_stamp(place))
    sandbox.git("pack-refs", "--all")
    seen.append(head_stamp(place))
    sandbox.git("checkout", "-q", "-b", "topic")
    seen.append(head_stamp(place))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    ("file", "operation"),
    [
        ("rebase-merge", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("BISECT_LOG", "bisect"),
    ],
)
def test_an_operation_in_progress_is_seen(sandbox: Sandbox, opened: Opened, file: str, operation: str) -> None:
    place = opened().place
    assert operation_in_progress(place) is None
    (place.git_dir / file).touch()
    assert operation_in_progress(place) == operation


def test_the_graph_and_the_differences_of_a_merge_by_parent(sandbox: Sandbox, opened: Opened) -> None:
    first = sandbox.commit("one", a="1\n", b="1\n")
    sandbox.git("checkout", "-q", "-b", "topic")
    topic = sandbox.commit("topic", a="2\n")
    sandbox.git("checkout", "-q", "main")
    main = sandbox.commit("main", b="2\n")
    sandbox.git("merge", "-q", "--no-ff", "topic")
    merge = sandbox.git("rev-parse", "HEAD")
    repository = opened()
    graph = repository.commits([merge])
    assert graph[0] == (merge, (main, topic))
    assert dict(graph)[first] == ()
    assert [row[0] for row in repository.commits([merge], known=[main])] == [merge, topic]
    by_main, by_topic, root = repository.differences([(main, merge), (topic, merge), (None, first)])
    assert [change.path for change in by_main] == ["a"]
    assert [change.path for change in by_topic] == ["b"]
    one = sandbox.git("rev-parse", f"{first}:a")
    assert root == (Change("a", None, one), Change("b", None, one))
    assert repository.differences([(topic, main)])[0][0].path == "a"
    assert repository.is_ancestor(first, merge)
    assert not repository.is_ancestor(topic, main)
    assert repository.first_parents(merge, 200) == (main, first)


def test_modes_links_and_submodules_in_differences(sandbox: Sandbox, opened: Opened, tmp_path: Path) -> None:
    first = sandbox.commit("one", a="same", b="target", c="1\n")
    sandbox.git("update-index", "--chmod=+x", "a")
    sandbox.git("commit", "-q", "-m", "mode")
    mode = sandbox.git("rev-parse", "HEAD")
    sandbox.git("reset", "-q", "--hard")
    (sandbox.root / "b").unlink()
    (sandbox.root / "b").symlink_to("target")
    link = sandbox.commit("link")
    inner = type(sandbox)(tmp_path / "inner")
    inner_head = inner.commit("inner", x="1\n")
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "lib")
    sub = sandbox.commit("submodule")
    repository = opened()
    by_mode, by_link, by_sub = repository.differences([(first, mode), (mode, link), (link, sub)])
    assert by_mode == ()
    blob = sandbox.git("rev-parse", f"{first}:b")
    assert by_link == (Change("b", blob, "link:" + blob),)
    assert Change("lib", None, "commit:" + inner_head) in by_sub
    assert repository.submodules() == {"lib"}
    assert repository.contents(sub, ["lib", "b"]) == {"lib": "commit:" + inner_head, "b": "link:" + blob}
    assert repository.working_contents(["lib", "b"]) == {"lib": "commit:" + inner_head, "b": "link:" + blob}
    assert repository.blob("link:" + blob) == b"target"


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes are a matter of Linux")
def test_names_of_all_kinds_come_through(sandbox: Sandbox, opened: Opened) -> None:
    names = ["ünï/файл 文.py", "u\u0308/nfd.py", 'quo"te\\.py', "new\nline.py", "tab\t.py", "*.py", ":(top)x", "-rf"]
    names.append(b"latin\xe9.py".decode("utf-8", "surrogateescape"))
    for number, path in enumerate(names):
        file = sandbox.root / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n")
    head = sandbox.commit("names")
    repository = opened()
    assert set(repository.listing()) == set(names)
    assert set(repository.files(head)) == set(names)
    assert {change.path for change in repository.differences([(None, head)])[0]} == set(names)
    committed = repository.contents(head, names)
    assert committed == repository.working_contents(names)
    assert len(set(committed.values())) == len(names)
    assert repository.contents(head, ["*.py"]).keys() == {"*.py"}
    assert set(repository.tracked(names)) == set(names)


def test_the_work_tree_is_hashed_through_the_filters(sandbox: Sandbox, opened: Opened) -> None:
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.write(".gitattributes", "*.txt text eol=crlf\n*.raw -text\n")
    for path in ("a.py", "b.txt", "c.raw"):
        sandbox.write(path, "one\r\ntwo\r\n")
    head = sandbox.commit("crlf")
    repository = opened()
    committed = repository.files(head)
    assert repository.working_contents(["a.py", "b.txt", "c.raw"]) == {
        p: committed[p] for p in ("a.py", "b.txt", "c.raw")
    }
    assert committed["a.py"] != committed["c.raw"]
    assert repository.hash_text("a.py", b"one\r\ntwo\r\n") == committed["a.py"]
    assert repository.hash_text("c.raw", b"one\r\ntwo\r\n") == committed["c.raw"]
    sandbox.write("a.py", "other\r\n")
    assert repository.working_contents(["a.py", "gone.py", "."])["a.py"] != committed["a.py"]
    assert repository.working_contents(["gone.py", "../x"]) == {"gone.py": None, "../x": None}
    assert "a.py" in repository.uncommitted(repository.head())
    assert "b.txt" not in repository.uncommitted(repository.head())


def test_what_a_sparse_checkout_leaves_out_is_not_gone(sandbox: Sandbox, opened: Opened) -> None:
    sandbox.write("in/a", "1\n")
    sandbox.write("out/b", "2\n")
    head = sandbox.commit("two folders")
    sandbox.git("sparse-checkout", "set", "in")
    assert not (sandbox.root / "out").exists()
    repository = opened()
    assert repository.working_contents(["in/a", "out/b"]) == repository.contents(head, ["in/a", "out/b"])


def test_the_listing_has_untracked_files_but_no_ignored_ones(sandbox: Sandbox, opened: Opened) -> None:
    sandbox.write(".gitignore", "*.log\n")
    sandbox.commit("one", a="1\n", kept="1\n")
    sandbox.write("x.log", "")
    sandbox.write("new file", "")
    repository = opened()
    assert sorted(repository.listing()) == [".gitignore", "a", "kept", "new file"]
    assert repository.ignored(["x.log", "deep/y.log", "a", "new file"]) == {"x.log", "deep/y.log"}
    assert repository.ignored([":(top)x", "*", ":!a.log"]) == {":!a.log"}


def test_blobs_are_read_by_one_child_that_ends_cleanly(sandbox: Sandbox, opened: Opened) -> None:
    head = sandbox.commit("one", a="1\n", empty="")
    repository = opened()
    files = repository.files(head)
    assert repository.blob(files["a"]) == b"1\n"
    assert repository.blob(files["empty"]) == b""
    assert repository.blob("0" * 39 + "1") is None
    assert repository.blob(head) is None
    assert repository.blob("HEAD\n") is None
    child = repository.blobs._child
    assert child is not None
    assert repository.blob(files["a"]) == b"1\n"
    assert repository.blobs._child is child
    repository.close()
    assert child.returncode is not None
    assert repository.blob(files["a"]) == b"1\n"
    assert repository.present([files["a"], "0" * 39 + "1", head]) == {files["a"], head}


def test_a_blob_that_a_partial_clone_left_out_is_missing_and_not_fetched(sandbox: Sandbox, tmp_path: Path) -> None:
    head = sandbox.commit("one", a="1\n")
    later = sandbox.commit("two", a="2\n")
    sandbox.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    sandbox.git("clone", "-q", "--filter=blob:none", f"file://{sandbox.root}", str(clone))
    with sandbox.open(clone) as repository:
        before = {file for file in (clone / ".git" / "objects").rglob("*") if file.is_file()}
        old, new = repository.files(head)["a"], repository.files(later)["a"]
        assert repository.blob(old) is None
        assert repository.blob(new) == b"2\n"
        assert repository.differences([(head, later)]) == [(Change("a", old, new),)]
        assert {file for file in (clone / ".git" / "objects").rglob("*") if file.is_file()} == before


def test_history_for_messages(sandbox: Sandbox, opened: Opened) -> None:
    first = sandbox.commit("ünï subject\n\nbody", a="1\n")
    repository = opened()
    info = repository.describe([first, "0" * 39 + "1", first])
    assert list(info) == [first]
    assert (info[first].author, info[first].email, info[first].subject) == ("Ada", "ada@example.org", "ünï subject")
    assert info[first].time_s > 1_700_000_000
    assert repository.user() == "Ada <ada@example.org>"
    assert repository.default_branch() == "main"
    assert repository.root_commits(first) == [first]
    assert repository.resolve("main") == first
    assert repository.resolve("nonsense") is None
    assert repository.resolve("--all") is None


def test_a_similar_file_is_found_whatever_the_user_configured(sandbox: Sandbox, opened: Opened) -> None:
    sandbox.git("config", "diff.renames", "false")
    text = "".join(f"line {number}\n" for number in range(40))
    first = sandbox.commit("one", old=text)
    (sandbox.root / "old").unlink()
    second = sandbox.commit("two", new=text + "more\n")
    assert opened().similar(first, second, "old") == "new"
    assert opened().similar(first, second, "other") is None


def test_no_variable_of_another_repository_reaches_git(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = type(sandbox)(tmp_path / "other")
    other.commit("other", x="1\n")
    mine = sandbox.commit("mine", a="1\n")
    names = sandbox.git("rev-parse", "--local-env-vars").split()
    for name in names:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git" / "index"))
    ours = environment()
    assert {name for name in names if name in ours} <= {"GIT_NO_REPLACE_OBJECTS"}
    repository = sandbox.open()
    assert repository.head().commit == mine
    assert repository.listing() == ["a"]
    expected = {"GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    assert ours | expected == ours


def test_programs_the_repository_configures_are_not_run(sandbox: Sandbox, opened: Opened, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    sandbox.write(".gitattributes", "* diff=odd\n")
    first = sandbox.commit("one", a="1\n")
    second = sandbox.commit("two", a="2\n")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "post-checkout", "reference-transaction"):
        (hooks / name).symlink_to(program)
    for key in ("core.fsmonitor", "diff.external", "diff.odd.textconv", "diff.odd.command", "core.pager"):
        sandbox.git("config", key, str(program))
    sandbox.git("config", "core.hooksPath", str(hooks))
    mark.unlink(missing_ok=True)
    repository = opened()
    index = (sandbox.root / ".git" / "index").stat().st_mtime_ns
    repository.differences([(first, second)])
    repository.similar(first, second, "a")
    repository.listing()
    repository.uncommitted(repository.head())
    repository.working_contents(["a"])
    repository.describe([first])
    assert not mark.exists()
    assert (sandbox.root / ".git" / "index").stat().st_mtime_ns == index
    assert repository.hooks_folder() == hooks


def test_a_missing_git_says_so(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(GitUnavailable, match=r"cannot be started.*git\.path"):
        discover(sandbox.root, executable=str(tmp_path / "nothing"))
    broken = tmp_path / "git"
    broken.write_text("#!/bin/sh\necho oops >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(GitUnavailable, match="oops"):
        discover(sandbox.root, executable=str(broken))


def test_dubious_ownership_names_the_command_to_run(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.commit("one", a="1\n")
    repository = sandbox.open()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(GitUnavailable, match="another user") as caught:
        discover(sandbox.root)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"git config --global --add safe.directory {sandbox.root}")
    with pytest.raises(GitUnavailable, match="another user"):
        repository.head()


def test_a_git_that_hangs_is_ended_with_what_it_started(sandbox: Sandbox, tmp_path: Path) -> None:
    slow = tmp_path / "git"
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 60 & echo $! > {tmp_path}/child\nwait\n")
    slow.chmod(0o755)
    git = Git(sandbox.root, executable=str(slow), timeout_s=0.3)
    with pytest.raises(GitUnavailable, match=r"did not answer within 0\.3 seconds"):
        git.run("status")
    for name in ("pid", "child"):
        # A killed process may end a moment after the signal; that it does not end is a TimeoutExpired.
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(int((tmp_path / name).read_text())).wait(timeout=10)


def test_a_clean_filter_that_hangs_is_a_git_that_does_not_answer(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write(".gitattributes", "*.big filter=slow\n")
    sandbox.commit("one", a="1\n")
    (tmp_path / "own").write_text('[filter "slow"]\n\tclean = sleep 60\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "own"))
    sandbox.write("x.big", "1\n")
    place = discover(sandbox.root)
    assert place is not None
    with Repository(place, timeout_s=0.3) as repository, pytest.raises(GitUnavailable, match="did not answer"):
        repository.working_contents(["x.big"])


def test_a_filter_of_the_repository_runs_only_where_the_user_trusts_it(
    sandbox: Sandbox, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    sandbox.write(".gitattributes", "*.big filter=odd.name\n")
    sandbox.commit("one", a="1\n")
    sandbox.git("config", "filter.odd.name.clean", f"touch {mark}; cat")
    sandbox.git("config", TRUST_KEY, str(sandbox.root))
    sandbox.write("x.big", "1\n")
    repository = opened()
    plain = repository.working_contents(["a"])["a"]
    for ask in (lambda: repository.working_contents(["a", "x.big"]), lambda: repository.hash_text("x.big", b"1\n")):
        with pytest.raises(FilterNotRun, match=r"'x\.big' goes through the filter 'odd\.name'") as refusal:
            ask()
    assert repository.unknowable(["a", "x.big"]) == {"x.big": "odd.name"}
    assert not mark.exists(), "a repository that trusts itself is not trusted"
    command = str(refusal.value.hint).partition("run: ")[2]
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "own"))
    subprocess.run(["sh", "-c", command], check=True, cwd=tmp_path)
    assert repository.working_contents(["a", "x.big"]) == {"a": plain, "x.big": plain}
    assert mark.exists()
    # A git of the time before it could say where a value stands trusts no repository's filters.
    real = shutil.which("git")
    old = tmp_path / "git"
    old.write_text(
        f'#!/bin/sh\ncase "$*" in *--show-scope*) echo "error: unknown option \\`show-scope\'" >&2; exit 129;; esac\n'
        f'exec {real} "$@"\n'
    )
    old.chmod(0o755)
    with Repository(repository.place, executable=str(old)) as aged:
        assert aged.unknowable(["a", "x.big"]) == {"x.big": "odd.name"}
        assert aged.working_contents(["a"]) == {"a": plain}


def test_git_is_not_taken_from_the_folder_it_is_asked_about(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write("git", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (sandbox.root / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(sandbox.root)
    assert Git(sandbox.root).run("--version").startswith(b"git version")
    for name in ("./git", "sub/../git"):
        with pytest.raises(GitUnavailable, match="cannot be started"):
            Git(sandbox.root, executable=name).run("--version")
    assert not (tmp_path / "ran").exists()


def test_what_lies_behind_a_link_is_not_read(sandbox: Sandbox, opened: Opened, tmp_path: Path) -> None:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "key.py").write_text("KEY = 1\n")
    sandbox.commit("one", **{"d/key.py": "public = 1\n"})
    shutil.rmtree(sandbox.root / "d")
    (sandbox.root / "d").symlink_to(secret)
    repository = opened()
    assert "d/key.py" in repository.listing(), "git names it still"
    assert repository.working_contents(["d/key.py"]) == {"d/key.py": None}


def test_no_process_is_left_behind(sandbox: Sandbox) -> None:
    head = sandbox.commit("one", a="1\n")
    before = set(psutil.Process().children())
    with sandbox.open() as repository:
        repository.blob(repository.files(head)["a"])
        assert set(psutil.Process().children()) - before, "the reader of blobs is a process"
    assert not set(psutil.Process().children()) - before
