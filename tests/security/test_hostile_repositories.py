"""A repository that came with a configuration, hooks and names made to harm: opening it and working in it runs nothing
of its own and writes nothing outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, private_env, session
from lsp_harness import LspError

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import StoreProblem
from nm_lsp.engine.decision_requests import Caller, RecordParams
from nm_lsp.engine.decisions.alone import open_desk
from nm_lsp.engine.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX programs and file names")

NAMES = (
    "-rf.py",
    "a b.py",
    'quo"te.py',
    "quo'te.py",
    "back\\slash.py",
    "new\nline.py",
    "esc\x1b[31m.py",
    "rtl\u202e.py",
)

# Keys of git's configuration that name a program which git would run for somebody.
PROGRAMS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "sequence.editor", "credential.helper", "diff.external", "diff.odd.command",
    "diff.odd.textconv", "filter.odd.clean", "filter.odd.smudge", "filter.odd.process", "merge.odd.driver",
    "gpg.program", "pager.log", "pager.diff-tree", "interactive.diffFilter", "uploadpack.packObjectsHook",
    "remote.origin.uploadpack", "trailer.odd.command", "browser.odd.cmd", "difftool.odd.cmd", "gc.recentObjectsHook",
)  # fmt: skip


def poisoned(base: Path) -> tuple[Repo, Path]:
    """A repository with every such key set, every hook in place and every file under every driver; and the file that
    any of these programs would leave behind."""
    mark, program = base / "ran", base / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    program.chmod(0o755)
    repo = Repo(base / "repo", {"gov.py": GOV, "free.py": "x = 1\n", **dict.fromkeys(NAMES, "y = 1\n")})
    repo.write({".gitattributes": "* diff=odd merge=odd\ngov.py filter=odd\n", "pyproject.toml": "[project]\n"})
    inner = Repo(repo.path / "inner", {"inner.py": "z = 1\n"})
    repo.commit("second")
    repo.git("config", "remote.origin.url", f"ext::{program}")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "extensions.partialClone", "origin")
    repo.git("config", "log.showSignature", "true")
    for word in ("log", "ls-files", "diff-tree", "hash-object", "rev-parse", "cat-file"):
        repo.git("config", f"alias.{word}", f"!{program}")
    hooks = base / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        shutil.copy(program, hooks / name)
        shutil.copy(program, repo.path / ".git" / "hooks" / name)
    for at in (repo, inner):
        for key in PROGRAMS:
            at.git("config", key, str(program))
        at.git("config", "core.hooksPath", str(hooks))
    # A commit with a signature asks for gpg; one whose blob is not here asks for the remote.
    folder = repo.path / ".neuralmind" / "lsp"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'[git]\npath = "{program}"\n')
    for name in ("git", "git.exe"):
        shutil.copy(program, repo.path / name)
    mark.unlink(missing_ok=True)
    return repo, mark


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    repo, mark = poisoned(tmp_path)
    env = {**private_env(tmp_path / "home"), "PATH": f".:{os.environ['PATH']}"}
    gov, free = repo.uri("gov.py"), repo.uri("free.py")
    with session(repo.path, env=env, settings={"index": {"enabled": True}}) as s:
        kept = s.record("free.py", title="Kept")
        # Its blob id can only be told by the filter that the repository itself configures.
        with pytest.raises(LspError, match="a program that only its repository names") as refusal:
            s.record("gov.py")
        assert "nm-lsp.trustedRepository" in refusal.value.data["hint"]
        for name in NAMES:
            s.record(name, title="Odd names are names")
        s.open(free, "x = 2\n")
        s.change(gov, GOV + "# more\n", 2)
        s.until(lambda: ("decision-at-risk", kept) in s.marks(free))
        s.until(lambda: s.call("status")["ready"], 60)
        for name, fields in (
            ("search", {"query": "governed"}),
            ("decisions.scan", {}),
            ("decisions.list", {"status": "at-risk"}),
            ("decisions.diff", {"id": kept}),
            ("decisions.history", {"id": kept}),
            ("decisions.asOf", {"commit": "HEAD"}),
            ("decisions.export", {}),
            ("review", {}),
            ("audit.verify", {}),
        ):
            assert s.call(name, **fields) is not None
        # A blob of a partial clone that is not here: nobody is asked for it.
        blob = repo.git("-c", "core.fsmonitor=false", "rev-parse", "HEAD:free.py")
        mark.unlink(missing_ok=True)
        (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
        s.call("decisions.diff", id=kept)
        s.hover(free)
    assert not mark.exists(), mark.read_text()
    subprocess.run(["git", "status"], cwd=repo.path, capture_output=True, timeout=30, check=False)
    assert mark.exists(), "git itself falls into the trap"


def test_the_command_line_runs_nothing_either(tmp_path: Path) -> None:
    repo, mark = poisoned(tmp_path)
    env = {**os.environ, **private_env(tmp_path / "home"), "PATH": f".:{os.environ['PATH']}"}
    told = ""
    for arguments in ("guard gov.py free.py", "decisions list", "hooks status"):
        done = subprocess.run(
            [sys.executable, "-m", "nm_lsp", *arguments.split()],
            cwd=repo.path, env=env, capture_output=True, timeout=60, text=True,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        told += done.stderr
    assert "Setting git.path in .neuralmind/lsp/config.toml was not used: it is taken from the client alone." in told
    assert not mark.exists(), mark.read_text()


def victim(outside: Path, name: str, *, is_there: bool) -> Path:
    """What a link of the repository leads to: something of the user's, or nothing yet."""
    outside.mkdir(exist_ok=True)
    target = outside / f"of {name}"
    if is_there and name in {"lsp", ".neuralmind"}:
        target.mkdir()
    elif is_there:
        target.write_text("mine\n")
    return target


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


