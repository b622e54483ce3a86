"""What is wrong with a chain: in the table, in its text copy, between the two, and against anchors.

Guarantees: any record that was altered, moved, taken out, or put in is named with its line; a tail cut from one copy is
seen from the other, and one cut from both from an anchor. A value taken out by an accounted redaction is no finding.

What it cannot see: a table, text and anchors that were all rewritten alike, with every hash made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from nm_lsp.audit.chain import GENESIS, AuditRecord, Head, accounted_leaves, hash_of, redacted_leaves
from nm_lsp.audit.text import Unreadable

_ALTERED = "was altered: its hash does not fit its content"


class Fault(Enum):
    ALTERED = "altered"
    MISSING = "missing"
    REORDERED = "reordered"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"
    TEXT_REMOVED = "text removed without a redaction"
    CUT = "cut"
    DIFFERENT = "different"
    ANCHOR = "anchor"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. `copy` is "table" or "text"; `line` counts from 1 there, the archives' lines included."""

    fault: Fault
    copy: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """`redacted` are the sequence numbers of records of which a value was taken out, as accounted for."""

    findings: tuple[Finding, ...]
    n_records: int
    head: Head
    redacted: tuple[int, ...]

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(
    table: Sequence[AuditRecord | Unreadable], text: Sequence[AuditRecord | Unreadable], anchors: Iterable[Head] = ()
) -> Verdict:
    """Check both copies of the chain, their agreement, and that the chain passes through every anchor."""
    findings = [*check_copy("table", table), *check_copy("text", text), *check_agreement(table, text)]
    findings += check_anchors(table, anchors)
    records = [row for row in table if isinstance(row, AuditRecord)]
    head = records[-1].head if records else GENESIS
    redacted = tuple(record.sequence for record in records if redacted_leaves(record))
    return Verdict(tuple(findings), len(table), head, redacted)


def check_copy(copy: str, lines: Sequence[AuditRecord | Unreadable]) -> list[Finding]:
    """The faults of one copy by itself, in the order of its lines."""
    findings: list[Finding] = []
    hashes = {line.hash for line in lines if isinstance(line, AuditRecord)}
    accounted = frozenset().union(*(accounted_leaves(line) for line in lines if isinstance(line, AuditRecord)))
    seen: set[int] = set()
    head = GENESIS
    n_unreadable = 0
    for number, record in enumerate(lines, 1):
        if isinstance(record, Unreadable):
            findings.append(Finding(Fault.UNREADABLE, copy, number, f"line {number} is no record: {record.why}"))
            n_unreadable += 1
            continue
        # An unreadable line stands for a record that was there, or for none.
        if not head.sequence + 1 < record.sequence <= head.sequence + 1 + n_unreadable:
            fault = _fault(record, head, seen, hashes)
        else:
            fault = (Fault.ALTERED, _ALTERED) if hash_of(record) != record.hash else None
        n_unreadable = 0
        if fault is not None:
            kind, words = fault
            findings.append(Finding(kind, copy, number, f"record {record.sequence} on line {number} {words}"))
        unaccounted = [leaf for leaf in redacted_leaves(record) if leaf not in accounted]
        if unaccounted:
            words = f"lacks a text whose digest is {unaccounted[0][:12]}…, and no redaction accounts for it"
            findings.append(
                Finding(Fault.TEXT_REMOVED, copy, number, f"record {record.sequence} on line {number} {words}")
            )
        seen.add(record.sequence)
        head = record.head
    return findings


def _fault(record: AuditRecord, head: Head, seen: set[int], hashes: set[str]) -> tuple[Fault, str] | None:
    """What is wrong with `record` after `head`, if it should follow at once."""
    if hash_of(record) != record.hash:
        return Fault.ALTERED, _ALTERED
    if record.previous == head.hash and record.sequence == head.sequence + 1:
        return None
    if record.sequence in seen:
        return Fault.FOREIGN, "is a second one of that number"
    if record.sequence <= head.sequence or (record.previous in hashes and record.sequence != head.sequence + 1):
        return Fault.REORDERED, f"stands after record {head.sequence}: the order was changed"
    if record.sequence > head.sequence + 1:
        return Fault.MISSING, f"follows record {head.sequence}: what lay between is missing"
    return Fault.FOREIGN, f"does not belong to this chain: it does not follow the hash of record {head.sequence}"


def check_agreement(
    table: Sequence[AuditRecord | Unreadable], text: Sequence[AuditRecord | Unreadable]
) -> list[Finding]:
    """Where table and text hold different records, and a tail that only one of them has."""
    lines = {record.sequence: (n, record) for n, record in enumerate(text, 1) if isinstance(record, AuditRecord)}
    rows = {record.sequence: (n, record) for n, record in enumerate(table, 1) if isinstance(record, AuditRecord)}
    findings = []
    for sequence in sorted(lines.keys() & rows.keys()):
        n, record = lines[sequence]
        if record.hash != rows[sequence][1].hash:
            message = f"record {sequence} on line {n} of the text is not the one in the table"
            findings.append(Finding(Fault.DIFFERENT, "text", n, message))
    last_line, last_row = max(lines, default=0), max(rows, default=0)
    if last_line < last_row:
        message = f"the text copy ends at record {last_line}, the table at {last_row}: the text was cut"
        findings.append(Finding(Fault.CUT, "text", len(text) + 1, message))
    elif last_row < last_line:
        message = f"the table ends at record {last_row}, the text copy at {last_line}: the table was cut"
        findings.append(Finding(Fault.CUT, "table", len(table) + 1, message))
    return findings


def check_anchors(table: Sequence[AuditRecord | Unreadable], anchors: Iterable[Head]) -> list[Finding]:
    """The anchors that the table does not pass through."""
    hashes = {record.sequence: record.hash for record in table if isinstance(record, AuditRecord)}
    findings = []
    for anchor in anchors:
        found = hashes.get(anchor.sequence)
        if found == anchor.hash or anchor == GENESIS:
            continue
        how = "is gone: the chain was cut" if found is None else "has another hash: the chain was rewritten"
        findings.append(Finding(Fault.ANCHOR, "table", anchor.sequence, f"record {anchor.sequence}, anchored, {how}"))
    return findings
