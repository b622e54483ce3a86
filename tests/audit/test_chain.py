"""The audit chain: what it pins, what verification names, and what it cannot see."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nm_lsp.audit import acts, chain, text, verify
from nm_lsp.audit.chain import GENESIS, REDACTION, Act, AuditRecord, Head, Payload, digest, link
from nm_lsp.audit.verify import Fault
from nm_lsp.base.errors import InternalError, InvalidInput
from nm_lsp.decisions.events import Event, EventKind, redacted
from nm_lsp.decisions.model import DecisionId

TIME = "2026-01-31T12:00:00.000000Z"


def make_chain(n: int, start: Head = GENESIS, actor: str = "Ada <ada@example.org>") -> list[AuditRecord]:
    records = []
    for i in range(n):
        act = Act(actor, "cli", "index.built", f"nm-{i}", {"files": i, "list": ["a", "b"]}, {"files": i + 1})
        record = link(start, act, TIME)
        records.append(record)
        start = record.head
    return records


def faults(records: list[AuditRecord]) -> list[tuple[Fault, int]]:
    return [(finding.fault, finding.line) for finding in verify.check_copy("table", records)]


def test_hash_is_the_documented_one() -> None:
    """Written out a second time, from the module's description alone."""

    def sha(data: str) -> str:
        return hashlib.sha256(data.encode("ascii")).hexdigest()

    act = Act("Zoë", "lsp", "export", "x", None, {"b": [1, "é"], "a": None})
    before = sha("=null")
    items = sha("[" + sha("=1") + "," + sha('="\\u00e9"') + ",")
    after = sha('{"a":' + sha("=null") + ',"b":' + items + ",")
    fields = f'[1,"{TIME}","Zo\\u00eb","lsp","export","x","{before}","{after}"]'
    assert link(GENESIS, act, TIME).hash == sha("0" * 64 + "\n" + fields)


def test_a_sound_chain_has_no_findings() -> None:
    records = make_chain(20)
    verdict = verify.verify(records, list(records), [GENESIS, records[3].head, records[-1].head])
    assert verdict.sound
    assert verdict.n_records == 20
    assert verdict.head == records[-1].head
    assert verify.verify([], []).head == GENESIS


ALTERATIONS = {
    "actor": lambda r: replace(r, act=replace(r.act, actor="Eve")),
    "face": lambda r: replace(r, act=replace(r.act, face="hook")),
    "action": lambda r: replace(r, act=replace(r.act, action="index.dropped")),
    "subject": lambda r: replace(r, act=replace(r.act, subject="nm-other")),
    "time": lambda r: replace(r, time="2026-02-01T12:00:00.000000Z"),
    "before": lambda r: replace(r, act=replace(r.act, before={"files": 3, "list": ["a", "c"]})),
    "before gone": lambda r: replace(r, act=replace(r.act, before=None)),
    "after": lambda r: replace(r, act=replace(r.act, after={"files": "5"})),
}


@pytest.mark.parametrize("how", ALTERATIONS)
def test_an_altered_record_is_named_by_its_line(how: str) -> None:
    records = make_chain(9)
    records[4] = ALTERATIONS[how](records[4])
    assert faults(records) == [(Fault.ALTERED, 5)]


def test_an_altered_record_with_a_new_hash_breaks_the_link_after_it() -> None:
    records = make_chain(9)
    records[4] = link(records[3].head, replace(records[4].act, actor="Eve"), TIME)
    assert faults(records) == [(Fault.FOREIGN, 6)]
    found = verify.check_agreement(records, make_chain(9))
    assert [(finding.fault, finding.line) for finding in found] == [(Fault.DIFFERENT, 5)]


def test_missing_reordered_and_foreign_records_are_named() -> None:
    records = make_chain(9)
    assert faults(records[:3] + records[4:]) == [(Fault.MISSING, 4)]
    assert faults(records[2:]) == [(Fault.MISSING, 1)]
    swapped = [*records[:3], records[4], records[3], *records[5:]]
    assert {fault for fault, _ in faults(swapped)} == {Fault.REORDERED}
    assert faults(swapped)[0] == (Fault.REORDERED, 4)
    assert faults([*records, records[8]]) == [(Fault.FOREIGN, 10)]
    other = make_chain(12, actor="Eve")
    assert faults([*records, *other[9:]]) == [(Fault.FOREIGN, 10)]


def test_a_cut_tail_is_seen_from_the_other_copy_and_of_both_from_an_anchor() -> None:
    records = make_chain(9)
    cut_text = verify.verify(records, records[:6])
    assert [(f.fault, f.copy, f.line) for f in cut_text.findings] == [(Fault.CUT, "text", 7)]
    cut_table = verify.verify(records[:6], records)
    assert [(f.fault, f.copy, f.line) for f in cut_table.findings] == [(Fault.CUT, "table", 7)]
    cut_both = verify.verify(records[:6], records[:6], [records[8].head])
    assert [(f.fault, f.line) for f in cut_both.findings] == [(Fault.ANCHOR, 9)]


def test_known_limit_whoever_rewrites_both_copies_and_every_anchor_is_not_seen() -> None:
    forged = make_chain(9, actor="Eve")
    assert not verify.verify(forged, forged, [make_chain(9)[5].head]).sound
    assert verify.verify(forged, forged, [forged[5].head]).sound