def test_links_beside_the_store_are_not_followed(tmp_path: Path) -> None:
    repo, outside = Repo(tmp_path / "repo"), tmp_path / "outside"
    place = repo.path / ".neuralmind" / "lsp"
    place.mkdir(parents=True)
    there = ("synapses.db", "events.jsonl", "SYNAPSE_MEMORY.md")
    not_there = ("audit.jsonl", "audit.dropped", ".gitignore", "memory.db.lock", "events.jsonl.lock")
    for name in (*there, *not_there, "SYNAPSE_MEMORY.md.partial"):
        above = place.parent if name.startswith("SYNAPSE") else place
        (above / name).symlink_to(victim(outside, name, is_there=name in there))
    before = contents(outside)
    with session(repo.path, env=private_env(tmp_path / "home"), settings={"index": {"enabled": True}}) as s:
        identity = s.record("gov.py")
        s.until(lambda: s.call("status")["ready"], 60)
        s.call("query", query="governed")
        assert [row["id"] for row in s.call("decisions.list")["decisions"]] == [identity]
        assert s.call("audit.verify")["waiting"] == 1, "the text copy could not be written, which is said"
        assert "synapses.db is a link" in json.dumps(s.call("status")["problems"])
    assert contents(outside) == before


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("link", [".neuralmind", ".neuralmind/lsp", ".neuralmind/lsp/memory.db"])
def test_links_in_the_place_of_the_store_are_refused(tmp_path: Path, link: str, is_there: bool) -> None:
    repo, outside = Repo(tmp_path / "repo"), tmp_path / "outside"
    (repo.path / link).parent.mkdir(parents=True, exist_ok=True)
    (repo.path / link).symlink_to(victim(outside, Path(link).name, is_there=is_there))
    before = contents(outside)
    with open_desk(repo.path, Settings()) as desk, pytest.raises(StoreProblem, match="link") as refusal:
        desk.record(RecordParams(title="t", rationale="r", files=("gov.py",)), Cancellation(), Caller("cli"))
    assert refusal.value.reason == "link"
    assert refusal.value.hint
    assert contents(outside) == before


def test_what_a_store_outside_would_be_is_said_once_and_search_goes_on(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    repo = Repo(tmp_path / "repo")
    (repo.path / ".neuralmind").symlink_to(outside)
    with session(repo.path, env=private_env(tmp_path / "home"), settings={"index": {"enabled": True}}) as s:
        s.until(lambda: s.call("status")["ready"], 60)
        assert s.call("search", query="governed")["hits"]
        s.until(lambda: any("leads out of" in text for text in s.messages()))
        assert sum("leads out of" in text for text in s.messages()) == 1
        problems = json.dumps(s.call("status")["problems"])
        assert "Remove the link" in problems
    assert not list(outside.iterdir())


def test_another_programs_safe_directory_is_honoured(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    env: dict[str, Any] = {**private_env(tmp_path / "home"), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    with session(repo.path, env=env) as s:
        with pytest.raises(LspError, match="dubious ownership") as refusal:
            s.record("gov.py")
        assert refusal.value.data["hint"].startswith("If you trust it, run: git config --global --add safe.directory")
