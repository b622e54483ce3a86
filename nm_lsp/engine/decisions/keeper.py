"""The decision store of one repository, opened when there is something to read or write, and the fold of its events.

Reading a repository that has no decisions creates nothing. The fold is held in memory and refreshed when the store's
stamp moves, whoever wrote, so that no request runs a query to know what people decided.
"""

from __future__ import annotations

import contextlib
import gc
import getpass
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.audit.chain import Act
from nm_lsp.base.errors import Refused, StoreProblem
from nm_lsp.decisions.events import Event
from nm_lsp.decisions.fold import Memory
from nm_lsp.decisions.model import DecisionId
from nm_lsp.engine.settings import resolve_settings
from nm_lsp.engine.store_folder import is_writable, prepare, refuse_outward_link, refuse_unencrypted
from nm_lsp.storage.decisions import Appended, DecisionStore
from nm_lsp.storage.locks import locks_work_near
from nm_lsp.storage.recovery import Recovery, StoreLost
from nm_lsp.storage.times import utc_text

log = logging.getLogger(__name__)

_CHECKS = 3
_ANSWER_S = 0.2
"""So long the backup of the day leaves the processor to the answer after which it is made."""


@dataclass(frozen=True, slots=True)
class Held:
    """The fold of all events up to `revision`. Never changed: a newer one replaces it."""

    revision: int
    memory: Memory


_EMPTY = Held(0, Memory())


