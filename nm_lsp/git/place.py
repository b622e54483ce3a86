"""Where a repository is, and what stands there now: HEAD, branch, an operation in progress.

Guarantees: `discover` says None only where there is no repository; a repository git refuses to read raises, so that
"refused" is never taken for "none". `head_stamp` and `operation_in_progress` only look at files, run nothing and may be
called every second.

Must not know: history, decisions.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.git.process import Git, NotARepository, quoted

Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]

# In the order in which git's own prompt looks: a rebase that stops in a cherry-pick is a rebase.
_OPERATIONS: Final = (
    ("rebase", "rebase-merge"),
    ("rebase", "rebase-apply"),
    ("merge", "MERGE_HEAD"),
    ("cherry-pick", "CHERRY_PICK_HEAD"),
    ("revert", "REVERT_HEAD"),
    ("cherry-pick", "sequencer/todo"),
    ("bisect", "BISECT_LOG"),
)
_SYMBOLIC: Final = re.compile(rb"ref: (refs/[^\n]+)\n")


@dataclass(frozen=True, slots=True)
class Place:
    """One work tree of a repository, or a bare repository (`work_tree` is None). All paths are absolute."""

    work_tree: Path | None
    git_dir: Path
    common_dir: Path
    bare: bool
    shallow: bool
    id_length: int

    @property
    def linked(self) -> bool:
        """Whether this is a linked work tree, not the main one."""
        return self.git_dir != self.common_dir


@dataclass(frozen=True, slots=True)
class Head:
    """`commit` is None on an unborn branch, `branch` (its short name) None on a detached HEAD."""

    commit: str | None
    branch: str | None

    @property
    def unborn(self) -> bool:
        return self.commit is None


def discover(folder: Path, *, executable: str = "git", timeout_s: float = 30.0) -> Place | None:
    """The repository that `folder` lies in; None if it lies in none, or in a `.git` folder.

    Raises `GitUnavailable` if git is missing, refuses or does not answer.
    """
    git = Git(folder, executable=executable, timeout_s=timeout_s)
    try:
        text = git.run(
            "rev-parse",
            "--is-bare-repository",
            "--is-inside-git-dir",
            "--is-inside-work-tree",
            "--is-shallow-repository",
            "--absolute-git-dir",
            "--git-common-dir",
            quick=True,
        )
    except NotARepository:
        return None
    bare, in_git_dir, in_work_tree, shallow, git_dir, common_dir = _lines(text, 6)
    is_bare = bare == "true"
    if in_git_dir == "true" and not is_bare:
        return None
    work_tree = None
    if in_work_tree == "true":
        work_tree = Path(_decoded(git.run("rev-parse", "--show-toplevel", quick=True)).removesuffix("\n")).resolve()
    form = git.run("config", "-z", "--get", "extensions.objectFormat", ok=(0, 1), quick=True)
    return Place(
        work_tree=work_tree,
        git_dir=Path(git_dir).resolve(),
        common_dir=(folder / common_dir).resolve(),
        bare=work_tree is None,
        shallow=shallow == "true",
        id_length=64 if form == b"sha256\0" else 40,
    )


def read_head(git: Git) -> Head:
    """HEAD as git sees it; the commit may be one that the repository has lost. Raises `GitUnavailable`, also where the
    branch has commits and its ref cannot be read, which git does not tell from a branch without any."""
    ref = _decoded(git.run("symbolic-ref", "-q", "HEAD", ok=(0, 1), quick=True)).strip()
    commit = _decoded(git.run("rev-parse", "-q", "--verify", "HEAD", ok=(0, 1), quick=True)).strip()
    branch = ref.removeprefix("refs/heads/")
    if branch and not commit:
        traces = git.run("rev-parse", "--git-path", ref, "--git-path", f"logs/{ref}", quick=True)
        if any((git.folder / trace).is_file() for trace in _decoded(traces).splitlines()):
            raise GitUnavailable(
                f"The branch {branch!r} has commits, but its ref cannot be read.",
                hint=f"Run `git -C {quoted(git.folder)} fsck --connectivity-only` to see whether it is whole.",
            )
    return Head(commit or None, branch or None)


def operation_in_progress(place: Place) -> str | None:
    """`rebase`, `merge`, `cherry-pick`, `revert` or `bisect` while one is going on in this work tree."""
    for name, file in _OPERATIONS:
        if (place.git_dir / file).exists():
            return name
    return None


def head_stamp(place: Place) -> Stamp:
    """A value that changes whenever HEAD may have moved: (mtime, size, inode) of the files that say where it is.

    Those are HEAD, its log, the branch's ref, the packed refs and the tables of a reftable repository. A change that
    leaves all of these as they are within the file system's resolution of time is not seen; ask git now and then.
    """
    files = [place.git_dir / "HEAD", place.git_dir / "logs" / "HEAD", place.common_dir / "packed-refs"]
    files += [place.common_dir / "reftable" / "tables.list", place.git_dir / "reftable" / "tables.list"]
    try:
        symbolic = _SYMBOLIC.match((place.git_dir / "HEAD").read_bytes())
    except OSError:
        symbolic = None
    if symbolic:
        files.append(place.common_dir / os.fsdecode(symbolic.group(1)))
    return tuple(_stat(file) for file in files)


def _stat(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _lines(text: bytes, count: int) -> list[str]:
    lines = _decoded(text).removesuffix("\n").split("\n")
    if len(lines) != count:
        raise GitUnavailable(
            "git rev-parse gave an answer that nm-lsp cannot read.", hint="git 2.20 or newer is needed."
        )
    return lines


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
