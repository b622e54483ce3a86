"""The decision store: events, the view folded from them, findings, search, and their audit, in `memory.db`.

Guarantees: an event, the view after it and its audit record are one transaction, so that none is ever without the
others; nothing is deleted or overwritten but by `redact`; a writer that saw an older revision is told so and writes
nothing. If the file is removed while it is open (`git clean -fdx`), what this process holds is put back.

Must not know: statuses at a HEAD, git. Opening where something was lost is `recovery`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nm_lsp.audit.acts import act_of
from nm_lsp.audit.chain import REDACTION, Act, Head, leaves_of
from nm_lsp.base.errors import Conflict, InvalidInput, NotFound, StoreProblem
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.fold import DecisionRecord, Memory, record_summary
from nm_lsp.decisions.model import Anchor, DecisionId, plain_text
from nm_lsp.storage import audit_rows, decision_redaction, decision_rows, decision_search, recovery
from nm_lsp.storage.audit_log import AuditLog
from nm_lsp.storage.backups import Backup, Backups
from nm_lsp.storage.database import Database, Failpoint, Options, no_failpoint, open_database
from nm_lsp.storage.decision_redaction import Redaction
from nm_lsp.storage.decision_rows import as_ascii, from_ascii
from nm_lsp.storage.decision_schema import SCHEMA
from nm_lsp.storage.decision_search import Match
from nm_lsp.storage.recovery import Recovery
from nm_lsp.storage.times import utc_text

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Appended:
    """`revision` is the store's after the append; `records` are the decisions changed, as they now read."""

    revision: int
    records: tuple[DecisionRecord, ...]
    head: Head


@dataclass(frozen=True, slots=True)
class Changes:
    """What others and we wrote since a revision. `records` of a decision whose text was redacted lack that text."""

    revision: int
    events: tuple[Event, ...]
    records: tuple[DecisionRecord, ...]


@dataclass(frozen=True, slots=True)
class LoggedFinding:
    """One thing a look at the repository found, for history and messages; never read back to compute a status.

    `confirmation` is the id of the event that made the confirmation; `kind` is stale or moved; `detail` says it in
    words or, for a move, names the new path.
    """

    decision: DecisionId
    confirmation: str
    commit: str
    path: str
    kind: str
    detail: str
    time: str