class Keeper:
    """Thread-safe; writes take turns. `clock` is Unix time in seconds."""

    def __init__(self, folder: Path, backups: Path, fallback: Path, clock: Callable[[], float]) -> None:
        """`fallback` is where the store lies if `folder` cannot be written, or nothing can be locked there."""
        self.folder = folder
        self._backups = backups
        self._fallback = fallback
        self.clock = clock
        self._lock = threading.RLock()
        self._store: DecisionStore | None = None
        self._stamp: tuple[int, int, int] | None = None
        self._held = _EMPTY
        self._checked: tuple[int, int] | None = None
        self.lost: StoreLost | None = None
        self.problem: StoreProblem | None = None
        self.altered: StoreProblem | None = None
        """What `check` found."""
        self._backing_up: threading.Thread | None = None
        self._closing = threading.Event()
        self._demanding: set[object] = set()
        self._protected: Path | None = None
        self._unfit: StoreProblem | None = None

    @property
    def folder_in_use(self) -> Path:
        return self.folder if is_writable(self.folder) and locks_work_near(self.folder) else self._fallback

    def demand_encryption(self, owner: object, wanted: bool) -> None:
        """One of those who share this store wants it on encrypted storage alone, or no longer does. Who is closed has
        not changed its mind: what was learned last is still to be written."""
        with self._lock:
            (self._demanding.add if wanted else self._demanding.discard)(owner)
            self._protected = None

    def refuse_unfit_place(self) -> None:
        """Raise `StoreProblem` where nothing may be kept: beyond a link that leaves the repository, or on storage that
        is not reported as encrypted while the settings of anybody, or those beside the store, demand it."""
        folder = self.folder_in_use
        if folder == self.folder:
            refuse_outward_link(folder, folder.parent.parent)
        if self._protected == folder:
            return
        beside, _ = resolve_settings(None, self.folder.parent.parent)
        if self._demanding or beside.storage.require_encrypted:
            refuse_unencrypted(folder)
            refuse_unencrypted(self._backups)
        self._protected = folder

    # -- reading ----------------------------------------------------------------------------------------------------

    def held(self) -> Held:
        """The newest fold. A store that cannot be used leaves the last one that could be read; see `problem`."""
        with self._lock:
            store = self._open(create=False)
            if store is None:
                return self._held
            try:
                stamp = store.stamp()
                if stamp != self._stamp:
                    if self._stamp is not None and stamp[:2] != self._stamp[:2]:
                        # Another file lies there, or none (`git clean`): revisions of the two do not compare.
                        store.heal(self.clock())
                        self._held = _EMPTY
                        stamp = store.stamp()
                    self._take_in(store)
                    self._stamp = stamp
                self.problem = None
            except StoreProblem as problem:
                self.problem = problem
            return self._held

    def _take_in(self, store: DecisionStore) -> None:
        old = self._held
        if old.revision == 0:
            revision, memory = store.memory()
            # A whole memory of decisions lives as long as the process; walking it in every full garbage collection
            # would cost more than most looks.
            gc.freeze()
        else:
            changes = store.changes(old.revision)
            if not changes.events:
                # Findings or vectors were written, which are no part of the fold.
                return
            revision = changes.revision
            rewrites = [pair for event in changes.events if event.decision is None for pair in event.pairs()]
            records = {**old.memory.records, **{record.id: record for record in changes.records}}
            memory = Memory(records, [*old.memory.rewrites, *rewrites])
        self._held = Held(revision, memory)

    def store(self) -> DecisionStore | None:
        """The open store, or None where there is none yet. Raises `StoreProblem` where it cannot be used."""
        with self._lock:
            store = self._open(create=False)
            if store is None:
                self._refuse_unusable()
            return store

    def check(self) -> StoreProblem | None:
        """Whether the store and its text copy read as the audit chain says; looked at once for each file.

        A failing disk, or another program, can change bytes in ways that SQLite takes for content: nobody would notice
        that a decision says something else. Reads everything (1 s for 10,000 decisions), so it is for a thread of its
        own.
        """
        with self._lock:
            store, file = self._store, self._stamp[:2] if self._stamp is not None else None
            if store is None or file is None or file == self._checked:
                return self.altered
            self._checked = file
        try:
            found = ""
            for _ in range(_CHECKS):
                findings = store.audit.verify().verdict.findings
                if not findings:
                    self.altered = None
                    return None
                # A process that writes just now is between table and text for a moment.
                found = f"{findings[0].copy}, line {findings[0].line}: {findings[0].message}"
            message = f"The decisions do not read as they were recorded ({found})."
            self.altered = StoreProblem(message, reason="damaged", hint="`nm-lsp audit verify` names every place.")
        except StoreProblem as problem:
            self.altered = problem
        return self.altered

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(
        self,
        make: Callable[[Held], Iterable[Event]],
        *,
        acts: Sequence[Act] = (),
        expect: Mapping[DecisionId, int] | None = None,
        merged: bool = False,
    ) -> Appended:
        """Write the events that `make` derives from the newest fold, with their audit records and those of `acts`, in
        one transaction; `merged` as in `fold.apply`.

        Raises `Conflict`, `Refused`, `StoreProblem`, and what `make` raises.
        """
        with self._lock:
            store = self._open(create=True)
            if store is None:
                self._refuse_unusable()
                raise StoreProblem("The decision store cannot be opened.", reason="io")
            events = list(make(self.held()))
            now = self.clock()
            appended = store.append(events, acts, now=now, expect=expect, merged=merged)
            self.held()
            self._back_up_beside(store, now)
            return appended

    def _back_up_beside(self, store: DecisionStore, now: float) -> None:
        """Make the day's backup in a thread, if it is due: copying the whole store is no part of the answer."""
        if not store.backups.due(now) or (self._backing_up is not None and self._backing_up.is_alive()):
            return

        def back_up() -> None:
            # The answer goes out first; a process that ends does not wait.
            self._closing.wait(_ANSWER_S)
            try:
                store.back_up_if_due(now)
            except StoreProblem as problem:
                # The events are kept; what is missing is the day's copy of them.
                self.problem = problem

        # No daemon: a command that ends right after its change still leaves the backup.
        thread = threading.Thread(target=back_up, name="nm-lsp backup")
        try:
            thread.start()
        except RuntimeError:
            # The system has no thread left. The events are written, and whoever asked must not hear otherwise; the next
            # change tries again.
            log.warning("There is no thread for the backup of the day")
            return
        self._backing_up = thread

    def writable_store(self) -> DecisionStore:
        """The open store, created if need be."""
        with self._lock:
            store = self._open(create=True)
            if store is None:
                self._refuse_unusable()
                raise StoreProblem("The decision store cannot be opened.", reason="io")
            return store

    def now_text(self) -> str:
        return utc_text(self.clock())

    # -- opening ----------------------------------------------------------------------------------------------------

    def _open(self, *, create: bool) -> DecisionStore | None:
        folder = self.folder_in_use
        try:
            self.refuse_unfit_place()
        except StoreProblem as problem:
            self.problem = self._unfit = problem
            self._close_store()
            return None
        if self._unfit is not None:
            self.problem = self._unfit = None
        if self._store is not None:
            return self._store
        exists = (folder / "memory.db").exists() or (folder / "audit.jsonl").exists() or self._backups.exists()
        if not exists and not create:
            return None
        if create:
            prepare(folder)
        try:
            self._store = DecisionStore.open(folder, self._backups, self.clock())
            self.lost = self.problem = None
        except StoreLost as lost:
            # Only the first look knows where the damaged file went.
            if self.lost is None:
                self.lost = lost
            self.problem = self.lost
        except StoreProblem as problem:
            self.problem = problem
        return self._store

    def _refuse_unusable(self) -> None:
        if self.problem is not None:
            raise self.problem

    def recover(self, actor: str, face: str) -> Recovery:
        """Put back the newest good backup and what the text copy holds beyond it; `Refused` if nothing is lost."""
        with self._lock:
            if self._open(create=False) is not None or self.lost is None:
                raise Refused("The decision store is not lost, so there is nothing to put back.")
            folder = self.folder_in_use
            prepare(folder)
            self._store, recovery = DecisionStore.recover(folder, self._backups, self.clock(), actor=actor, face=face)
            self.lost = self.problem = None
            self._held, self._stamp = _EMPTY, None
            return recovery

    def close(self) -> None:
        """Waits for a backup under way."""
        with self._lock:
            self._close_store()

    def _close_store(self) -> None:
        if self._backing_up is not None:
            self._closing.set()
            self._backing_up.join()
            self._closing.clear()
        if self._store is not None:
            self._store.close()
            self._store = None


def login_name() -> str:
    """The system's name of whoever runs this."""
    with contextlib.suppress(OSError, KeyError):
        return getpass.getuser()
    return "unknown"
