"""One work tree's look at the decisions: HEAD, what people decided, and the verdict of each decision there.

A look is immutable and held in memory. It is taken anew when HEAD moves or anybody writes to the store; git runs only
when one of HEAD's files changed, and once in `SURE_S`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from nm_lsp.base.errors import GitUnavailable, StoreProblem
from nm_lsp.decisions.fold import DecisionRecord
from nm_lsp.decisions.model import DecisionId
from nm_lsp.decisions.staleness import Judge, unknown_verdicts
from nm_lsp.decisions.verdicts import Status, Verdict
from nm_lsp.engine.decisions.code import Grammars
from nm_lsp.engine.decisions.home import root_by_hand
from nm_lsp.engine.decisions.keeper import Held, Keeper
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.rewritten import RewriteInbox
from nm_lsp.engine.decisions.without_git import judge_folder
from nm_lsp.git import Head, Place, discover, head_stamp, operation_in_progress
from nm_lsp.git import Repository as GitRepository
from nm_lsp.storage.decisions import LoggedFinding

SURE_S = 60.0
"""How often HEAD itself is read although no file of it changed."""
RETRY_S = 5.0
"""How long a git that did not answer is left alone."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one moment. `git_problem` is set where git could not say; then ACTIVE decisions are unknown."""

    head: Head
    held: Held
    verdicts: Mapping[DecisionId, Verdict] = field(default_factory=dict)
    operation: str | None = None
    git_problem: GitUnavailable | None = None

    @property
    def records(self) -> Mapping[DecisionId, DecisionRecord]:
        return self.held.memory.records

    @property
    def revision(self) -> tuple[str | None, int]:
        return self.head.commit, self.held.revision


