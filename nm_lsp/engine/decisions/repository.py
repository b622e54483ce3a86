"""One repository: its decision store, shared by all work trees of it that are open in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.engine.decisions.home import STORE_FOLDER, home_of
from nm_lsp.engine.decisions.keeper import Keeper
from nm_lsp.git import Place
from nm_lsp.git import Repository as GitRepository
from nm_lsp.storage.locations import state_folder, state_root


class Repositories:
    """All repositories of this process, each once. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time, *, state: Path | None = None) -> None:
        """`state` is where backups lie, by default the user's state folder."""
        self._clock = clock
        self._state = state
        self._lock = threading.Lock()
        self._keepers: dict[Path, Keeper] = {}

    def keeper(self, place: Place | None, folder: Path, git: GitRepository | None) -> Keeper:
        """The store of the repository at `place`, or of the bare `folder` where there is no repository.

        It lies in the main work tree, so that all work trees share it; for a bare repository in one of them (`home`).
        """
        identity = place.common_dir if place is not None else folder
        with self._lock:
            keeper = self._keepers.get(identity)
            if keeper is None:
                home = home_of(place, folder, git)
                backups = state_folder(self._state or state_root(), _root_commit(git), home.kept_as)
                keeper = Keeper(home.folder / STORE_FOLDER, backups, backups / "store", self._clock)
                self._keepers[identity] = keeper
            return keeper

    def close(self) -> None:
        with self._lock:
            for keeper in self._keepers.values():
                keeper.close()
            self._keepers.clear()


def _root_commit(git: GitRepository | None) -> str | None:
    """The repository's first commit: what a clone made anew has in common with the one that was lost."""
    if git is None:
        return None
    try:
        head = git.head().commit
        roots = git.root_commits(head) if head else []
    except GitUnavailable:
        return None
    return roots[0][:16] if roots else None
