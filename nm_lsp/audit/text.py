"""The chain as text: one record a line, for `audit.jsonl` and its archives; the anchor of a head.

A line is a JSON object in ASCII with the keys sequence, time, actor, face, action, subject, before, after, previous,
hash in this order, without blanks, ended by a line feed. `parse_line` of `format_line` is the record itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from nm_lsp.audit.chain import Act, AuditRecord, Head
from nm_lsp.base.errors import InvalidInput

_KEYS: Final = ("sequence", "time", "actor", "face", "action", "subject", "before", "after", "previous", "hash")
_HASH: Final = re.compile(r"[0-9a-f]{64}\Z")
_ANCHOR: Final = re.compile(r"nm-lsp audit (\d{1,15}) ([0-9a-f]{64})\Z")
_ARCHIVE: Final = re.compile(r"audit\.(\d+)-(\d+)\.jsonl\Z")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no record, with the reason in words."""

    why: str


def format_line(record: AuditRecord) -> bytes:
    """The line of `record`, its line feed included."""
    act = record.act
    values = (
        record.sequence,
        record.time,
        act.actor,
        act.face,
        act.action,
        act.subject,
        act.before,
        act.after,
        record.previous,
        record.hash,
    )
    table = dict(zip(_KEYS, values, strict=True))
    return json.dumps(table, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def parse_line(line: bytes) -> AuditRecord | Unreadable:
    """The record on `line`, with or without its line feed; whether it belongs to a chain is `verify`'s to say."""
    try:
        table = json.loads(line)
    except (ValueError, RecursionError):
        return Unreadable("it is not JSON")
    if not isinstance(table, dict) or set(table) != set(_KEYS):
        return Unreadable("it does not have the fields of an audit record")
    texts = [table[key] for key in ("time", "actor", "face", "action", "subject", "previous", "hash")]
    payloads = [table["before"], table["after"]]
    if (
        type(table["sequence"]) is not int
        or not all(isinstance(text, str) for text in texts)
        or not all(payload is None or isinstance(payload, dict) for payload in payloads)
        or not (_HASH.match(table["previous"]) and _HASH.match(table["hash"]))
    ):
        return Unreadable("a field has a value of the wrong kind")
    act = Act(table["actor"], table["face"], table["action"], table["subject"], table["before"], table["after"])
    return AuditRecord(table["sequence"], table["time"], act, table["previous"], table["hash"])


def format_anchor(head: Head) -> str:
    """The line that `audit anchor` prints or commits: it pins everything up to `head`."""
    return f"nm-lsp audit {head.sequence} {head.hash}"


def parse_anchor(text: str) -> Head:
    """The head that an anchor pins. Raises `InvalidInput`."""
    match = _ANCHOR.match(text.strip())
    if match is None:
        raise InvalidInput("anchor", "is not a line like `nm-lsp audit 12 0f3a…` (64 digits).")
    return Head(int(match[1]), match[2])


def archive_name(first: int, last: int) -> str:
    """The name of the archive that holds the lines of records `first` to `last`."""
    return f"audit.{first:08d}-{last:08d}.jsonl"


def archive_range(name: str) -> tuple[int, int] | None:
    """The first and last record of an archive by its name; None for a name that is no archive's."""
    match = _ARCHIVE.match(name)
    return (int(match[1]), int(match[2])) if match else None
