"""Events, their canonical form and the fold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.decisions.events import Event, EventKind, canonical, checked_event, parse, redacted
from nm_lsp.decisions.fold import (
    FindingKey,
    Standing,
    dependency_problems,
    fold,
    fold_all,
    live_end,
    record_from_plain,
    record_to_plain,
    refuse_dependency_cycle,
    refuse_superseding_cycle,
)
from nm_lsp.decisions.model import (
    Anchor,
    AnchorKind,
    Confirmation,
    DecisionId,
    SeenFile,
    Sighting,
    is_id,
    new_id,
    pack_ancestors,
    pack_text,
    parse_anchor,
    resolve_id,
    unpack_ancestors,
    unpack_text,
)
from nm_lsp.decisions.validation import checked_fields, escaped

A = "a" * 40
B = "b" * 40
ONE = DecisionId("nm-aaaaaaaa")
TWO = DecisionId("nm-aaaabbbb")


def confirmation(commit: str | None = A, path: str = "gov.py") -> Confirmation:
    anchor = Anchor(AnchorKind.SYMBOL, path, "f")
    return Confirmation(
        commit, (Sighting(anchor, (SeenFile(path, A, None),), pack_text(b"def f(): ...")),), pack_ancestors([A, B])
    )


def event(kind: EventKind, at: int, decision: DecisionId | None = ONE, **more: Any) -> Event:
    return checked_event(
        Event(f"e{at}", decision, kind, f"2026-01-01T00:00:{at:02}.000000Z", "Ada <ada@example.org>", "cli", **more)
    )


def recorded(at: int = 0, decision: DecisionId = ONE, **fields: Any) -> Event:
    values = {
        "title": "Tokens expire",
        "rationale": "Because.",
        "anchors": [parse_anchor("gov.py::f").to_plain()],
        "confidence": 0.5,
        "tags": ["auth"],
    }
    after = checked_fields(values | fields) | {"confirmation": confirmation().to_plain()}
    return event(EventKind.RECORDED, at, decision, after=after)


def test_every_event_round_trips_through_its_canonical_form() -> None:
    odd = recorded(anchors=[Anchor(AnchorKind.FILE, "caf\udce9.py").to_plain()])
    events = [
        odd,
        event(EventKind.AMENDED, 1, before={"title": "Tokens expire"}, after={"title": "Tokens expire soon"}),
        event(EventKind.RESTORED, 2, after={"confirmation": confirmation(None).to_plain()}, commit=A, branch="main"),
        event(EventKind.ACKNOWLEDGED, 3, after={"finding": {"commit": A, "path": "gov.py"}}),
        event(EventKind.INVALIDATED, 4, reason="wrong", after={"supersededBy": TWO}),
        event(EventKind.REWRITTEN, 5, None, after={"pairs": [[A, B]]}),
    ]
    for one in events:
        text = canonical(one)
        assert text.isascii()
        assert parse(text) == one
        assert canonical(parse(text)) == text


def test_a_newer_event_and_a_foreign_field_are_refused() -> None:
    plain = json.loads(canonical(recorded()))
    with pytest.raises(InvalidInput, match="schema version 2"):
        Event.from_plain(plain | {"v": 2})
    with pytest.raises(InvalidInput, match="no such field"):
        Event.from_plain(plain | {"extra": 1})
    with pytest.raises(InvalidInput, match="reason"):
        event(EventKind.INVALIDATED, 1)
    with pytest.raises(InvalidInput, match="does not belong"):
        event(EventKind.RESTORED, 1, after={"confirmation": confirmation().to_plain(), "title": "x"})


def test_the_fold_counts_events_and_keeps_every_confirmation() -> None:
    events = [
        recorded(),
        event(EventKind.RESTORED, 1, after={"confirmation": confirmation(B).to_plain()}),
        event(EventKind.AMENDED, 2, before={"rationale": "Because."}, after={"rationale": "Better."}),
        event(EventKind.ACKNOWLEDGED, 3, after={"finding": {"commit": B, "path": "gov.py"}}),
    ]
    record = fold(events)
    assert (record.revision, record.standing, len(record.confirmations)) == (4, Standing.ACTIVE, 2)
    assert record.decision.rationale == "Better."
    assert record.acknowledged == (FindingKey(B, "gov.py"),)
    assert fold(events[:2]).decision.rationale == "Because."
    assert (record.recorded_at[-9:-8], record.confirmed_at[-9:-8], record.changed_at[-9:-8]) == ("0", "1", "3")


def test_a_record_round_trips_for_the_view() -> None:
    acknowledged = event(EventKind.ACKNOWLEDGED, 1, after={"finding": {"commit": B, "path": "gov.py"}})
    for tail in ([], [event(EventKind.INVALIDATED, 2, reason="wrong", after={"supersededBy": TWO})]):
        record = fold([recorded(), acknowledged, *tail])
        assert record_from_plain(json.loads(json.dumps(record_to_plain(record)))) == record


def test_amending_the_anchors_starts_the_confirmations_anew() -> None:
    anchors = [parse_anchor("other.py").to_plain()]
    amendment = event(
        EventKind.AMENDED, 2, after={"anchors": anchors, "confirmation": confirmation(B, "other.py").to_plain()}
    )
    restored = event(EventKind.RESTORED, 1, after={"confirmation": confirmation(B).to_plain()})
    record = fold([recorded(), restored, amendment])
    assert [c.commit for c in record.confirmations] == [B]
    assert record.decision.anchors == (Anchor(AnchorKind.FILE, "other.py"),)


def test_invalidated_holds_until_it_is_reinstated() -> None:
    invalid = [recorded(), event(EventKind.INVALIDATED, 1, reason="wrong", commit=B, branch="topic")]
    record = fold(invalid)
    assert record.standing is Standing.INVALIDATED
    assert record.invalidation is not None
    assert (record.invalidation.reason, record.invalidation.branch) == ("wrong", "topic")
    restore = event(EventKind.RESTORED, 2, after={"confirmation": confirmation().to_plain()})
    with pytest.raises(Refused, match=r"invalidated.*Reinstate"):
        fold([*invalid, restore])
    with pytest.raises(Refused, match="already"):
        fold([*invalid, event(EventKind.INVALIDATED, 2, reason="again")])
    back = event(EventKind.REINSTATED, 2, reason="right after all", after={"confirmation": confirmation().to_plain()})
    assert fold([*invalid, back]).standing is Standing.ACTIVE
    replaced = fold([*invalid, event(EventKind.SUPERSEDED, 2, after={"supersededBy": TWO})])
    assert (replaced.superseded_by, replaced.invalidation) == (TWO, record.invalidation)


def test_what_was_written_in_another_clone_can_always_be_taken_in() -> None:
    seen = {"confirmation": confirmation(B).to_plain()}
    anchors = [parse_anchor("other.py").to_plain()]
    there = [
        event(EventKind.RESTORED, 2, after=seen),
        event(EventKind.INVALIDATED, 3, reason="wrong there too"),
        event(EventKind.AMENDED, 4, after={"anchors": anchors, "confirmation": confirmation(B, "other.py").to_plain()}),
    ]
    invalid = [recorded(), event(EventKind.INVALIDATED, 1, reason="wrong", commit=B, branch="topic")]
    record = fold([*invalid, *there], merged=True)
    assert record.standing is Standing.INVALIDATED
    assert record.invalidation is not None
    assert record.invalidation.reason == "wrong"
    assert (record.revision, record.decision.anchors) == (5, (Anchor(AnchorKind.FILE, "other.py"),))
    back = event(EventKind.REINSTATED, 5, reason="it holds", after=seen)
    assert fold([*invalid, *there, back, back], merged=True).standing is Standing.ACTIVE
    assert fold_all([*invalid, *there]).records[ONE] == record


def test_chains_of_replacement_end_and_cycles_are_refused() -> None:
    memory = fold_all([recorded(0), recorded(1, TWO), event(EventKind.SUPERSEDED, 2, after={"supersededBy": TWO})])
    assert live_end(memory.records, ONE) == TWO
    with pytest.raises(Refused, match="replaced by"):
        refuse_superseding_cycle(memory.records, TWO, ONE)
    memory.add(event(EventKind.SUPERSEDED, 3, TWO, after={"supersededBy": ONE}))
    assert live_end(memory.records, ONE) == TWO


def test_a_cycle_of_dependencies_is_refused_when_written_and_a_harmless_problem_when_imported() -> None:
    memory = fold_all([recorded(0), recorded(1, TWO, dependsOn=[ONE])])
    with pytest.raises(Refused, match="nm-aaaaaaaa → nm-aaaabbbb → nm-aaaaaaaa"):
        refuse_dependency_cycle(memory.records, ONE, [TWO])
    refuse_dependency_cycle(memory.records, TWO, [ONE])
    assert dependency_problems(memory.records) == {}
    memory.add(event(EventKind.AMENDED, 2, after={"dependsOn": [TWO]}))
    assert set(dependency_problems(memory.records)) == {ONE, TWO}


def test_rewrites_belong_to_no_decision() -> None:
    memory = fold_all([recorded(), event(EventKind.REWRITTEN, 1, None, after={"pairs": [[A, B]]})])
    assert memory.rewrites == [(A, B)]
    assert memory.records[ONE].revision == 1


def test_redaction_takes_a_value_out_of_every_event_that_holds_it() -> None:
    amendment = event(EventKind.AMENDED, 1, before={"rationale": "Because."}, after={"rationale": "Better."})
    masked = [redacted(one, "rationale") for one in (recorded(), amendment)]
    assert b"Because" not in b"".join(canonical(one) for one in masked)
    assert fold(masked).decision.rationale == "[redacted]"
    blank = redacted(recorded(), "seen").confirmation()
    assert blank is not None
    assert blank.seen[0].packed_text is None
    with pytest.raises(InvalidInput, match="cannot be redacted"):
        redacted(amendment, "anchors")


def test_ids_and_their_prefixes() -> None:
    assert is_id(new_id(b"12345"))
    assert resolve_id("nm-aaaaa", [ONE, TWO]) == ONE
    assert resolve_id("AAAAB", [ONE, TWO]) == TWO
    with pytest.raises(InvalidInput, match="2 decisions"):
        resolve_id("nm-aaaa", [ONE, TWO])
    with pytest.raises(NotFound):
        resolve_id("nm-b", [ONE, TWO])
    with pytest.raises(InvalidInput, match="not a decision id"):
        resolve_id("nm-../..", [ONE, TWO])


def test_packing_is_lossless() -> None:
    assert unpack_text(pack_text("ünï\r\n".encode())) == "ünï\r\n".encode()
    commits = [f"{n:040x}" for n in range(300)]
    assert unpack_ancestors(pack_ancestors(commits)) == tuple(c[:16] for c in commits[:200])
    with pytest.raises(InvalidInput):
        unpack_text("!!")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"title": " \t "}, "title: must not be empty"),
        ({"title": "x" * 1_000_000}, "title: has 1,000,000 characters"),
        ({"title": "two\nlines"}, "title: holds a line end"),
        ({"title": "nul\0"}, r"title: holds the unprintable character \\u0000"),
        ({"title": "right\u202eleft"}, r"\\u202e"),
        ({"title": "half\udce9"}, r"\\udce9"),
        ({"title": 7}, "title: must be a text"),
        ({"rationale": "bell\x07"}, r"\\u0007"),
        ({"confidence": 1.5}, "confidence: is 1.5"),
        ({"confidence": True}, "confidence: must be a number"),
        ({"confidence": float("nan")}, "confidence: must be a number"),
        ({"tags": "auth"}, "tags: must be a list"),
        ({"dependsOn": ["nm-1"]}, "not a full decision id"),
        ({"mood": "good"}, "mood: a decision has no such field"),
        ({"anchors": [{"kind": "file", "path": "../x"}]}, "not a path relative"),
        ({"anchors": [{"kind": "folder", "path": "src"}]}, "must end in a slash"),
    ],
)
def test_a_bad_field_is_refused_by_name(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        checked_fields(fields)


def test_good_fields_come_back_whole_and_in_normal_form() -> None:
    fields = checked_fields(
        {
            "title": "  `a` | b  ",
            "rationale": "one\r\n\ttwo ünï",
            "confidence": 1,
            "tags": ["x", "x", "y"],
            "type": None,
            "anchors": [{"kind": "file", "path": "a.py"}] * 2,
        }
    )
    assert fields == {
        "title": "`a` | b",
        "rationale": "one\n\ttwo ünï",
        "confidence": 1.0,
        "tags": ["x", "y"],
        "type": None,
        "anchors": [{"kind": "file", "path": "a.py"}],
    }


def test_imported_text_is_escaped_not_lost() -> None:
    assert escaped("a\u202eb\0", one_line=True) == "a\\u202eb\\u0000"
    assert escaped("a\r\n b\t", one_line=True) == "a b"
    assert checked_fields({"rationale": escaped("x\x1b[31m\ny")}) == {"rationale": "x\\u001b[31m\ny"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a.py", AnchorKind.FILE),
        ("a.py::C.m#2", AnchorKind.SYMBOL),
        ("src/auth/", AnchorKind.FOLDER),
        ("src/**/*.py", AnchorKind.GLOB),
    ],
)
def test_anchors_read_as_they_are_written(text: str, kind: AnchorKind) -> None:
    anchor = parse_anchor(text)
    assert anchor.kind is kind
    assert str(anchor) == text
    assert Anchor.from_plain(anchor.to_plain()) == anchor