def test_an_unreadable_line_is_one_finding() -> None:
    records = make_chain(5)
    lines = [text.parse_line(text.format_line(record)) for record in records]
    lines[2] = text.parse_line(b'{"sequence": 3')
    found = verify.check_copy("text", lines)
    assert [(finding.fault, finding.line) for finding in found] == [(Fault.UNREADABLE, 3)]


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, text.format_line(make_chain(1)[0]).replace(b"1,", b'"1",', 1)],
)
def test_what_is_no_record_is_unreadable(line: bytes) -> None:
    assert isinstance(text.parse_line(line), text.Unreadable)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=5), st.text())
@settings(max_examples=150, deadline=None)
def test_a_record_survives_its_line_with_its_hash(payload: dict[str, object], actor: str) -> None:
    record = link(GENESIS, Act(actor, "lsp", "import", "", None, payload), TIME)  # type: ignore[arg-type]
    line = text.format_line(record)
    assert line.count(b"\n") == 1
    assert line.isascii()
    again = text.parse_line(line)
    assert isinstance(again, AuditRecord)
    assert chain.hash_of(again) == record.hash == again.hash
    # Through other JSON programs, too, as long as they keep numbers as they are.
    assert digest(json.loads(json.dumps(payload, indent=3))) == digest(payload)


def test_different_payloads_have_different_digests() -> None:
    payloads: list[object] = [
        None,
        {},
        [],
        "",
        0,
        False,
        0.0,
        "0",
        [[]],
        [{}],
        {"a": None},
        {"a": "b"},
        ["a", "b"],
        '{"a":1}',
    ]
    assert len({digest(payload) for payload in payloads}) == len(payloads)


def event(**changes: object) -> Event:
    plain: dict[str, object] = {
        "id": "e1",
        "decision": DecisionId("nm-aaaaaaaa"),
        "kind": EventKind.AMENDED,
        "time": TIME,
        "actor": "Ada",
        "face": "lsp",
        "before": {"rationale": "the key is s3cret", "tags": ["s3cret", "b"], "title": "Keys"},
        "after": {"rationale": "the key is elsewhere", "tags": ["b"], "title": "Keys in the vault"},
    }
    return Event(**{**plain, **changes})  # type: ignore[arg-type]


def test_an_event_comes_back_from_its_record() -> None:
    record = link(GENESIS, acts.act_of(event()), TIME)
    assert acts.event_of(record) == event()
    assert record.act.action == "decision.amended"
    assert record.act.before == event().before
    assert acts.event_of(make_chain(1)[0]) is None


def with_payloads(record: AuditRecord, before: Payload | None, after: Payload | None) -> AuditRecord:
    """The same link with other payloads, its hash as it was, as redaction leaves it."""
    return replace(record, act=replace(record.act, before=before, after=after))


def test_a_redacted_text_is_gone_and_the_rest_still_verifies() -> None:
    first = link(GENESIS, acts.act_of(event()), TIME)
    act = acts.redacted_act(event(), redacted(redacted(event(), "rationale"), "tags"))
    marked = with_payloads(first, act.before, act.after)
    leaves = chain.redacted_leaves(marked)
    account = link(first.head, Act("Ada", "cli", REDACTION, "nm-aaaaaaaa", None, {"leaves": list(leaves)}), TIME)
    records = [marked, account]
    assert b"s3cret" not in b"".join(text.format_line(record) for record in records)
    assert b"elsewhere" not in text.format_line(marked)
    verdict = verify.verify(records, records)
    assert verdict.sound
    assert verdict.redacted == (1,)
    assert acts.event_of(marked) == redacted(redacted(event(), "rationale"), "tags")
    # The rest of the payload is still pinned, and removal alone is no redaction.
    assert marked.act.before is not None
    other = with_payloads(marked, {**marked.act.before, "title": "Doors"}, marked.act.after)
    assert faults([other, account]) == [(Fault.ALTERED, 1)]
    assert faults([marked, link(first.head, make_chain(1)[0].act, TIME)]) == [(Fault.TEXT_REMOVED, 1)]


def test_a_second_redaction_keeps_the_first() -> None:
    once = chain.redact_as({"a": "x", "b": "y"}, {"a": "[redacted]", "b": "y"})
    twice = chain.redact_as(once, {"a": "[redacted]", "b": "[redacted]"})
    assert digest(twice) == digest({"a": "x", "b": "y"})
    assert chain.reveal(twice) == {"a": "[redacted]", "b": "[redacted]"}


def test_redaction_takes_texts_out_and_does_nothing_else() -> None:
    with pytest.raises(InternalError):
        chain.redact_as({"a": "x"}, {"a": "another text"})
    with pytest.raises(InternalError):
        chain.redact_as({"a": "x"}, {"a": "x", "b": "new"})


def test_anchor_and_archive_names_read_back() -> None:
    head = make_chain(12)[-1].head
    assert text.parse_anchor(text.format_anchor(head) + "\n") == head
    with pytest.raises(InvalidInput):
        text.parse_anchor("nm-lsp audit 12 zz")
    assert text.archive_range(text.archive_name(1, 250)) == (1, 250)
    assert text.archive_range("audit.jsonl") is None