class WorkTree:
    """Thread-safe. `root` is the work tree's root, or the opened folder where there is no repository."""

    def __init__(
        self,
        folder: Path,
        repositories: Repositories,
        *,
        git: str,
        revival: bool,
        clock: Callable[[], float],
        require_encrypted: bool = False,
    ) -> None:
        """`clock` is a monotonic clock in seconds."""
        self._folder = folder
        self._repositories = repositories
        self._executable = git
        self._revival = revival
        self._require_encrypted = require_encrypted
        self._clock = clock
        self._lock = threading.RLock()
        self.place: Place | None = None
        self.git: GitRepository | None = None
        self._keeper: Keeper | None = None
        self._rewrites: RewriteInbox | None = None
        self._judge: Judge | None = None
        self._shallow: tuple[int, int] | None = None
        self._discovered_at: float | None = None
        self._git_problem: GitUnavailable | None = None
        self._looked_at = 0.0
        self._stamp: object = None
        self._look: Look | None = None
        self._user: str | None = None
        self._user_at: float | None = None
        self._classified: Mapping[DecisionId, Verdict] | None = None
        self._code = Grammars()

    # -- where ------------------------------------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        if self._keeper is None:
            # Whoever asks before the first look would else take the folder for the repository.
            with self._lock:
                self._discover()
        place = self.place
        return place.work_tree if place is not None and place.work_tree is not None else self._folder

    @property
    def keeper(self) -> Keeper:
        # Without the lock where it is known: a writer asks while it holds the keeper's own lock, and a look takes the
        # two locks the other way round.
        known = self._keeper
        if known is not None:
            return known
        with self._lock:
            self._discover()
            assert self._keeper is not None
            return self._keeper

    def _discover(self) -> None:
        """Find the repository; again where there was none or git did not answer: `git init` needs no restart."""
        now = self._clock()
        if self.git is not None or (self._discovered_at is not None and now - self._discovered_at < RETRY_S):
            return
        self._discovered_at = now
        try:
            place = discover(self._folder, executable=self._executable)
            self._git_problem = None
        except GitUnavailable as problem:
            self._git_problem, place = problem, None
        if place is not None and place.work_tree is not None:
            self.place = place
            self.git = GitRepository(place, executable=self._executable)
            self._keeper = self._repositories.keeper(place, self._folder, self.git)
            self._rewrites = RewriteInbox(place, self.git)
            self._new_judge(self.git, place)
            self._look = None
        elif self._keeper is None:
            self._keeper = self._repositories.keeper(None, root_by_hand(self._folder) or self._folder, None)
        if self._require_encrypted and self._keeper is not None:
            self._keeper.demand_encryption(id(self), wanted=True)

    def configure(self, *, git: str, revival: bool, require_encrypted: bool = False) -> None:
        """From the next look on: which git to run, whether bytes that are back clear a doubt (`decisions.revival`),
        whether the store must lie on encrypted storage."""
        with self._lock:
            if require_encrypted != self._require_encrypted:
                self._require_encrypted = require_encrypted
                self.keeper.demand_encryption(id(self), require_encrypted)
                self._look = None
            if (git, revival) == (self._executable, self._revival):
                return
            if git != self._executable and self.git is not None:
                self.git.close()
                self.git = GitRepository(self.git.place, executable=git)
                self._rewrites = RewriteInbox(self.git.place, self.git)
            self._executable, self._revival = git, revival
            # Another git may find the repository that the former one did not.
            self._discovered_at = None
            if self.git is not None:
                self._new_judge(self.git, self.git.place)
            self._look = None

    def _new_judge(self, git: GitRepository, place: Place) -> None:
        self._judge = Judge(git, self._code, revival=self._revival)
        self._shallow = _file_stamp(place.common_dir / "shallow")

    # -- looking ----------------------------------------------------------------------------------------------------

    def look(self, *, sure: bool = False) -> Look:
        """The present look. `sure` asks git for HEAD even if no file of it changed."""
        with self._lock:
            self._discover()
            keeper = self.keeper
            if self._rewrites is not None:
                self._rewrites.take_in(keeper)
            held = keeper.held()
            now = self._clock()
            stamp = head_stamp(self.place) if self.place is not None else None
            operation = operation_in_progress(self.place) if self.place is not None else None
            known = self._look
            fresh = known is not None and stamp == self._stamp and now - self._looked_at < SURE_S and not sure
            if known is not None and fresh and self.git is not None and known.git_problem is None:
                if known.held is held:
                    if known.operation != operation:
                        self._look = replace(known, operation=operation)
                    return self._look or known
                look = self._judged(known.head, held, operation)
            else:
                look = self._look_at_head(held, operation)
            self._stamp, self._looked_at, self._look = stamp, now, look
            if known is not None:
                self._log_findings(keeper, known, look)
            return look

    def _look_at_head(self, held: Held, operation: str | None) -> Look:
        if self.git is None or self.place is None:
            problem = self._git_problem
            if problem is not None:
                return self._unknown(held, None, problem)
            return Look(Head(None, None), held, judge_folder(self._folder, held.memory))
        try:
            if not (self.place.git_dir / "HEAD").exists():
                operation = self._follow_git_folder(self.git, self.place)
            head = self.git.head()
        except GitUnavailable as problem:
            return self._unknown(held, operation, problem)
        if _file_stamp(self.place.common_dir / "shallow") != self._shallow:
            self._new_judge(self.git, self.place)
        return self._judged(head, held, operation)

    def _follow_git_folder(self, git: GitRepository, place: Place) -> str | None:
        """Find the `.git` folder again where it went elsewhere (`git submodule absorbgitdirs`, `git init
        --separate-git-dir`); what is in progress there. Raises `GitUnavailable`."""
        found = discover(self._folder, executable=self._executable)
        if found is None or found.work_tree != place.work_tree:
            return None
        git.close()
        self.place, self.git = found, GitRepository(found, executable=self._executable)
        self._rewrites = RewriteInbox(found, self.git)
        self._new_judge(self.git, found)
        return operation_in_progress(found)

    @staticmethod
    def _unknown(held: Held, operation: str | None, problem: GitUnavailable) -> Look:
        return Look(Head(None, None), held, unknown_verdicts(held.memory, str(problem)), operation, problem)

    def _judged(self, head: Head, held: Held, operation: str | None) -> Look:
        assert self._judge is not None
        verdicts = self._judge.look(head.commit, held.memory)
        return Look(head, held, verdicts, operation)

    def head_commit(self) -> str | None:
        """HEAD of the last look; None before the first commit and without git."""
        return (self._look or self.look()).head.commit

    def user(self) -> str | None:
        """The repository's `user.name <user.email>`, asked for again after `SURE_S`.

        Takes no lock: an event is made while the store's lock is held, which a look takes after the work tree's.
        """
        now = self._clock()
        if self.git is not None and (self._user_at is None or now - self._user_at >= SURE_S):
            try:
                self._user = self.git.user()
            except GitUnavailable:
                self._user = None
            self._user_at = now
        return self._user

    def classified(self, look: Look) -> Look:
        """`look` with those decisions told apart that differ in comments or layout only. Reads the blobs it needs."""
        with self._lock:
            if self._judge is None or look.git_problem is not None or self._classified is look.verdicts:
                return look
            try:
                found = self._judge.classify(look.verdicts)
            except GitUnavailable:
                return look
            better = replace(look, verdicts={**look.verdicts, **found}) if found else look
            self._classified = better.verdicts
            if self._look is look:
                self._look = better
            return better

    def judge(self) -> tuple[Judge | None, threading.RLock]:
        """The judge and the lock to hold while using it."""
        return self._judge, self._lock

    def _log_findings(self, keeper: Keeper, before: Look, after: Look) -> None:
        """Note what went stale or moved since the look before; the notes serve history and messages, never a status."""
        rows = []
        for identity, verdict in after.verdicts.items():
            old = before.verdicts.get(identity)
            if old is verdict or (old is not None and (old.status, old.commit) == (verdict.status, verdict.commit)):
                continue
            rows += _findings(after.records[identity], verdict, keeper.now_text())
        if not rows:
            return
        try:
            store = keeper.store()
            if store is not None:
                store.log_findings(rows)
        except StoreProblem:
            # Findings can be derived again at any time; a locked or read-only store must not hide a verdict.
            return

    def close(self) -> None:
        with self._lock:
            if self.git is not None:
                self.git.close()


def _findings(record: DecisionRecord, verdict: Verdict, time_text: str) -> list[LoggedFinding]:
    if not record.confirmations:
        return []
    confirmation = record.confirmations[verdict.confirmation]
    plain = json.dumps(confirmation.to_plain(), sort_keys=True).encode("ascii")
    name = hashlib.blake2b(plain, digest_size=8).hexdigest()
    rows = []
    if verdict.status is Status.STALE:
        for finding in verdict.findings:
            if finding.commit is not None:
                row = LoggedFinding(
                    record.id, name, finding.commit, finding.path, "stale", finding.kind.value, time_text
                )
                rows.append(row)
    rows.extend(
        LoggedFinding(record.id, name, move.commit, move.old, "moved", move.new, time_text)
        for move in verdict.moves
        if move.commit is not None
    )
    return rows


def _file_stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
