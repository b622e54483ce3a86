"""Repositories and gits that are slow, broken or strange: nothing hangs, and nobody is told that a decision holds that
does not."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, Session, private_env
from hypothesis import strategies as st
from lengths import Length, lengths
from lsp_harness import LspError

HANG_S = 5.0
"""Nothing that an editor waits for may take longer."""
INTERNAL_ERROR = -32603

pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts in place of git")


class House:
    """A repository with an ACTIVE, a STALE and an INVALIDATED decision, put back before every round."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._kept = folder / "live", folder / "kept"
        self.repo = Repo(self.folder / "repo")
        self.env = private_env(self.folder / "home")
        session = self.start()
        for name, path in (("kept", "other.py"), ("broken", "gov.py"), ("given up", "docs/")):
            session.record(path, title=f"Rule {name}")
        rows = session.call("decisions.list")["decisions"]
        given_up = next(row["id"] for row in rows if row["title"] == "Rule given up")
        session.call("decisions.invalidate", id=given_up, reason="Nobody needs it.")
        self.repo.commit("change", {"gov.py": GOV.replace("* 2", "* 3")})
        session.scan()
        self.truth = self.statuses(session)
        assert sorted(self.truth.values()) == ["active", "invalidated", "stale"]
        session.stop()
        self.repo.git("repack", "-adq")
        self.repo.git("pack-refs", "--all")
        self.repo.commit("one more, loose")
        shutil.copytree(self.folder, self._kept, symlinks=True)

    def start(self, git: str = "git") -> Session:
        return Session(self.repo.path, env=self.env, settings={"git": {"path": git}})

    @staticmethod
    def statuses(session: Session) -> dict[str, str]:
        return {row["id"]: row["status"] for row in session.call("decisions.list")["decisions"]}

    def put_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder, symlinks=True)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(tmp_path_factory.mktemp("repositories"))


def patiently(session: Session, method: str, params: Any) -> Any:
    """An answer or a refusal in words, in time; None for a refusal."""
    started, refused, answer = time.monotonic(), None, None
    try:
        answer = session.client.request(method, params, 60.0)
    except LspError as error:
        refused = error
    taken = time.monotonic() - started
    assert refused is None or refused.code != INTERNAL_ERROR, refused
    assert taken < HANG_S, f"{method} took {taken:.1f} s"
    return answer


def ask_everything(session: Session, house: House) -> dict[str, str]:
    """What an editor asks all the time, each answered in time; the statuses shown."""
    uri = house.repo.uri("gov.py")
    session.open(uri, GOV)
    patiently(session, "neuralmind/status", {})
    where = {"textDocument": {"uri": uri}, "position": {"line": 5, "character": 5}}
    patiently(session, "textDocument/hover", where)
    patiently(session, "textDocument/codeLens", {"textDocument": {"uri": uri}})
    listed = patiently(session, "neuralmind/decisions.list", {})
    patiently(session, "neuralmind/decisions.record", {"title": "New", "rationale": "So.", "files": ["gov.py"]})
    patiently(session, "neuralmind/audit.verify", {})
    return {} if listed is None else {row["id"]: row["status"] for row in listed["decisions"]}


def claims_nothing_false(house: House, shown: dict[str, str]) -> bool:
    """A decision may be unknown, or gone with a refusal; what it is said to be, it is."""
    return not shown or all(shown.get(identity) in {status, "unknown"} for identity, status in house.truth.items())


REAL_GIT = shutil.which("git") or "git"
GITS = {
    "absent": None,
    "failing": "echo 'fatal: no' >&2; exit 128",
    "silent and failing": "exit 1",
    "hanging": "sleep 600",
    "hanging with output": "echo abc; sleep 600",
    "killed": "kill -9 $$",
    "slow": f'sleep 0.2; exec {REAL_GIT} "$@"',
    "chatty": f'yes warning: rubbish | head -c 3000000 >&2; exec {REAL_GIT} "$@"',
    "chatty on standard output": f'yes rubbish | head -c 100000; exec {REAL_GIT} "$@"',
    "endless": "exec yes rubbish",
    "endless on standard error": "exec yes rubbish >&2",
    "noise": "head -c 5000 /dev/urandom; exit 0",
    "nothing": "exit 0",
    "older than any": "case \"$*\" in *version*) echo git version 1.0;; *) echo 'unknown option' >&2; exit 129;; esac",
}
QUICK_GITS = {"absent", "noise"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK_GITS else pytest.mark.slow) for kind in GITS]
)
def test_another_git(kind: str, house: House, tmp_path: Path) -> None:
    """Everything is answered in time, nothing false is shown, and with git back all is as it was."""
    house.put_back()
    git = tmp_path / "git"
    script = GITS[kind]
    if script is not None:
        git.write_text(f"#!/bin/sh\n{script}\n")
        git.chmod(git.stat().st_mode | stat.S_IXUSR)
    session = house.start(str(git))
    try:
        shown = ask_everything(session, house)
        assert claims_nothing_false(house, shown), shown
        session.stop()
    finally:
        session.client.kill()
    session = house.start()
    after = house.statuses(session)
    assert {identity: after[identity] for identity in house.truth} == house.truth
    session.stop()


