"""Cases G about git hooks: they only tell the server to look at once, and nobody who commits ever notices them.

Each test names a change of our own code that makes it fail.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from case_bench import Bench, also, bytes_below, changed, program, status_of
from decision_session import GOV, Repo
from lsp_harness import LspError

from nm_lsp.base.errors import Refused
from nm_lsp.engine import hooks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="hooks are shell scripts")


@pytest.mark.parametrize(("n_decisions", "n_commits"), [(50, 12), also(2_000, 100)], ids=["short", "whole"])
@pytest.mark.slow
def test_g04_a_rebase_is_not_slowed(bench: Bench, n_decisions: int, n_commits: int) -> None:
    """G04: hooks cost a rebase under 50 ms a commit (of processor time, so that a busy machine decides nothing), a
    caller that waits for the hook waits for nothing, and the verdicts are those of a fresh look.

    Fails if `git.hook_script.block` starts a program that takes its time.
    """
    files = {f"m{number:02}.py": GOV for number in range(50)}
    repo = bench.repo(files=files)
    repo.git("checkout", "-q", "-b", "side")
    for number in range(n_commits):
        repo.commit(f"side {number}", {f"m{number % 10:02}.py": changed(number + 3)})
    tip = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "main")
    repo.commit("main", {"m20.py": changed(3)})

    def rebase() -> float:
        repo.git("checkout", "-q", "-B", "side", tip)
        return processor_s(lambda: repo.git("rebase", "-q", "main"))

    repo.git("checkout", "-q", "side")
    with bench.session(repo.path) as s:
        for number in range(n_decisions):
            s.record(f"m{number % 50:02}.py", title=f"Decision {number}")
        without = rebase()
        assert hooks.install(repo.path).active
        added_ms = (rebase() - without) / n_commits * 1000
        print(f"{added_ms:.1f} ms of processor time added to each commit")
        assert added_ms < 50
        done = bench.run("git", "commit", "-q", "--allow-empty", "-m", "from a window", cwd=repo.path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        s.scan()
        watched = statuses(s.call("decisions.list", limit=1000)["decisions"])
    with bench.session(repo.path) as s:
        s.scan()
        fresh = statuses(s.call("decisions.list", limit=1000)["decisions"])
    assert watched == fresh
    assert set(fresh.values()) == {"active", "stale"}


def processor_s(act: Callable[[], object]) -> float:
    """Processor time, in seconds, of all programs that `act` starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    act()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def statuses(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["id"]: row["status"] for row in rows}


def test_g06_an_amend_is_looked_at_once(bench: Bench, repo: Repo) -> None:
    """G06: two hooks fire at an amend. Of the message or of another file: ACTIVE; of the governed file: STALE, with one
    finding, and no lock is ever in the way.

    Fails if `decisions.staleness._joins` takes every rewritten commit for a confirmed one.
    """
    gov = repo.uri("gov.py")
    repo.commit("work", {"other.py": "x = 2\n"})
    assert hooks.install(repo.path).active
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        repo.git("commit", "-q", "--amend", "-m", "another message")
        assert status_of(s, identity) == "active"
        repo.write({"other.py": "x = 3\n"})
        repo.git("commit", "-q", "-a", "--amend", "--no-edit")
        assert status_of(s, identity) == "active"
        assert s.publications() == []
        repo.write({"gov.py": changed(3)})
        repo.git("commit", "-q", "-a", "--amend", "--no-edit")
        log = (repo.path / ".git/nm-lsp/hooks.log").read_text()
        assert [line.split()[2] for line in log.splitlines()] == ["post-commit", "post-rewrite"] * 3
        for _ in range(3):
            s.scan()
        s.until_stale(gov, identity)
        kinds = [row["kind"] for row in s.call("decisions.history", id=identity)["rows"]]
        assert kinds == ["recorded", "stale"]
        assert s.messages() == []


