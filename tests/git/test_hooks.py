"""Our git hooks against real repositories and real shells: what they note, leave alone and give back."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nm_lsp.base.errors import Refused
from nm_lsp.engine import hooks
from nm_lsp.engine.rewrites import read_rewrites
from nm_lsp.git import discover
from nm_lsp.git.hook_log import START, log_folder, read_log, roll_if_large
from nm_lsp.git.hook_script import HOOKS, block, is_shell_script, with_block, without_block
from nm_lsp.git.hooks import HookState

Sandbox = Any
SHELLS = ["dash", "bash", "bash --posix", "dash -eu", "bash -eu"]
Snapshot = dict[str, tuple[str, int, bytes]]


def snapshot(folder: Path) -> Snapshot:
    """Every entry below `folder`: its kind, mode and bytes (a link's target)."""
    found: Snapshot = {}
    for path in sorted(folder.rglob("*")):
        name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", stat.S_IMODE(mode), b"")
        else:
            found[name] = ("file", stat.S_IMODE(mode), path.read_bytes())
    return found


def put(path: Path, text: str | bytes, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def noted(common_dir: Path) -> list[str]:
    return [line.hook for line in read_log(common_dir)[0]]


def states(result: hooks.HooksResult) -> set[str]:
    return {row.state for row in result.hooks}


@pytest.fixture
def repo(sandbox: Sandbox) -> Sandbox:
    sandbox.commit("first", **{"a.py": "a = 1\n"})
    return sandbox


# -- what they note --------------------------------------------------------------------------------------------------


def test_every_event_leaves_one_line_and_nothing_else(repo: Sandbox) -> None:
    first = repo.git("rev-parse", "HEAD")
    result = hooks.install(repo.root)
    assert result.active
    second = repo.commit("second", **{"a.py": "a = 2\n"})
    repo.git("checkout", "-q", "-b", "side", first)
    side = repo.commit("side", **{"b.py": "b\n"})
    repo.git("merge", "-q", "--no-edit", "main")
    repo.git("reset", "-q", "--hard", side)
    repo.git("commit", "-q", "--amend", "-m", "said better")
    amended = repo.git("rev-parse", "HEAD")
    lines, _ = read_log(repo.root / ".git")
    assert [(line.hook, line.commit, line.ref) for line in lines[:3]] == [
        ("post-commit", second, "refs/heads/main"),
        ("post-checkout", first, "refs/heads/side"),
        ("post-commit", side, "refs/heads/side"),
    ]
    assert lines[1].words == (second, first, "1")
    assert lines[3].hook == "post-merge"
    assert lines[-1].words == ("amend", side, amended)
    assert repo.git("status", "--porcelain") == ""


def test_a_rebase_tells_every_pair(repo: Sandbox) -> None:
    hooks.install(repo.root)
    repo.git("checkout", "-q", "-b", "side")
    old = [repo.commit(f"side {n}", **{f"s{n}.py": "x\n"}) for n in range(3)]
    repo.git("checkout", "-q", "main")
    repo.commit("main", **{"m.py": "m\n"})
    repo.git("rebase", "-q", "main", "side")
    new = repo.git("rev-list", "--reverse", "main..side").split()
    place = discover(repo.root)
    assert place is not None
    found = read_rewrites(place)
    assert found.pairs == tuple(zip(old, new, strict=True))
    assert read_rewrites(place, known=found.pairs[:1]).pairs == found.pairs[1:]
    assert read_rewrites(place, since=found.offset).pairs == ()


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_hooks_work_without_path_home_or_git(repo: Sandbox, shell: str) -> None:
    hooks.install(repo.root)
    for hook in HOOKS:
        for extra in ({}, {"GIT_DIR": ".git"}, {"GIT_DIR": str(repo.root / ".git"), "EPOCHSECONDS": "no number"}):
            done = subprocess.run(
                [f"/usr/bin/{shell}", repo.root / ".git/hooks" / hook, "one", "two", "three"],
                cwd=repo.root, env={"PATH": "/nonexistent", **extra}, input=b"a b\n", capture_output=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert noted(repo.root / ".git") == [hook for hook in HOOKS for _ in range(3)]


def test_hooks_start_no_process(repo: Sandbox, tmp_path: Path) -> None:
    """A PATH on which every program would leave a trace."""
    hooks.install(repo.root)
    trap = tmp_path / "bin"
    for name in ("git", "date", "cat", "sed", "printf", "echo", "test", "[", "pwd", "dirname", "true", "expr"):
        put(trap / name, f"#!/bin/sh\n: >'{tmp_path}/started'\n")
    subprocess.run(["/usr/bin/dash", ".git/hooks/post-commit"], cwd=repo.root, env={"PATH": str(trap)}, check=True)
    assert noted(repo.root / ".git") == ["post-commit"]
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("obstacle", ["no folder", "log is a folder", "read-only", "no HEAD", "no git dir"])
def test_nothing_in_the_way_fails_the_commit(repo: Sandbox, obstacle: str, tmp_path: Path) -> None:
    hooks.install(repo.root)
    notes, cwd = log_folder(repo.root / ".git"), repo.root
    match obstacle:
        case "no folder":
            notes.rmdir()
        case "log is a folder":
            (notes / "hooks.log").mkdir()
        case "read-only":
            put(notes / "hooks.log", "", 0o444)
            notes.chmod(0o555)
        case "no HEAD":
            (repo.root / ".git/HEAD").rename(repo.root / ".git/HEAD.away")
        case _:
            cwd = tmp_path
    for shell in ("dash", "bash"):
        for hook in HOOKS:
            done = subprocess.run(
                [shell, repo.root / ".git/hooks" / hook], cwd=cwd, env={"PATH": "/usr/bin:/bin"}, input=b"a b\n",
                capture_output=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_linked_work_trees_share_the_notes(repo: Sandbox, tmp_path: Path) -> None:
    linked = tmp_path / "linked tree"
    repo.git("worktree", "add", "-q", str(linked), "-b", "side")
    assert hooks.install(linked).active
    repo.git("commit", "-q", "--allow-empty", "-m", "in the linked one", at=linked)
    lines, _ = read_log(repo.root / ".git")
    assert [(line.hook, line.ref) for line in lines] == [("post-commit", "refs/heads/side")]
    assert lines[0].tree is not None
    assert lines[0].commit == repo.git("rev-parse", "side")
    assert hooks.status(repo.root).active


def test_bare_repository_with_work_trees(repo: Sandbox, tmp_path: Path) -> None:
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    repo.git("clone", "-q", "--bare", str(repo.root), str(bare))
    repo.git("-C", str(bare), "worktree", "add", "-q", str(tree), "main")
    assert hooks.install(tree).active
    repo.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x", at=tree)
    assert noted(bare) == ["post-commit"]
    assert hooks.status(bare).active


def test_submodule(repo: Sandbox, tmp_path: Path) -> None:
    inner = type(repo)(tmp_path / "inner")
    inner.commit("inner", **{"i.py": "i\n"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    sub = repo.root / "sub"
    assert hooks.install(sub).active
    repo.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x", at=sub)
    assert noted(repo.root / ".git/modules/sub") == ["post-commit"]
    assert noted(repo.root / ".git") == []


# -- hooks that were there -------------------------------------------------------------------------------------------

SCRIPTS = {
    "falls through": "#!/bin/sh\necho old \"$@\"\ncat\n",
    "no newline at the end": "#!/usr/bin/env bash\necho old \"$@\"; cat; exit 3",
    "exec at the end": "#!/bin/sh -e\nexec cat\n",
    "exits early": "#!/bin/bash\ncat\nexit 4\necho never\n",
    "flags": "#!/bin/sh -eu\nfalse || echo \"${1-}\"\ncat\nfalse\n",
    "python": "#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:], sys.stdin.read())\nsys.exit(5)\n",
    "polyglot": "#!/bin/sh\n''':'\nexec python3 \"$0\" \"$@\"\n'''\nimport sys\nprint(sys.stdin.read())\n",
    "reads itself": "#!/bin/sh\ntail -n 1 \"$0\"\ncat\nexit 6\ndata\n",
    "no interpreter line": "echo old \"$@\"\ncat\n",
    "carriage returns": "#!/bin/sh\nbroken\r\n",
    "asks its name": "#!/bin/sh\nbasename \"$0\"; cat\n",
}  # fmt: skip


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_hook_that_was_there_works_as_before(repo: Sandbox, hook: str, script: str) -> None:
    path = put(repo.root / ".git/hooks" / hook, SCRIPTS[script])
    before = snapshot(path.parent)

    def run() -> tuple[int, bytes]:
        # Through execve as git does it, which hands a file without an interpreter line to the shell.
        done = subprocess.run(
            ["/bin/sh", "-c", '"$@"', "sh", f".git/hooks/{hook}", "amend", "two words"],
            cwd=repo.root, input=b"old new\nolder newer\n", capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    expected = run()
    assert hooks.install(repo.root).active
    assert run() == expected
    assert noted(repo.root / ".git") == [hook] * (2 if hook == "post-rewrite" else 1)
    assert hooks.install(repo.root).active, "installing again changes nothing"
    assert run() == expected
    assert hooks.uninstall(repo.root).notes == ()
    assert snapshot(path.parent) == before
    assert not log_folder(repo.root / ".git").exists()


@pytest.mark.parametrize("relative", [True, False])
def test_a_linked_hook_is_not_written_through(repo: Sandbox, relative: bool) -> None:
    script = put(repo.root / "scripts/hook.sh", '#!/bin/sh\necho "${0##*/}"; exit 2\n')
    path = repo.root / ".git/hooks/post-commit"
    path.symlink_to("../../scripts/hook.sh" if relative else script)
    before = snapshot(repo.root)
    assert hooks.install(repo.root).active
    assert script.read_bytes() == before["scripts/hook.sh"][2]
    done = subprocess.run([".git/hooks/post-commit"], cwd=repo.root, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"post-commit\n")
    hooks.uninstall(repo.root)
    assert snapshot(repo.root) == before


def test_a_hook_that_git_does_not_run_stays_silent(repo: Sandbox) -> None:
    path = put(repo.root / ".git/hooks/post-commit", "#!/bin/sh\necho loud\nexit 1\n", 0o644)
    before = snapshot(path.parent)
    assert hooks.install(repo.root).active
    done = subprocess.run([path], cwd=repo.root, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    hooks.uninstall(repo.root)
    assert snapshot(path.parent) == before


def test_removal_keeps_what_another_tool_wrote_around_the_block(repo: Sandbox) -> None:
    path = put(repo.root / ".git/hooks/post-commit", "#!/bin/sh\n# mine\r\n\xff\n".encode("latin-1"), 0o700)
    hooks.install(repo.root)
    edited = path.read_bytes().replace(b"# mine", b"# theirs") + b"echo more"
    path.write_bytes(edited)
    new = repo.root / ".git/hooks/post-merge"
    new.write_bytes(new.read_bytes() + b"echo added\n")
    assert hooks.uninstall(repo.root).notes == ()
    assert path.read_bytes() == "#!/bin/sh\n# theirs\r\n\xff\necho more".encode("latin-1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert new.read_bytes() == b"#!/bin/sh\necho added\n"
    assert not (repo.root / ".git/hooks/post-checkout").exists()


def test_a_hook_written_anew_over_ours_is_left_and_the_kept_one_is_named(repo: Sandbox) -> None:
    path = put(repo.root / ".git/hooks/post-commit", "#!/usr/bin/env python3\n")
    hooks.install(repo.root)
    put(path, "#!/bin/sh\necho new\n")
    assert hooks.status(repo.root).hooks[0].state == "missing"
    (note,) = hooks.uninstall(repo.root).notes
    assert "nm-lsp-former/post-commit" in note
    assert path.read_text() == "#!/bin/sh\necho new\n"
    assert (path.parent / "nm-lsp-former/post-commit").read_text() == "#!/usr/bin/env python3\n"


def test_the_hooks_folder_is_made_and_removed(repo: Sandbox) -> None:
    folder = repo.root / ".git/hooks"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    before = snapshot(repo.root)
    assert hooks.install(repo.root).active
    hooks.uninstall(repo.root)
    assert snapshot(repo.root) == before


def test_pre_commit_installed_over_ours_still_runs_it(repo: Sandbox) -> None:
    """pre-commit keeps a hook it finds as `<hook>.legacy` and runs it first."""
    hooks.install(repo.root)
    path = repo.root / ".git/hooks/post-commit"
    path.rename(path.with_name("post-commit.legacy"))
    put(path, '#!/bin/sh\n# File generated by pre-commit\n"$0.legacy" "$@"\n')
    assert hooks.status(repo.root).active
    repo.commit()
    assert noted(repo.root / ".git") == ["post-commit"]
    hooks.uninstall(repo.root)
    assert not path.with_name("post-commit.legacy").exists()
    assert "pre-commit" in path.read_text()


# -- core.hooksPath --------------------------------------------------------------------------------------------------


def test_tracked_folder_is_written_on_force_alone(repo: Sandbox) -> None:
    put(repo.root / ".githooks/pre-push", "#!/bin/sh\n")
    repo.commit("hooks")
    repo.git("config", "core.hooksPath", ".githooks")
    before = snapshot(repo.root)
    with pytest.raises(Refused, match="shared"):
        hooks.install(repo.root)
    assert snapshot(repo.root) == before
    assert hooks.install(repo.root, force=True).active
    repo.commit("again")
    assert "post-commit" in noted(repo.root / ".git")
    hooks.uninstall(repo.root)
    assert not (repo.root / ".githooks/post-commit").exists()


@pytest.mark.parametrize("absolute", [True, False])
def test_husky(repo: Sandbox, absolute: bool) -> None:
    inner = repo.root / ".husky/_"
    put(
        inner / "h",
        '#!/usr/bin/env sh\nn=$(basename "$0")\ns=$(dirname "$(dirname "$0")")/$n\n'
        '[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\n',
    )
    put(inner / ".gitignore", "*")
    for hook in HOOKS:
        put(inner / hook, '#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
    put(repo.root / ".husky/post-commit", "true\n", 0o644)
    repo.commit("husky")
    repo.git("config", "core.hooksPath", str(inner) if absolute else ".husky/_")
    before = snapshot(repo.root / ".husky")
    with pytest.raises(Refused, match="husky"):
        hooks.install(repo.root)
    assert hooks.install(repo.root, force=True).active
    repo.git("commit", "-q", "--amend", "--allow-empty", "-m", "x")
    assert noted(repo.root / ".git") == ["post-commit", "post-rewrite"]
    hooks.uninstall(repo.root)
    assert snapshot(repo.root / ".husky") == before


def test_a_folder_outside_serves_others_too(repo: Sandbox, tmp_path: Path) -> None:
    shared = tmp_path / "shared hooks"
    shared.mkdir()
    repo.git("config", "core.hooksPath", str(shared))
    with pytest.raises(Refused, match="outside"):
        hooks.install(repo.root)
    assert list(shared.iterdir()) == []
    result = hooks.install(repo.root, force=True)
    assert result.active
    assert "all repositories" in result.notes[0]
    other = type(repo)(tmp_path / "other")
    other.git("config", "core.hooksPath", str(shared))
    other.commit()
    assert not log_folder(other.root / ".git").exists(), "another repository gets no notes"
    assert not hooks.status(other.root).active
    assert "--force" in hooks.uninstall(repo.root).notes[0]
    assert (shared / "post-commit").exists()
    hooks.uninstall(repo.root, force=True)
    assert list(shared.iterdir()) == []


def test_switched_off_hooks_are_said_plainly(repo: Sandbox) -> None:
    repo.git("config", "core.hooksPath", os.devnull)
    with pytest.raises(Refused, match="no folder"):
        hooks.install(repo.root)
    assert hooks.status(repo.root).hooks == ()


def test_a_linked_hooks_folder_is_judged_by_where_it_leads(repo: Sandbox, tmp_path: Path) -> None:
    folder = repo.root / ".git/hooks"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="outside"):
        hooks.install(repo.root)


# -- status ----------------------------------------------------------------------------------------------------------


def test_status_tells_the_truth_per_hook(repo: Sandbox) -> None:
    folder = repo.root / ".git/hooks"
    assert states(hooks.status(repo.root)) == {HookState.MISSING.value}
    hooks.install(repo.root)
    (folder / "post-commit").chmod(0o644)
    (folder / "post-merge").unlink()
    old = (folder / "post-rewrite").read_bytes().replace(b"return 0", b"return 1")
    (folder / "post-rewrite").write_bytes(old)
    put(folder / "post-checkout", "#!/bin/sh\n# lefthook\n")
    result = hooks.status(repo.root)
    assert [row.state for row in result.hooks] == ["disabled", "missing", "outdated", "missing"]
    assert not result.active
    assert "lefthook" in " ".join(result.notes)
    assert hooks.install(repo.root).active
    assert b"return 1" not in (folder / "post-rewrite").read_bytes()


def test_outside_a_repository(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no git repository"):
        hooks.install(tmp_path)


def test_an_inherited_repository_is_not_touched(repo: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = type(repo)(tmp_path / "other")
    other.commit()
    before = snapshot(other.root)
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git/index"))
    assert hooks.install(repo.root).active
    assert snapshot(other.root) == before


# -- the log ---------------------------------------------------------------------------------------------------------

OLD, NEW, NEWER = "a" * 40, "b" * 40, "c" * 40


def note(common: Path, text: str) -> Path:
    path = log_folder(common) / "hooks.log"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(text)
    return path


def pair(old: str, new: str) -> str:
    return f"1 0 post-rewrite - - refs/heads/main rebase {old} {new}\n"


def test_an_unfinished_line_is_read_when_it_is_finished(tmp_path: Path) -> None:
    note(tmp_path, pair(OLD, NEW) + pair(NEW, NEWER)[:-30])
    lines, offset = read_log(tmp_path)
    assert [line.pair() for line in lines] == [(OLD, NEW)]
    note(tmp_path, pair(NEW, NEWER)[-30:])
    lines, offset = read_log(tmp_path, offset)
    assert [line.pair() for line in lines] == [(NEW, NEWER)]
    assert read_log(tmp_path, offset)[0] == []


def test_lines_that_are_not_ours_are_passed_over(tmp_path: Path) -> None:
    wrong = [
        "", "2 0 post-commit - - -", "1 x post-commit - - -", "1 0 pre-push - - -", "\0\0\0",
        f"1 0 post-rewrite - - - amend {OLD}", f"1 0 post-rewrite - - - amend {OLD} {OLD}",
        "1 0 post-rewrite - - - amend --all HEAD",
    ]  # fmt: skip
    note(tmp_path, "\n".join(wrong) + "\n" + pair(OLD, NEW))
    assert [p for line in read_log(tmp_path)[0] if (p := line.pair())] == [(OLD, NEW)]


def test_a_rolled_log_loses_nothing(tmp_path: Path) -> None:
    path = note(tmp_path, pair(OLD, NEW))
    _, offset = read_log(tmp_path)
    with path.open("a") as late:
        assert not roll_if_large(tmp_path, offset)
        assert roll_if_large(tmp_path, offset, limit=10)
        late.write(pair(NEW, NEWER))
    note(tmp_path, pair(NEWER, OLD))
    found = [line.pair() for line in read_log(tmp_path, offset)[0]]
    assert found == [(NEW, NEWER), (NEWER, OLD)]
    assert len(read_log(tmp_path, START)[0]) == 3


def test_an_unread_log_is_not_rolled(tmp_path: Path) -> None:
    note(tmp_path, pair(OLD, NEW))
    _, offset = read_log(tmp_path)
    note(tmp_path, pair(NEW, NEWER))
    assert not roll_if_large(tmp_path, offset, limit=10)


# -- the text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"#!/bin/sh\n", b"#!/bin/sh\nx", b"#!/usr/bin/env bash\n\n\n", b"x\ny"])
def test_taking_out_is_the_inverse_of_putting_in(text: bytes) -> None:
    for hook in HOOKS:
        assert without_block(with_block(text, hook)) == text


# What these tools write, shortened.
PRE_COMMIT = b"""#!/usr/bin/env bash
# File generated by pre-commit: https://pre-commit.com
INSTALL_PYTHON=/usr/bin/python3
ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=post-commit)
HERE="$(cd "$(dirname "$0")" && pwd)"
ARGS+=(--hook-dir "$HERE" -- "$@")
exec "$INSTALL_PYTHON" -mpre_commit "${ARGS[@]}"
"""
LEFTHOOK = b"""#!/bin/sh
if [ "$LEFTHOOK" = "0" ]; then
  exit 0
fi
call_lefthook()
{
  lefthook "$@"
}
call_lefthook run "post-commit" "$@"
"""
GIT_LFS = b"""#!/bin/sh
command -v git-lfs >/dev/null 2>&1 || { echo >&2 "no git-lfs"; exit 2; }
git lfs post-checkout "$@"
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"#!/bin/sh\n", True),
        (b"#!/usr/bin/env bash\n. \"$(dirname \"$0\")/_/husky.sh\"\n", True),
        (b"#!/bin/sh", False),
        (b"#!/bin/bash -x\n", False),
        (b"#!/usr/bin/zsh\n", False),
        (b"#!/usr/bin/perl\n", False),
        (b"\x7fELF\0", False),
        (b"#!/bin/sh\nawk 1 \"$0\"\n", False),
        (b"echo\n", False),
        (PRE_COMMIT, True),
        (LEFTHOOK, True),
        (GIT_LFS, True),
    ],
)  # fmt: skip
def test_which_scripts_can_carry_the_block(text: bytes, expected: bool) -> None:
    assert is_shell_script(text) is expected


@pytest.mark.parametrize("shell", SHELLS)
def test_input_reaches_what_follows_whatever_its_size(repo: Sandbox, shell: str) -> None:
    log_folder(repo.root / ".git").mkdir()
    script = put(repo.root / "hook", with_block(b"#!/bin/sh\ncat\nexit 9\n", "post-rewrite"))
    for text in (b"", b"one line\n", b"".join(b"%d %s\n" % (n, b"x" * 80) for n in range(1_000))):
        done = subprocess.run(
            [*shell.split(), script, "rebase"], cwd=repo.root, input=text, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (9, text, b"")


def test_the_block_is_plain_ascii_without_programs() -> None:
    for hook in HOOKS:
        text = block(hook).decode("ascii")
        assert "$(" not in text
        assert "`" not in text.replace("`nm-lsp hooks install`", "").replace("`nm-lsp hooks uninstall`", "")


@pytest.mark.slow
def test_a_rebase_of_100_commits_is_not_slowed(repo: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    repo.git("checkout", "-q", "-b", "side")
    for n in range(100):
        repo.commit(f"side {n}", **{f"s{n}.py": "x\n"})
    tip = repo.git("rev-parse", "side")
    repo.git("checkout", "-q", "main")
    repo.commit("main", **{"m.py": "m\n"})

    def rebase_s() -> float:
        repo.git("branch", "-f", "side", tip)
        start = time.perf_counter()
        repo.git("rebase", "-q", "main", "side")
        taken = time.perf_counter() - start
        repo.git("checkout", "-q", "main")
        return taken

    def best(measure: Callable[[], float]) -> float:
        return min(measure() for _ in range(3))

    rebase_s()
    without = best(rebase_s)
    hooks.install(repo.root)
    added_ms = (best(rebase_s) - without) / 100 * 1000
    with capsys.disabled():
        print(f"\nadded per commit: {added_ms:.2f} ms (rebase without hooks: {without:.2f} s)")
    assert added_ms < 5
