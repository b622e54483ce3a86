"""What happened to HEAD and to branches: for what learns from a person's own commits and from merges.

Must not know: synapses. Every function raises `GitUnavailable` where git does not answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nm_lsp.git.process import Git

_MAX_COMPARED: Final = 200
"""Commits of the base that a squashed branch is compared with."""


@dataclass(frozen=True, slots=True)
class HeadMove:
    """One entry of HEAD's log: where it moved to and how. `action` is git's own text: "commit: subject", "pull: …".

    `committed_at` is the commit's own time, in Unix seconds.
    """

    commit: str
    parents: tuple[str, ...]
    email: str
    committed_at: float
    action: str

    @property
    def is_new_commit(self) -> bool:
        """A commit made here, by hand: no merge, amend, rebase, pull, cherry-pick or checkout; nor the first of all,
        which brings in what was there."""
        return self.action.startswith("commit: ") and len(self.parents) == 1

    @property
    def left_branch(self) -> str | None:
        """What HEAD was on before, a branch or a commit, where this move is a checkout; else None."""
        found = _CHECKOUT.match(self.action)
        return found[1] if found is not None else None


_CHECKOUT: Final = re.compile(r"checkout: moving from (\S+) to ")


def head_moves(git: Git, limit: int = 20) -> list[HeadMove]:
    """The latest moves of HEAD in this work tree, newest first; none where git keeps no log."""
    form = "--format=%H%n%P%n%ae%n%ct%n%gs"
    output = git.run("log", "-g", "-z", f"--max-count={limit}", form, "HEAD", "--", ok=(0, 128))
    found = []
    for row in output.decode("utf-8", "replace").split("\0"):
        fields = row.split("\n", 4)
        if len(fields) == 5:
            commit, parents, email, at, action = fields
            found.append(HeadMove(commit, tuple(parents.split()), email, float(at), action.strip()))
    return found


def moved_files(git: Git, old: str, new: str) -> dict[str, str]:
    """Old path → new path of every file that git finds renamed between two commits, at 50 % likeness."""
    output = git.run(
        "diff-tree", "-r", "-z", "--no-commit-id", "-M50%", "-l400", "--diff-filter=R", "--name-status", old, new, "--"
    )
    fields = output.decode("utf-8", "surrogateescape").split("\0")
    return {fields[at + 1]: fields[at + 2] for at in range(0, len(fields) - 2, 3)}


def branch_tips(git: Git) -> dict[str, tuple[str, bool]]:
    """Branch → (its commit, whether its upstream is gone)."""
    output = git.run("for-each-ref", "--format=%(refname:lstrip=2)%00%(objectname)%00%(upstream:track)", "refs/heads/")
    rows = (line.split("\0") for line in output.decode("utf-8", "surrogateescape").splitlines())
    return {row[0]: (row[1], row[2] == "[gone]") for row in rows if len(row) == 3}


def is_merged_by_content(git: Git, base: str, tip: str) -> bool:
    """Whether what `tip` has beyond `base` is in `base` under other commits: rebased, picked or squashed."""
    own = git.run("cherry", base, tip).decode("ascii", "replace").split("\n")
    lines = [line for line in own if line]
    if not lines:
        return False
    return all(line.startswith("-") for line in lines) or _is_squashed(git, base, tip)


def _is_squashed(git: Git, base: str, tip: str) -> bool:
    fork = git.run("merge-base", base, tip, ok=(0, 1)).decode("ascii").strip()
    if not fork:
        return False
    plain = ("--no-ext-diff", "--no-textconv")
    whole = git.run("diff-tree", "-p", *plain, fork, tip)
    wanted = git.run("patch-id", "--stable", stdin=whole).split()
    if not wanted:
        return False
    later = git.run(
        "log",
        "-p",
        "--first-parent",
        *plain,
        f"--max-count={_MAX_COMPARED}",
        "--format=commit %H",
        f"{fork}..{base}",
        "--",
    )
    rows = git.run("patch-id", "--stable", stdin=later).splitlines()
    return any(row.split()[:1] == wanted[:1] for row in rows)