class DecisionStore:
    """One repository's decisions. Usable from any thread; writes take turns."""

    def __init__(
        self, database: Database, folder: Path, backups: Backups, options: Options, failpoint: Failpoint
    ) -> None:
        self._database = database
        self._options = options
        self._failpoint = failpoint
        self.folder = folder
        self.backups = backups
        self.audit = AuditLog(database, folder, failpoint)

    @classmethod
    def open(
        cls,
        folder: Path,
        backups_folder: Path,
        now: float,
        *,
        options: Options | None = None,
        start_anew: bool = False,
        failpoint: Failpoint = no_failpoint,
    ) -> DecisionStore:
        """Open or create `memory.db` in `folder`.

        Raises `recovery.StoreLost` if there was a store and it is gone or damaged (the damaged file is set aside): then
        `recover`, or `start_anew=True`, which keeps what is left of the old one under other names. Raises
        `StoreProblem` for anything else that `open_database` refuses; nothing was changed then.
        """
        options = options or Options()
        backups = Backups(backups_folder, SCHEMA)
        old_text: list[str] = []
        if start_anew:
            old_text = recovery.begin_anew(folder, now)
        else:
            recovery.refuse_if_lost(folder, backups)
        database = recovery.open_or_report_loss(folder, backups, options, now, failpoint)
        store = cls(database, folder, backups, options, failpoint)
        store._settle()
        if start_anew:
            act = Act("nm-lsp", "cli", "store.begun-anew", "", None, {"setAside": list(old_text)})
            store.audit.append_or_count([act], now)
        return store

    @classmethod
    def recover(
        cls,
        folder: Path,
        backups_folder: Path,
        now: float,
        *,
        actor: str,
        face: str,
        backup: Path | None = None,
        options: Options | None = None,
    ) -> tuple[DecisionStore, Recovery]:
        """Put back `backup` (by default the newest good one, if there is any) and what the text copy holds beyond it.

        A file that is in the way is set aside. Raises `StoreProblem` or `NotFound`, with everything as it was, for a
        backup that cannot be used.
        """
        backups = Backups(backups_folder, SCHEMA)
        newest = backups.newest_good()
        chosen = backup or (newest.path if newest else None)
        path = folder / recovery.DATABASE
        replaced = backups.put_back(chosen, path, now) if chosen else None
        if not path.exists():
            recovery.put_empty(path)
        store = cls.open(folder, backups_folder, now, options=options)
        n_replayed, stopped = store.replay_text()
        if not store.audit.text.exists():
            store.audit.begin_text_anew()
        name = chosen.name if chosen else None
        act = Act(actor, face, "store.restored", "", None, {"backup": name, "replayed": n_replayed, "stopped": stopped})
        store.audit.append_or_count([act], now)
        return store, Recovery(chosen, replaced, n_replayed, stopped)

    def _settle(self) -> None:
        """Finish what a process that died left undone: an index behind the view, a redaction, lines of the text.

        Where another process holds the lock, that one is at work, and the rest is finished another time.
        """
        if self._options.reading_only:
            return
        try:
            self._settle_now()
        except StoreProblem as error:
            if error.reason != "locked":
                raise

    def _settle_now(self) -> None:
        with self._database.reading() as connection:
            behind = decision_search.is_behind(connection) or not decision_search.exists(connection)
        if behind:
            try:
                with self._database.atomic() as connection:
                    decision_search.prepare(connection)
            except StoreProblem as error:
                self._mend(error, None)
        decision_redaction.finish(self._database, self.audit, self.backups)
        self.audit.follow()

    def append(
        self,
        events: Sequence[Event],
        acts: Sequence[Act] = (),
        *,
        now: float,
        expect: Mapping[DecisionId, int] | None = None,
        if_revision: int | None = None,
        merged: bool = False,
    ) -> Appended:
        """Write events, the view after them and their audit records, then audit records of `acts`, all or nothing.

        `expect` gives revisions of decisions, `if_revision` that of the whole store, as the caller saw them; where one
        has moved, raises `Conflict` with the record (None for the store) as it now reads. Raises `Refused` where an
        event cannot follow those before it (`merged` as in `fold.apply`), and `StoreProblem` where the file cannot be
        written.
        """
        try:
            appended = self._append(events, acts, now, expect or {}, if_revision, merged)
        except StoreProblem as error:
            self._mend(error, now)
            appended = self._append(events, acts, now, expect or {}, if_revision, merged)
        if self._database.replaced():
            # Removed between the check and the commit: the commit went into the file that has no name any more, and
            # another process may have put that back before.
            self.heal(now)
            if events and not self._has(events[-1]):
                appended = self._append(events, acts, now, {}, None, merged)
        self.audit.follow()
        return appended

    def _has(self, event: Event) -> bool:
        with self._database.reading() as connection:
            return decision_rows.is_known(connection, event)

    def _mend(self, error: StoreProblem, now: float | None) -> None:
        """Repair what a write stumbled over, so that it can be tried again; raises `error` for what cannot be."""
        match error.reason:
            case "index":
                with self._database.atomic() as connection:
                    decision_search.make_anew(connection)
            case "replaced" if now is not None:
                self.heal(now)
            case _:
                raise error

    def _append(
        self,
        events: Sequence[Event],
        acts: Sequence[Act],
        now: float,
        expect: Mapping[DecisionId, int],
        if_revision: int | None,
        merged: bool,
    ) -> Appended:
        changed: dict[DecisionId, DecisionRecord] = {}
        with self._database.atomic() as connection:
            if if_revision is not None and decision_rows.revision(connection) != if_revision:
                raise Conflict(
                    "other decisions were written meanwhile", hint="Look at them and send the request again."
                )
            for decision, revision in expect.items():
                current = decision_rows.read_record(connection, decision)
                if current is None or current.revision != revision:
                    raise Conflict(
                        f"{decision} was changed meanwhile",
                        current=record_summary(current) if current is not None else None,
                        hint="Look at it and try again.",
                    )
            for event in events:
                sequence, record = decision_rows.append_event(connection, event, merged=merged)
                self._failpoint("event-written")
                audit_rows.append_act(connection, act_of(event), event.time, sequence)
                if record is not None:
                    changed[record.id] = record
            for act in acts:
                audit_rows.append_act(connection, act, utc_text(now))
            for decision in changed:
                decision_search.update(connection, decision)
            return Appended(decision_rows.revision(connection), tuple(changed.values()), audit_rows.head(connection))

    def redact(self, event: Event, *, now: float, expect: Mapping[DecisionId, int] | None = None) -> Redaction:
        """Take a field out of a decision everywhere: events, view, search, audit payloads, text copy and backups.

        `event` is of kind redacted. Its record and the account of what was taken are one transaction with the change;
        text copy and backups follow, at the latest when the store is next opened.
        """
        if event.kind is not EventKind.REDACTED or event.decision is None:
            raise InvalidInput("event", "a redaction needs an event of kind redacted")
        try:
            self._redact(event, now, expect)
        except StoreProblem as error:
            self._mend(error, now)
            self._redact(event, now, expect)
        self._failpoint("redacted")
        self.audit.follow()
        return decision_redaction.finish(self._database, self.audit, self.backups)

    def _redact(self, event: Event, now: float, expect: Mapping[DecisionId, int] | None) -> None:
        assert event.decision is not None
        field = plain_text(event.after["field"], "field")
        with self._database.atomic() as connection:
            record = decision_rows.read_record(connection, event.decision)
            if record is None:
                raise NotFound(f"There is no decision {event.decision}.")
            if expect is not None and expect.get(record.id, record.revision) != record.revision:
                raise Conflict(
                    f"{record.id} was changed meanwhile",
                    current=record_summary(record),
                    hint="Look at it and try again.",
                )
            sequence, _ = decision_rows.append_event(connection, event)
            rows = decision_rows.redact_rows(connection, event.decision, field, before=sequence)
            audit_rows.append_act(connection, act_of(event), event.time, sequence)
            leaves = [leaf for row in rows for leaf in leaves_of(row.act)]
            account = Act(
                event.actor, event.face, REDACTION, event.decision, None, {"field": field, "leaves": [*leaves]}
            )
            audit_rows.append_act(connection, account, utc_text(now))
            decision_search.update(connection, event.decision, changed_behind=True)
            decision_search.forget_old_terms(connection)
            decision_redaction.note(connection, event.decision, field, sequence)

    def heal(self, now: float) -> bool:
        """Go on after the file was removed or replaced; True if it was.

        A removed file is put back from what this process still has open, with an audit record of it; where the whole
        repository is gone that goes to the backups instead, and `StoreProblem` is raised. A file that somebody
        else put there is opened.
        """
        if not self._database.replaced():
            return False
        put_back = recovery.rescue(self._database, self.folder, self.backups, now)
        old = self._database
        self._database = open_database(old.path, SCHEMA, self._options, failpoint=self._failpoint)
        old.close()
        self.audit.use(self._database)
        if put_back:
            if not self.audit.text.exists():
                self.audit.begin_text_anew()
            self.audit.append_or_count([Act("nm-lsp", "lsp", "store.put-back")], now)
        self._settle()
        return True

    def replay_text(self) -> tuple[int, str | None]:
        """Take over what the text copy holds beyond the table; returns how many records, and why it stopped, if so."""
        with self._database.atomic() as connection:
            n_replayed, stopped = recovery.replay(connection, self.audit.text.read())
        if n_replayed:
            self._settle()
        return n_replayed, stopped

    def stamp(self) -> tuple[int, int, int]:
        """Moves when anybody wrote to the store; cheap enough to ask every second. See `changes`."""
        return self._database.stamp()

    def memory(self) -> tuple[int, Memory]:
        """The store's revision and the fold of all events at it, read from the view: 0.5 s for 10,000 decisions."""
        with self._database.reading() as connection:
            records = {record.id: record for record in decision_rows.read_records(connection)}
            rewrites = [pair for event in decision_rows.read_rewrites(connection) for pair in event.pairs()]
            return decision_rows.revision(connection), Memory(records, rewrites)

    def changes(self, since: int) -> Changes:
        """What was written after revision `since`; 0 for everything, with all events."""
        with self._database.reading() as connection:
            rows = decision_rows.read_events(connection, since)
            touched = dict.fromkeys(event.decision for _, event in rows if event.decision is not None)
            if since == 0:
                records = tuple(decision_rows.read_records(connection))
            else:
                found = (decision_rows.read_record(connection, decision) for decision in touched)
                records = tuple(record for record in found if record is not None)
        return Changes(rows[-1][0] if rows else since, tuple(event for _, event in rows), records)

    def revision(self) -> int:
        with self._database.reading() as connection:
            return decision_rows.revision(connection)

    def records(self, decisions: Iterable[DecisionId] | None = None) -> list[DecisionRecord]:
        """The decisions as they read now, in the order of recording, or those named, in that order, unknown ones left
        out."""
        with self._database.reading() as connection:
            if decisions is None:
                return list(decision_rows.read_records(connection))
            found = [decision_rows.read_record(connection, decision) for decision in decisions]
        return [record for record in found if record is not None]

    def anchors(self) -> list[tuple[DecisionId, Anchor]]:
        """Every anchor by the name it was given: a fifth of the cost of reading all records."""
        with self._database.reading() as connection:
            return decision_rows.read_anchors(connection)

    def history(self, decision: DecisionId) -> list[Event]:
        """The events of one decision, oldest first."""
        with self._database.reading() as connection:
            return [event for _, event in decision_rows.read_history(connection, decision)]

    def search(self, text: str) -> tuple[list[Match], bool]:
        """All decisions that hold a word of `text`, best first; False with them if this SQLite has no FTS5."""
        with self._database.reading() as connection:
            return decision_search.search(connection, text)

    def log_findings(self, findings: Iterable[LoggedFinding]) -> int:
        """Add findings to the log; returns how many were new to it."""
        rows = [
            (f.decision, f.confirmation, f.commit, as_ascii(f.path), f.kind, as_ascii(f.detail), f.time)
            for f in findings
        ]
        if not rows:
            return 0
        with self._database.atomic() as connection:
            return connection.executemany(_ADD_FINDING, rows).rowcount

    def findings(self, decision: DecisionId) -> list[LoggedFinding]:
        """The log of one decision, in the order of time."""
        with self._database.reading() as connection:
            rows = connection.execute(_FINDINGS, (decision,)).fetchall()
        return [
            LoggedFinding(decision, confirmation, commit, from_ascii(path), kind, from_ascii(detail), time)
            for confirmation, commit, path, kind, detail, time in rows
        ]

    def embeddings(self, model: str) -> tuple[list[tuple[DecisionId, bytes]], Vectors]:
        """The cached vectors of a model: (decision, hash of the text embedded) and, row by row, a float32 matrix."""
        with self._database.reading() as connection:
            rows = connection.execute(_EMBEDDINGS, (model,)).fetchall()
        n_columns = len(rows[0][2]) // 4 if rows else 0
        joined = np.frombuffer(b"".join(row[2] for row in rows), dtype="<f4")
        return [(DecisionId(row[0]), row[1]) for row in rows], joined.reshape(len(rows), n_columns).astype(np.float32)

    def put_embeddings(self, model: str, keys: Sequence[tuple[DecisionId, bytes]], matrix: Vectors) -> None:
        """Keep vectors: row i of `matrix` for the decision and text hash `keys[i]`, in place of its older one."""
        packed = np.ascontiguousarray(matrix, dtype="<f4")
        rows = [(key[0], model, key[1], row.tobytes()) for key, row in zip(keys, packed, strict=True)]
        with self._database.atomic() as connection:
            connection.executemany(_PUT_EMBEDDING, rows)

    def back_up_if_due(self, now: float) -> Backup | None:
        """Make the day's backup if there is none yet: to be called after a change, off the path of the answer."""
        return self.back_up(now, "day") if self.backups.due(now) else None

    def back_up(self, now: float, reason: str) -> Backup:
        return self.backups.make(self._database.copy_to, now, reason)

    def check_writable(self) -> None:
        """Take the lock that writing needs, and give it back. Raises `StoreProblem` as `append` would."""
        with self._database.atomic():
            pass

    @property
    def journal(self) -> str:
        """wal, or delete where the file system does not take a write-ahead log."""
        return self._database.opened.journal

    def close(self) -> None:
        self._database.close()


_ADD_FINDING = """
INSERT OR IGNORE INTO findings (decision, confirmation, commit_id, path, kind, detail, time)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_FINDINGS = """
SELECT confirmation, commit_id, path, kind, detail, time FROM findings WHERE decision = ?
ORDER BY time, commit_id, path
"""
_EMBEDDINGS = "SELECT decision, content, vector FROM embeddings WHERE model = ? ORDER BY decision"
_PUT_EMBEDDING = "INSERT OR REPLACE INTO embeddings (decision, model, content, vector) VALUES (?, ?, ?, ?)"
