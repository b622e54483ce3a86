"""How far the index of a folder is, put together from the child's messages and the newest manifest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from nm_lsp.engine.requests import (
    HostEvent,
    IndexFinished,
    IndexProgress,
    Missing,
    Phase,
    Problem,
    Progress,
    Skipped,
    StatusResult,
)
from nm_lsp.engine.settings import Settings
from nm_lsp.engine.snapshot import Snapshot
from nm_lsp.worker.messages import UNLISTED, Building, Finished, Published, Role, Stage, ToParent

MAX_SKIPPED = 200

_PHASES = {
    Stage.SCANNING: Phase.SCANNING,
    Stage.PARSING: Phase.KEYWORD,
    Stage.JOINING: Phase.VECTORS,
    Stage.EMBEDDING: Phase.VECTORS,
}
_WORDS = {
    Stage.SCANNING: "looking for files",
    Stage.PARSING: "reading {done:,} of {total:,} files",
    Stage.JOINING: "tidying up",
    Stage.EMBEDDING: "vector {done:,} of {total:,}",
}


class BuildState:
    """Thread-safe. Sends `IndexProgress` for builds worth showing and exactly one `IndexFinished` for each of them."""

    def __init__(self, folder: str, listener: Callable[[HostEvent], None]) -> None:
        self._folder = folder
        self._listener = listener
        self._lock = threading.Lock()
        self._ticket = 0
        self._dealt_with = 0
        self._checked = False
        self._phase = Phase.SCANNING
        self._progress = Progress(0, 0)
        self._shown = False
        self._is_joining = False
        self._writes: bool | None = None
        self._complete = False
        self._vectors = Progress(0, 0)
        self._problems: dict[str, Problem] = {}
        self.given_up: str | None = None
        self._failure: str | None = None

    # -- what happens -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The child was told to open the folder."""
        self._checked = False
        self._phase = Phase.SCANNING

    def new_ticket(self) -> int:
        """A rescan is on its way: until the child has dealt with it, the index is not known to be up to date."""
        with self._lock:
            self._ticket += 1
            return self._ticket

    def receive(self, message: ToParent) -> None:
        match message:
            case Role(_, writes):
                self._writes = writes
                if not writes:
                    self._checked = True
            case Building():
                self._build(message)
            case Finished(_, ticket, error):
                self._finish(ticket, error)
            case Published():
                pass
            case _:
                pass

    def _build(self, message: Building) -> None:
        stage, done, total = message.stage, message.done, message.total
        if stage is Stage.SCANNING:
            self._problems.pop(UNLISTED, None)
        self._phase = _PHASES[stage]
        self._is_joining = stage is Stage.JOINING
        if message.ticket >= 0:
            # Symbols, keyword search and graph are complete before the first vector is made.
            self._checked = True
            self._dealt_with = max(self._dealt_with, message.ticket)
        self._progress = Progress(done, total)
        if not message.quiet:
            self._shown = True
            percent = int(100 * done / total) if total else None
            words = _WORDS[stage].format(done=done, total=total)
            self._listener(IndexProgress(self._folder, self._phase, percent, words))

    def _finish(self, ticket: int, error: str | None) -> None:
        self._dealt_with = max(self._dealt_with, ticket)
        self._checked = True
        self._phase = Phase.IDLE
        self._failure = error
        if error is None:
            for code in ("index-build", "index-folder"):
                self._problems.pop(code, None)
        self._end("the index was not completed" if error else "the index is up to date", error)

    def give_up(self, reason: str) -> None:
        """Nobody builds the index any more."""
        self.given_up = reason
        self._phase = Phase.IDLE
        self._end("the index is not kept up to date", reason)

    def abandon(self) -> None:
        """The folder is closed."""
        self._end("closed", None)

    def _end(self, message: str, error: str | None) -> None:
        self._is_joining = False
        if self._shown:
            self._shown = False
            self._listener(IndexFinished(self._folder, message, error))

    def trouble(self, code: str, message: str, hint: str | None) -> None:
        self._problems[code] = Problem(code, message, hint)

    def indexed(self, snapshot: Snapshot) -> None:
        """A new generation was taken up."""
        self._complete = snapshot.manifest.complete
        rows = snapshot.vectors
        self._vectors = Progress(rows.n_done, rows.n_wanted) if rows else Progress(0, 0)

    # -- what is so -------------------------------------------------------------------------------------------------

    @property
    def cause(self) -> str | None:
        """Why the last build did not end well; None where it did, or none has ended."""
        return self._failure

    @property
    def is_writer(self) -> bool:
        return self._writes is not False

    @property
    def is_ready(self) -> bool:
        return self._complete and self._checked and self._dealt_with >= self._ticket

    @property
    def is_settled(self) -> bool:
        """Ready, and nothing is done to the parts of the index any more but the making of vectors."""
        return self.is_ready and not self._is_joining

    @property
    def is_idle(self) -> bool:
        return self.is_ready and self._phase is Phase.IDLE

    def missing(self, *, has_model: bool, settings: Settings) -> tuple[Missing, ...]:
        """What an answer given now has to do without."""
        found = []
        if not self.is_ready:
            found.append(Missing.INDEX)
        if settings.model.enabled and not has_model:
            found.append(Missing.MODEL)
        elif settings.model.enabled and self._vectors.done < self._vectors.total:
            found.append(Missing.VECTORS)
        return tuple(found)

    def status(
        self,
        snapshot: Snapshot | None,
        problems: Sequence[Problem],
        head: tuple[str | None, str | None],
        decisions: dict[str, int],
    ) -> StatusResult:
        """`problems` are added to those of the build; `head` is (commit, branch); `decisions` counts by status."""
        skipped = snapshot.manifest.skipped if snapshot else ()
        is_checking = self._phase is Phase.IDLE and not self.is_ready
        return StatusResult(
            folder=self._folder,
            ready=self.is_ready,
            phase=Phase.SCANNING if is_checking else self._phase,
            progress=self._progress,
            vectors=self._vectors,
            index_revision=snapshot.manifest.generation if snapshot else 0,
            files=snapshot.corpus.n_live_files if snapshot else 0,
            symbols=snapshot.corpus.n_live if snapshot else 0,
            n_skipped=len(skipped),
            skipped=tuple(Skipped(item.path, item.reason) for item in skipped[:MAX_SKIPPED]),
            decisions=decisions,
            head=head[0],
            branch=head[1],
            is_index_writer=self.is_writer,
            problems=(*self._problems.values(), *problems),
        )