def git_files(repo: Repo) -> list[Path]:
    return sorted(path for path in (repo.path / ".git").rglob("*") if path.is_file() and "hooks" not in path.parts)


def spoil(file: Path, rng: random.Random) -> str:
    file.chmod(0o644)
    raw = bytearray(file.read_bytes())
    how = rng.choice(["flip", "cut", "empty", "noise", "gone"])
    match how:
        case "flip" if raw:
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        case "cut" if raw:
            del raw[rng.randrange(len(raw)) :]
        case "noise":
            raw[:] = rng.randbytes(max(len(raw), 20))
        case "gone":
            file.unlink()
            return how
        case _:
            raw.clear()
    file.write_bytes(raw)
    return how


def names_another_branch(repo: Repo) -> bool:
    """Whether HEAD reads as a branch without commits: a sound state, in which HEAD's tree is empty."""
    command = ["git", "symbolic-ref", "-q", "HEAD"]
    named = subprocess.run(command, cwd=repo.path, capture_output=True, check=False).stdout.strip()
    return named not in {b"", b"refs/heads/main"}


@lengths(1)
def test_a_damaged_repository(length: Length, house: House) -> None:
    """HEAD, refs, packs, objects, the index or the configuration flipped, cut, emptied, replaced by noise or gone."""
    rng = random.Random(seed := length.seed)
    for number in range(length.rounds):
        house.put_back()
        file = rng.choice(git_files(house.repo))
        how = f"seed {seed}, round {number}: {file.relative_to(house.repo.path)} {spoil(file, rng)}"
        session = house.start()
        try:
            shown = ask_everything(session, house)
            assert names_another_branch(house.repo) or claims_nothing_false(house, shown), (how, shown)
            session.stop()
        except Exception as error:
            raise AssertionError(how) from error
        finally:
            session.client.kill()


ODD = [
    b"-rf", b"--help", b":(glob)*", b":!x", b"a\nb", b"a\tb", b"a b", b'"quoted"', b"\\", b"$(id)", b"`id`", b"%2e",
    b"*", b"[a]", b"{x}", b"#1", b"a::b", b"a?b", b"\xff\xfe", b"\xc3\xa9", b"e\xcc\x81", b"\x1b[31m", b"CON", b"~",
]  # fmt: skip
NAMES = st.one_of(
    st.text(st.characters(exclude_characters="\0/", exclude_categories=("Cs",)), min_size=1, max_size=40).map(
        os.fsencode
    ),
    st.binary(min_size=1, max_size=30).map(lambda raw: raw.replace(b"\0", b"0").replace(b"/", b"-")),
    st.sampled_from(ODD),
)


@lengths(6)
def test_odd_names(length: Length, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A decision on a file of any name that git takes goes STALE when a commit changes it; names that cannot be named
    in JSON or that stand for something else are refused in words."""
    folder = tmp_path_factory.mktemp("names")
    repo = Repo(folder / "repo")
    session = Session(repo.path, env=private_env(folder / "home"))

    def check(name: bytes) -> None:
        path = "d/" + os.fsdecode(name) + ".py"
        repo.write({path: "x = 1\n"})
        repo.commit("add")
        identity, refused = "", None
        try:
            identity = session.record(path)
        except LspError as error:
            refused = error
        assert refused is None or refused.code != INTERNAL_ERROR, refused
        if refused is None:
            repo.commit("change", {path: "x = 1\ny = 2\n"})
            session.scan()
            row = session.call("decisions.get", ids=[identity])["decisions"][0]
            assert row["status"] == "stale", row
            session.call("decisions.invalidate", id=identity, reason="Done.")

    length.attack(NAMES, check)
    session.stop()
