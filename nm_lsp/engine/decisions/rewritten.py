"""Commits that were amended or rebased, as the `post-rewrite` hook noted them, kept as events (rule 6)."""

from __future__ import annotations

import uuid
from pathlib import Path

from nm_lsp.base.errors import GitUnavailable, StoreProblem
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.model import Plain
from nm_lsp.engine.decisions.keeper import Held, Keeper, login_name
from nm_lsp.engine.rewrites import Pair, read_rewrites
from nm_lsp.git import Place
from nm_lsp.git import Repository as GitRepository
from nm_lsp.git.hook_log import START, Offset, log_file


class RewriteInbox:
    """Reads the log when it has grown; costs one `stat` when it has not. Used under the work tree's lock."""

    def __init__(self, place: Place, git: GitRepository) -> None:
        self._place = place
        self._git = git
        self._offset: Offset = START
        self._stamp: tuple[int, int] | None = None

    def take_in(self, keeper: Keeper) -> None:
        """Store the pairs that are new. A store that cannot be written now gets them at a later look."""
        stamp = _stamp(log_file(self._place.common_dir))
        if stamp is None or stamp == self._stamp:
            return
        held = keeper.held()
        if not held.memory.records:
            # Nothing could follow a commit; whoever records later does so at a commit that is.
            return
        read = read_rewrites(self._place, held.memory.rewrites, self._offset, roll=True)
        if read.pairs:
            try:
                keeper.append(lambda now: self._events(keeper, _new(read.pairs, now)))
            except StoreProblem:
                return
        self._offset, self._stamp = read.offset, stamp

    def _events(self, keeper: Keeper, pairs: list[Plain]) -> list[Event]:
        if not pairs:
            return []
        try:
            actor = self._git.user()
        except GitUnavailable:
            actor = None
        event = Event(
            id=uuid.uuid4().hex,
            decision=None,
            kind=EventKind.REWRITTEN,
            time=keeper.now_text(),
            actor=actor or login_name(),
            face="hook",
            after={"pairs": pairs},
        )
        return [event]


def _new(pairs: tuple[Pair, ...], held: Held) -> list[Plain]:
    """Those of `pairs` that no other process stored meanwhile."""
    known = set(held.memory.rewrites)
    return [[old, new] for old, new in pairs if (old, new) not in known]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
