"""Where one opened folder stands: its repository, its branch, the namespace it writes, the folder of its store."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.engine.decisions.anchoring import Prefix, prefix_of
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.memory.keeper import MemoryKeeper, MemoryKeepers
from nm_lsp.git import Head, head_stamp
from nm_lsp.git import Repository as GitRepository
from nm_lsp.synapses.rules import EPHEMERAL, PERSONAL, branch_namespace


@dataclass(frozen=True, slots=True)
class Standpoint:
    """`namespace` is what is written; `default_branch` None where the repository has none."""

    head: Head
    default_branch: str | None
    namespace: str


_NOWHERE = Standpoint(Head(None, None), None, EPHEMERAL)


def namespace_of(head: Head, default_branch: str | None) -> str:
    """`personal` on the default branch, `branch:<name>` on another, `ephemeral` on a detached HEAD. A branch that is
    the only one, or has no commit yet, is the default one."""
    if head.branch is None:
        return EPHEMERAL
    if default_branch is None or head.branch == default_branch:
        return PERSONAL
    return branch_namespace(head.branch)


class Whereabouts:
    """Thread-safe. git runs only when a file of HEAD changed."""

    def __init__(self, folder: Path, tree: WorkTree, keepers: MemoryKeepers) -> None:
        self._folder = folder
        self.tree = tree
        self._keepers = keepers
        self._lock = threading.Lock()
        self._keeper: tuple[GitRepository | None, MemoryKeeper] | None = None
        self._known: tuple[object, Standpoint] | None = None

    @property
    def git(self) -> GitRepository | None:
        if self.tree.git is None:
            # Asking for the keeper of decisions is what finds the repository, again where there was none.
            _ = self.tree.keeper
        return self.tree.git

    @property
    def keeper(self) -> MemoryKeeper:
        git = self.git
        known = self._keeper
        # Looked up once for each repository: the work tree may be busy judging decisions.
        if known is None or known[0] is not git:
            store = self.tree.keeper
            known = self._keeper = (git, self._keepers.keeper(store.folder_in_use, store.refuse_unfit_place))
        return known[1]

    @property
    def prefix(self) -> Prefix:
        """Where the opened folder lies in the repository."""
        return prefix_of(self.tree.root, self._folder)

    def standpoint(self) -> Standpoint:
        """Where HEAD is. While git does not answer nothing is known, which is `ephemeral`."""
        git = self.git
        if git is None:
            return _NOWHERE
        stamp = (id(git), head_stamp(git.place))
        with self._lock:
            if self._known is not None and self._known[0] == stamp:
                return self._known[1]
        try:
            head = git.head()
            default = git.default_branch()
            standpoint = Standpoint(head, default, namespace_of(head, default))
        except GitUnavailable:
            return _NOWHERE
        with self._lock:
            self._known = (stamp, standpoint)
        return standpoint