@pytest.mark.parametrize("where", ["work tree", "submodule", "husky", also("husky absolute")])
def test_g15_hooks_go_where_git_looks(bench: Bench, repo: Repo, where: str) -> None:
    """G15: installed from a linked work tree, in a submodule and beside husky: git runs them, `status` says so, a
    commit marks the document of that work tree, and removal gives back every byte.

    Fails if `git.queries.Repository.hooks_folder` is `hooks` in the git folder.
    """
    inner, folder = _ground(bench, repo, where)
    force = where.startswith("husky")
    before = bytes_below(folder)
    if force:
        with pytest.raises(Refused, match="husky"):
            hooks.install(inner.path)
    assert not hooks.status(inner.path).active
    assert hooks.install(inner.path, force=force).active
    assert hooks.status(inner.path).active
    log = Path(inner.git("rev-parse", "--path-format=absolute", "--git-common-dir")) / "nm-lsp/hooks.log"
    with bench.session(inner.path) as s:
        identity = s.record("gov.py")
        inner.write({"gov.py": changed(3)})
        inner.git("commit", "-q", "-m", "change", "gov.py")
        assert "post-commit" in log.read_text()
        s.scan()
        s.until_stale(inner.uri("gov.py"), identity)
        assert set(s.shown) == {inner.uri("gov.py")}
    hooks.uninstall(inner.path, force=force)
    assert not hooks.status(inner.path).active
    assert bytes_below(folder) == before
    assert not log.parent.exists()


def _ground(bench: Bench, repo: Repo, where: str) -> tuple[Repo, Path]:
    """The repository as the case has it, and the folder that its hooks go to."""
    match where:
        case "work tree":
            return bench.linked(repo, "linked", "side"), repo.path / ".git/hooks"
        case "submodule":
            bench.repo("library")
            add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(bench.folder / "library"))
            repo.git(*add, "sub")
            repo.commit("submodule")
            bench.leaves(repo.path, " M sub")
            sub = repo.beside(repo.path / "sub")
            sub.git("config", "user.name", "Ada")
            sub.git("config", "user.email", "ada@example.org")
            return sub, repo.path / ".git/modules/sub/hooks"
        case _:
            made = repo.path / ".husky/_"
            program(made / "post-commit", '. "$(dirname "$0")/h"')
            program(made / "h", 's="$(dirname "$(dirname "$0")")/$(basename "$0")"; [ ! -f "$s" ] || sh -e "$s" "$@"')
            (made / ".gitignore").write_text("*")
            repo.commit("husky", {".husky/post-commit": "true\n"})
            repo.git("config", "core.hooksPath", ".husky/_" if where == "husky" else str(made))
            return repo, repo.path / ".husky"


@pytest.mark.slow
def test_g24_a_window_that_commits(bench: Bench, repo: Repo) -> None:
    """G24: a commit by a program with the plainest PATH, no HOME and no tolerance for a word of a hook: it succeeds in
    silence; where the hook could note nothing, the server finds the commit by itself.

    Fails if `git.hook_script.block` calls `nm-lsp`.
    """
    gov = repo.uri("gov.py")
    assert hooks.install(repo.path).active
    log = repo.path / ".git/nm-lsp/hooks.log"
    with bench.session(repo.path) as s:
        identity = s.record("gov.py")
        for factor, obstacle in ((3, False), (4, True)):
            if obstacle:
                log.unlink()
                log.mkdir()
            repo.write({"gov.py": changed(factor)})
            done = subprocess.run(
                ["/usr/bin/env", "git", "commit", "-q", "-a", "-m", f"times {factor}"],
                cwd=repo.path,
                env={"PATH": "/usr/bin:/bin"},
                capture_output=True,
                check=False,
                timeout=30,
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
            if not obstacle:
                s.scan()
            s.until_stale(gov, identity)
            s.execute(s.action(gov, "Restore"))
            s.until_clean(gov)
        with pytest.raises(LspError, match="nothing to restore"):
            s.call("decisions.restore", ids=[identity])
