"""The decision store: what is appended is kept, folded, found and audited, whoever else writes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nm_lsp.audit.chain import Act, link
from nm_lsp.audit.verify import Fault
from nm_lsp.base.errors import Conflict, NotFound, Refused, StoreProblem
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.fold import fold, fold_all, record_summary
from nm_lsp.decisions.model import Anchor, AnchorKind, DecisionId
from nm_lsp.storage.decision_schema import SCHEMA
from nm_lsp.storage.decisions import DecisionStore, LoggedFinding

Make = Callable[..., Event]
Open = Callable[..., DecisionStore]
Ids = Callable[[int], DecisionId]


def test_every_kind_of_event_is_kept_and_folded(open_store: Open, event: Make, ids: Ids, now: float) -> None:
    store = open_store()
    full = {
        "type": "architecture",
        "confidence": 0.75,
        "author": "Zoë",
        "tags": ["auth", "naïve"],
        "alternatives": ["cookies", "nothing\nat all"],
        "dependsOn": [ids(2)],
        "evidence": ["https://example.org"],
    }
    events = [
        event("recorded", 1, 1, **full),
        event("recorded", 2, 2),
        event("amended", 1, 3, before={"title": "Decision 1"}, title="Tokens"),
        event("acknowledged", 1, 4, finding={"commit": "ab" * 20, "path": "src/a.py"}),
        event("restored", 1, 5),
        event("invalidated", 1, 6, reason="no longer", supersededBy=ids(2)),
        event("reinstated", 1, 7, reason="after all"),
        event("superseded", 2, 8, supersededBy=ids(1)),
        Event(
            "e-r",
            None,
            EventKind.REWRITTEN,
            event("restored", 1, 9).time,
            "git",
            "hook",
            after={"pairs": [["ab" * 20, "cd" * 20]]},
        ),
    ]
    for one in events[:4]:
        store.append([one], now=now)
    appended = store.append(events[4:], now=now)
    assert appended.revision == len(events) == store.revision()
    store.close()

    store = open_store()
    changes = store.changes(0)
    assert list(changes.events) == events
    assert {record.id: record for record in store.records()} == fold_all(events).records
    assert store.memory() == (len(events), fold_all(events))
    assert store.records([ids(2), ids(9), ids(1)]) == [fold([events[1], events[7]]), fold_all(events).records[ids(1)]]
    assert store.history(ids(1)) == [one for one in events if one.decision == ids(1)]
    assert store.audit.verify().sound
    assert [record.act.action for record in store.audit.records()] == [f"decision.{one.kind.value}" for one in events]


def test_changes_since_a_revision_and_by_another_process(open_store: Open, event: Make, ids: Ids, now: float) -> None:
    mine, other = open_store(), open_store()
    mine.append([event("recorded", 1, 1), event("recorded", 2, 2)], now=now)
    seen = other.changes(0)
    stamp = other.stamp()
    assert other.stamp() == stamp
    mine.append([event("amended", 2, 3, before={}, title="New")], now=now)
    assert other.stamp() != stamp
    changes = other.changes(seen.revision)
    assert [one.id for one in changes.events] == ["e-2-3"]
    assert [record.decision.title for record in changes.records] == ["New"]
    assert other.changes(changes.revision).records == ()


def test_a_refused_event_leaves_nothing_of_the_whole_append(
    open_store: Open, event: Make, ids: Ids, now: float
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    with pytest.raises(Refused):
        store.append([event("recorded", 2, 2), event("recorded", 1, 3)], [Act("a", "cli", "import")], now=now)
    with pytest.raises(Refused):
        store.append([event("recorded", 1, 1)], now=now)
    assert store.revision() == 1
    assert len(store.records()) == 1
    assert store.audit.head().sequence == 1
    assert store.audit.verify().sound


def test_a_writer_that_saw_an_older_revision_writes_nothing(
    open_store: Open, event: Make, ids: Ids, now: float
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.append([event("amended", 1, 2, before={}, title="Theirs")], now=now)
    with pytest.raises(Conflict) as caught:
        store.append([event("amended", 1, 3, before={}, title="Mine")], now=now, expect={ids(1): 1})
    assert caught.value.current == record_summary(store.records([ids(1)])[0])
    with pytest.raises(Conflict):
        store.append([event("recorded", 2, 4)], now=now, if_revision=1)
    with pytest.raises(Conflict):
        store.append([event("recorded", 3, 5)], now=now, expect={ids(7): 1})
    store.append([event("amended", 1, 3, before={}, title="Mine")], now=now, expect={ids(1): 2}, if_revision=2)
    assert store.records()[0].decision.title == "Mine"


def test_texts_that_are_no_utf8_survive(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    odd = event(
        "recorded",
        1,
        1,
        actor='Zo\udceb \\ "Z" <z@example.org>',
        path="src/\udce9.py",
        rationale="lone \ud800 half",
        title="☃ \u202e",
    )
    store.append([odd], now=now)
    assert store.changes(0).events == (odd,)
    assert store.records()[0] == fold([odd])
    assert store.anchors()[0][1] == Anchor(AnchorKind.FILE, "src/\udce9.py")
    assert store.audit.verify().sound


def test_anchors_follow_amendments(open_store: Open, event: Make, ids: Ids, now: float) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    new = [{"kind": "symbol", "path": "b.py", "symbol": "f"}, {"kind": "folder", "path": "lib/"}]
    seen = {"commit": None, "seen": []}
    store.append([event("amended", 1, 2, before={}, anchors=new, confirmation=seen)], now=now)
    assert store.anchors() == [
        (ids(1), Anchor(AnchorKind.SYMBOL, "b.py", "f")),
        (ids(1), Anchor(AnchorKind.FOLDER, "lib/")),
    ]


def test_findings_are_logged_once(open_store: Open, ids: Ids) -> None:
    store = open_store()
    one = LoggedFinding(ids(1), "e-1", "ab" * 20, "a\\\udce9.py", "stale", 'Zoë "x"\n', "2026-01-31T12:00:00.000000Z")
    two = LoggedFinding(ids(1), "e-1", "cd" * 20, "a.py", "moved", "b.py", "2026-01-31T12:00:01.000000Z")
    assert store.log_findings([one, two]) == 2
    assert store.log_findings([one, two]) == 0
    assert store.log_findings([]) == 0
    assert store.findings(ids(1)) == [one, two]
    assert store.findings(ids(2)) == []


def test_embeddings_are_kept_by_model_and_text(open_store: Open, ids: Ids) -> None:
    store = open_store()
    assert store.embeddings("m")[0] == []
    matrix = np.arange(8, dtype=np.float32).reshape(2, 4)
    store.put_embeddings("m", [(ids(1), b"one"), (ids(2), b"two")], matrix)
    store.put_embeddings("other", [(ids(1), b"one")], matrix[:1])
    store.put_embeddings("m", [(ids(1), b"changed")], matrix[1:] + 1)
    keys, found = store.embeddings("m")
    assert dict(keys) == {ids(1): b"changed", ids(2): b"two"}
    assert np.array_equal(found, np.vstack([matrix[1:] + 1, matrix[1:]]))


# Audit


def test_an_act_that_cannot_be_recorded_is_counted(open_store: Open, now: float, repository: Path) -> None:
    store = open_store()
    assert store.audit.append_or_count([Act("a", "cli", "index.built")], now)
    with sqlite3.connect(repository / ".neuralmind/lsp/memory.db", isolation_level=None) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        assert not store.audit.append_or_count([Act("a", "cli", "index.built", "x"), Act("a", "cli", "export")], now)
        blocker.execute("ROLLBACK")
    blocker.close()
    report = store.audit.verify()
    assert report.n_dropped == 2
    assert report.verdict.sound
    assert not report.sound
    lines = store.audit.dropped.path.read_text().splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["index.built", "export"]


TAMPERINGS = {
    "event text": (
        "UPDATE events SET event = replace(event, 'Because', 'Despite') WHERE sequence = 3",
        Fault.ALTERED,
        3,
    ),
    "event broken": ("UPDATE events SET event = '{' WHERE sequence = 3", Fault.UNREADABLE, 3),
    "audit column": ("UPDATE audit SET actor = 'Eve' WHERE sequence = 2", Fault.ALTERED, 2),
    "record moved": ("UPDATE audit SET sequence = 99 WHERE sequence = 3", Fault.REORDERED, 3),
    "event without record": (
        "INSERT INTO events SELECT 99, 'x', decision, kind, event, NULL FROM events WHERE sequence = 1",
        Fault.FOREIGN,
        7,
    ),
    "view": ("UPDATE decisions SET record = replace(record, 'Because', 'Despite') WHERE number = 2", Fault.ALTERED, 0),
    "actor broken": ("UPDATE audit SET actor = 'E\\x' WHERE sequence = 2", Fault.UNREADABLE, 2),
    "marks": ("UPDATE events SET marks = '[{},{}]' WHERE sequence = 2", Fault.UNREADABLE, 2),
}


@pytest.mark.parametrize("how", TAMPERINGS)
def test_verify_names_what_was_changed_behind_our_back(
    open_store: Open, event: Make, now: float, repository: Path, how: str
) -> None:
    statement, fault, line = TAMPERINGS[how]
    store = open_store()
    store.append([event("recorded", n, n) for n in range(1, 7)], now=now)
    assert store.audit.verify().sound
    with sqlite3.connect(repository / ".neuralmind/lsp/memory.db") as other:
        other.execute(statement)
    other.close()
    findings = store.audit.verify().verdict.findings
    assert (fault, line) in [(finding.fault, finding.line) for finding in findings]


def test_a_spoilt_record_reads_as_its_events_say_and_a_spoilt_event_is_no_wrong_parameter(
    open_store: Open, event: Make, ids: Ids, now: float, repository: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1), event("recorded", 2, 2), event("restored", 1, 3)], now=now)
    before = store.memory()

    def spoil(statement: str) -> None:
        with sqlite3.connect(repository / ".neuralmind/lsp/memory.db") as other:
            other.execute(statement)
        other.close()

    spoil("UPDATE decisions SET record = replace(record, ':', ';') WHERE number = 1")
    assert store.memory() == before
    assert [finding.fault for finding in store.audit.verify().verdict.findings] == [Fault.ALTERED]
    store.append([event("restored", 1, 4)], now=now)
    assert store.audit.verify().sound
    assert store.records([ids(1)])[0].revision == 3
    spoil("UPDATE events SET event = replace(event, ':', ';') WHERE sequence = 2")
    with pytest.raises(StoreProblem, match="no event") as refused:
        store.changes(0)
    assert refused.value.reason == "damaged"
    assert "nm-lsp decisions recover" in str(refused.value.hint)


def test_nothing_deletes(open_store: Open, event: Make, now: float, repository: Path) -> None:
    open_store().append([event("recorded", 1, 1)], now=now)
    with sqlite3.connect(repository / ".neuralmind/lsp/memory.db") as other:
        for table in ("events", "audit"):
            with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
                other.execute(f"DELETE FROM {table}")
    other.close()


def test_a_cut_text_stays_cut_and_is_reported(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", n, n) for n in range(1, 6)], now=now)
    path = store.audit.text.path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    found = store.audit.verify().verdict.findings
    assert [(finding.fault, finding.copy) for finding in found] == [(Fault.CUT, "text")]
    store.close()
    store = open_store()
    store.append([event("recorded", 6, 6)], now=now)
    found = store.audit.verify().verdict.findings
    assert [(finding.fault, finding.copy, finding.line) for finding in found] == [(Fault.MISSING, "text", 4)]
    names = store.audit.rewrite_text("Ada", "cli", now)
    assert store.audit.verify().sound
    assert (path.parent / names[0]).read_bytes().splitlines(keepends=True)[:3] == lines[:3]
    assert store.audit.records()[-1].act.action == "audit.text-rewritten"


def test_a_cut_table_is_seen_from_the_text(open_store: Open, event: Make, now: float, repository: Path) -> None:
    store = open_store()
    store.append([event("recorded", n, n) for n in range(1, 6)], now=now)
    with sqlite3.connect(repository / ".neuralmind/lsp/memory.db") as other:
        other.executescript("DROP TRIGGER audit_is_kept; DROP TRIGGER events_are_kept;")
        other.execute("DELETE FROM audit WHERE sequence > 3")
    other.close()
    found = store.audit.verify().verdict.findings
    assert (Fault.CUT, "table") in [(finding.fault, finding.copy) for finding in found]
    assert store.audit.is_text_ahead()


@pytest.mark.parametrize("torn", ["nothing", "half", "garbage"])
def test_the_text_is_completed_after_a_crash(open_store: Open, event: Make, now: float, torn: str) -> None:
    class Crash(Exception):
        pass

    def crash(step: str) -> None:
        if step == "text-half-written":
            raise Crash

    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.close()
    store = open_store(failpoint=crash)
    with pytest.raises(Crash):
        store.append([event("recorded", 2, 2, rationale="long " * 99), event("recorded", 3, 3)], now=now)
    store.close()
    path = store.audit.text.path
    head = path.read_bytes().splitlines(keepends=True)[0]
    assert not path.read_bytes().endswith(b"\n")
    if torn == "nothing":
        path.write_bytes(head)
    elif torn == "garbage":
        path.write_bytes(head + b'{"sequence": 2, "ti')
    store = open_store()
    assert path.read_bytes().count(b"\n") == (4 if torn == "garbage" else 3)
    findings = store.audit.verify().verdict.findings
    assert [finding.fault for finding in findings] == (
        [Fault.UNREADABLE, Fault.FOREIGN][:1] if torn == "garbage" else []
    )


def test_an_unwritable_text_copy_waits_and_is_reported(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    path = store.audit.text.path
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    store.append([event("recorded", 2, 2)], now=now)
    path.rmdir()
    path.write_bytes(kept)
    report = store.audit.verify()
    assert report.n_waiting == 1
    assert report.verdict.sound
    assert store.audit.follow()
    assert store.audit.verify().sound


def test_rotation_keeps_the_chain(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", n, n) for n in (1, 2, 3)], now=now)
    assert store.audit.rotate("Ada", "cli", now).name == "audit.00000001-00000003.jsonl"
    store.append([event("recorded", 4, 4)], now=now)
    assert store.audit.rotate("Ada", "cli", now).name == "audit.00000004-00000005.jsonl"
    store.append([event("recorded", 5, 5)], now=now)
    assert [path.name for path in store.audit.text.files()] == [
        "audit.00000001-00000003.jsonl",
        "audit.00000004-00000005.jsonl",
        "audit.jsonl",
    ]
    assert store.audit.verify().sound
    store.audit.text.archives()[0].unlink()
    found = store.audit.verify().verdict.findings
    assert [(finding.fault, finding.copy, finding.line) for finding in found] == [(Fault.MISSING, "text", 1)]


def test_a_crash_inside_rotation_is_made_good(open_store: Open, event: Make, now: float) -> None:
    class Crash(Exception):
        pass

    def crash(step: str) -> None:
        if step == "archived":
            raise Crash

    store = open_store(failpoint=crash)
    store.append([event("recorded", 1, 1)], now=now)
    with pytest.raises(Crash):
        store.audit.rotate("Ada", "cli", now)
    store.close()
    store = open_store()
    store.append([event("recorded", 2, 2)], now=now)
    assert store.audit.verify().sound
    assert store.audit.rotate("Ada", "cli", now).name == "audit.00000002-00000002.jsonl"
    assert store.audit.verify().sound


def test_anchors_of_the_chain(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", n, n) for n in (1, 2, 3)], now=now)
    head = store.audit.head()
    store.append([event("recorded", 4, 4)], now=now)
    assert store.audit.verify([head]).sound
    other = link(head, Act("Eve", "cli", "export"), "2026-01-31T12:00:00.000000Z").head
    assert not store.audit.verify([head, other]).sound


# Redaction


# One word, so that the full-text index would hold it whole.
SECRET = "s3cr3tt0ken77"


def test_a_redacted_text_is_nowhere_and_everything_still_verifies(
    open_store: Open, event: Make, ids: Ids, now: float, tmp_path: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1, rationale=f"The key is {SECRET}."), event("recorded", 2, 2)], now=now)
    store.put_embeddings("m", [(ids(1), b"h")], np.ones((1, 4), dtype=np.float32))
    before = {"rationale": f"The key is {SECRET}."}
    store.append([event("amended", 1, 3, before=before, rationale="In the vault.")], now=now)
    store.back_up(now, "day")
    store.audit.rotate("Ada", "cli", now)
    store.append([event("amended", 1, 4, before={"rationale": "In the vault."}, rationale=f"{SECRET} again")], now=now)
    store.audit.rewrite_text("Ada", "cli", now)
    head = store.audit.head()
    done = store.redact(event("redacted", 1, 5, field="rationale", reason="a key"), now=now)
    assert done.n_backups == 1
    assert done.n_lines > 3
    assert done.left == ()
    for _ in range(2):
        holding = [p for p in tmp_path.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
        assert holding == []
        store.close()
    store = open_store()
    assert store.search("s3cr3tt0ken77")[0] == []
    assert [match.decision for match in store.search("so")[0]] == [ids(2)]
    assert store.records([ids(1)])[0].decision.rationale == "[redacted]"
    assert store.records([ids(1)])[0].revision == 4
    assert store.embeddings("m")[0] == []
    report = store.audit.verify([head])
    assert report.sound, report
    assert len(report.verdict.redacted) == 3
    assert store.history(ids(1))[-1].reason == "a key"
    for backup in store.backups.all():
        assert store.backups.fault(backup.path) is None


def test_redaction_of_symbol_texts_and_reasons(
    open_store: Open, event: Make, ids: Ids, now: float, tmp_path: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1), event("invalidated", 1, 2, reason=f"leaked {SECRET}")], now=now)
    store.redact(event("redacted", 1, 3, field="seen", reason="a key in the code"), now=now)
    store.redact(event("redacted", 1, 4, field="reason", reason="a key in the reason"), now=now)
    record = store.records()[0]
    assert record.confirmations[0].seen[0].packed_text is None
    assert record.invalidation is not None
    assert record.invalidation.reason == "[redacted]"
    assert store.audit.verify().sound
    assert store.history(ids(1))[-1].reason == "a key in the reason"
    store.close()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]


def test_a_redaction_killed_half_way_is_finished_at_the_next_start(
    open_store: Open, event: Make, now: float, tmp_path: Path
) -> None:
    class Crash(Exception):
        pass

    def crash(step: str) -> None:
        if step == "redacted":
            raise Crash

    store = open_store(failpoint=crash)
    store.append([event("recorded", 1, 1, title=SECRET)], now=now)
    store.back_up(now, "day")
    with pytest.raises(Crash):
        store.redact(event("redacted", 1, 2, field="title", reason="a key"), now=now)
    store.close()
    assert SECRET.encode() in store.audit.text.path.read_bytes()
    store = open_store()
    assert store.audit.verify().sound
    store.close()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]


def test_an_unknown_decision_cannot_be_redacted(open_store: Open, event: Make, ids: Ids, now: float) -> None:
    store = open_store()
    with pytest.raises(NotFound):
        store.redact(event("redacted", 1, 2, field="title", reason="a key"), now=now)
    store.append([event("recorded", 1, 1)], now=now)
    with pytest.raises(Conflict):
        store.redact(event("redacted", 1, 2, field="title", reason="a key"), now=now, expect={ids(1): 5})
    assert store.revision() == 1


# Full-text search


def test_search_weighs_title_over_rationale_and_takes_no_operators(
    open_store: Open, event: Make, ids: Ids, now: float
) -> None:
    store = open_store()
    store.append(
        [
            event("recorded", 1, 1, title="Sessions", rationale="Cookies hold the tokens."),
            event("recorded", 2, 2, title="Tokens", rationale="Signed."),
            event("recorded", 3, 3, title="Names", tags=["Bücher"], alternatives=["a 100% cache"]),
        ],
        now=now,
    )
    found, fts = store.search("tokens")
    assert fts
    assert [match.decision for match in found] == [ids(2), ids(1)]
    assert [match.decision for match in store.search("bucher")[0]] == [ids(3)]
    assert [match.decision for match in store.search('cache" OR NOT NEAR( *')[0]] == [ids(3)]
    assert store.search("absent")[0] == []
    assert store.search(' "*^ ')[0] == []
    store.append([event("amended", 2, 4, before={}, title="Keys")], now=now)
    assert [match.decision for match in store.search("tokens")[0]] == [ids(1)]


def without_fts5(path: Path, *, back: bool = False) -> None:
    """Make the file name a module that this SQLite does not have, or the right one again."""
    names = ("USING fts5", "USING fts5_gone")
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'decision_text'",
            names[::-1] if back else names,
        )
    connection.close()


def test_a_store_made_with_fts5_works_without_it_and_catches_up(
    open_store: Open, event: Make, ids: Ids, now: float, repository: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1, title="Signed tokens"), event("recorded", 2, 2, title="Plain")], now=now)
    store.close()
    without_fts5(repository / ".neuralmind/lsp/memory.db")
    store = open_store()
    found, fts = store.search("TOKEN 100%")
    assert not fts
    assert [match.decision for match in found] == [ids(1)]
    store.append([event("recorded", 3, 3, title="Written meanwhile, 50%_done")], now=now)
    store.append([event("amended", 2, 4, before={}, title="Tokens too")], now=now)
    assert {match.decision for match in store.search("token")[0]} == {ids(1), ids(2)}
    assert [match.decision for match in store.search("meanwhile")[0]] == [ids(3)]
    assert store.search("0%_d")[0] != store.search("zzz")[0] == []
    assert store.audit.verify().sound
    store.close()
    without_fts5(repository / ".neuralmind/lsp/memory.db", back=True)
    store = open_store()
    found, fts = store.search("meanwhile")
    assert fts
    assert [match.decision for match in found] == [ids(3)]
    assert {match.decision for match in store.search("tokens")[0]} == {ids(1), ids(2)}
    assert store.search("plain")[0] == []


def test_a_redaction_without_fts5_leaves_no_word_in_the_index(
    open_store: Open, event: Make, ids: Ids, now: float, repository: Path, tmp_path: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1, rationale=SECRET), event("recorded", 2, 2, title="Plain")], now=now)
    store.close()
    without_fts5(repository / ".neuralmind/lsp/memory.db")
    store = open_store()
    store.redact(event("redacted", 1, 3, field="rationale", reason="a key"), now=now)
    store.close()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
    without_fts5(repository / ".neuralmind/lsp/memory.db", back=True)
    store = open_store()
    assert [match.decision for match in store.search("plain")[0]] == [ids(2)]
    assert store.search("plain")[1]
    assert store.search(SECRET)[0] == []


def test_a_fresh_store_without_fts5(
    open_store: Open, event: Make, ids: Ids, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nm_lsp.storage import decision_search  # the statement that fails on a build without FTS5

    monkeypatch.setattr(decision_search, "_CREATE", decision_search._CREATE.replace("fts5", "fts5_gone"))
    store = open_store()
    store.append([event("recorded", 1, 1, title="Signed tokens")], now=now)
    assert store.search("tokens")[0][0].decision == ids(1)
    assert not store.search("tokens")[1]
    store.close()
    monkeypatch.undo()
    store = open_store()
    assert store.search("tokens") == ([store.search("tokens")[0][0]], True)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE decision_text_data SET block = x'00ff00ff'",
        "DELETE FROM decision_text_data",
        "DELETE FROM decision_text_idx",
        "DELETE FROM decision_text_content",
        "DELETE FROM decision_text_docsize",
    ],
)
def test_a_damaged_index_harms_nobody(
    open_store: Open, event: Make, ids: Ids, now: float, repository: Path, damage: str
) -> None:
    """Found when the store is opened, or while it is open."""
    store = open_store()
    store.append([event("recorded", 1, 1, title="Signed tokens")], now=now)
    for n in (2, 3):
        with sqlite3.connect(repository / ".neuralmind/lsp/memory.db") as other:
            other.execute(damage)
            if n == 2:
                other.execute("DELETE FROM indexed")
        other.close()
        store = open_store()
        store.search("tokens")
        store.append([event("recorded", n, n, title=f"Keys {n}")], now=now)
        assert ids(n) in [match.decision for match in store.search("keys")[0]]
        store.append([event("amended", 1, n + 10, before={}, title=f"Tokens {n}")], now=now)
        assert ids(1) in [match.decision for match in store.search("tokens")[0]]
        assert store.audit.verify().sound


# Schema


def test_released_migrations_never_change() -> None:
    """Files in the world were made by them: whatever is new is a migration of its own, and a line here."""
    sums = [hashlib.sha256("\0".join(one.statements).encode()).hexdigest()[:16] for one in SCHEMA.migrations]
    assert sums == ["fbd0e027ccb200b1"]


# Cost


@pytest.mark.slow
def test_recording_among_ten_thousand_is_quick(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    for start in range(0, 10_000, 1000):
        store.append([event("recorded", n, n, path=f"src/{n}.py") for n in range(start, start + 1000)], now=now)
    took = []
    for n in range(20_000, 20_020):
        begun = time.perf_counter()
        store.append([event("recorded", n, n)], now=now)
        took.append(time.perf_counter() - begun)
    assert sorted(took)[10] < 0.050
    begun = time.perf_counter()
    assert len(store.records()) == 10_020
    assert time.perf_counter() - begun < 2


def test_a_locked_store_is_waited_for_and_then_reported(
    open_store: Open, event: Make, now: float, repository: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    with sqlite3.connect(repository / ".neuralmind/lsp/memory.db", isolation_level=None) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        with pytest.raises(StoreProblem) as caught:
            store.append([event("recorded", 2, 2)], now=now)
        assert caught.value.reason == "locked"
        assert 0.4 < time.monotonic() - begun < 3
        # Readers do not wait for it.
        assert len(store.records()) == 1
    blocker.close()
    store.append([event("recorded", 2, 2)], now=now)
    assert store.audit.verify().sound
