"""The chain of audit records: who did what to what, when, and what it was before.

Canonical serialisation. A record's hash is

    SHA-256( previous hash ‖ "\\n" ‖ JSON array )
    JSON array = [sequence, time, actor, face, action, subject, digest(before), digest(after)]

as 64 lower-case hexadecimal digits; the previous hash stands in the same form, 64 zeros before the first record. JSON
is ASCII (other characters as \\uXXXX) with no blanks and object keys in code-point order. A payload, `before` or
`after`, stands as its digest, which is built like a tree, so that one text in it can be taken out and the rest still be
verified:

    digest(object) = SHA-256( "{" ‖ for each key in order: JSON key ‖ ":" ‖ digest(value) ‖ "," )
    digest(list)   = SHA-256( "[" ‖ for each value: digest(value) ‖ "," )
    digest(other)  = SHA-256( "=" ‖ JSON value )

with digests in hexadecimal. A value that was redacted is replaced by {"~redacted": its digest, "as": kind}, whose
digest is the one it names; kind says what stands in its place ("text", "list", "gone").

Guarantees: the functions are pure; equal records have equal hashes on every machine. Limits: whoever holds the digest
of a redacted value can confirm a guess of the whole value; and whoever can rewrite every copy of the chain and every
anchor of it can write another history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from nm_lsp.base.errors import InternalError
from nm_lsp.decisions.model import Plain

Payload = Mapping[str, Plain]

FIRST_PREVIOUS: Final = "0" * 64
REDACTION: Final = "audit.text-redacted"
"""The action of the record that accounts for redacted values; its `after` has `leaves`, their digests."""

_MARK: Final = "~redacted"
_STANDS_IN: Final[dict[str, Plain]] = {"text": "[redacted]", "list": ["[redacted]"], "gone": None}


@dataclass(frozen=True, slots=True)
class Act:
    """What is to be recorded. `face` is lsp, cli, hook or mcp; `subject` the id of what was acted on, or empty."""

    actor: str
    face: str
    action: str
    subject: str = ""
    before: Payload | None = None
    after: Payload | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain, which stands for all of it: the last sequence number and hash."""

    sequence: int
    hash: str


GENESIS: Final = Head(0, FIRST_PREVIOUS)


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One link. `time` is UTC with microseconds, `2026-01-31T12:00:00.000000Z`."""

    sequence: int
    time: str
    act: Act
    previous: str
    hash: str

    @property
    def head(self) -> Head:
        return Head(self.sequence, self.hash)


def link(head: Head, act: Act, time: str) -> AuditRecord:
    """The record of `act` that follows `head`."""
    sequence = head.sequence + 1
    return AuditRecord(sequence, time, act, head.hash, _hash(sequence, time, act, head.hash))


def hash_of(record: AuditRecord) -> str:
    """The hash its content demands; differs from `record.hash` if something was altered."""
    return _hash(record.sequence, record.time, record.act, record.previous)


def _hash(sequence: int, time: str, act: Act, previous: str) -> str:
    fields = [sequence, time, act.actor, act.face, act.action, act.subject, digest(act.before), digest(act.after)]
    return hashlib.sha256(f"{previous}\n{_json(fields)}".encode("ascii")).hexdigest()


def digest(value: object) -> str:
    """The digest of a payload or a part of one, as the module's description has it."""
    if isinstance(value, Mapping):
        if _is_mark(value):
            return str(value[_MARK])
        parts = "".join(f"{_json(key)}:{digest(value[key])}," for key in sorted(value))
        return _sha256("{" + parts)
    if isinstance(value, list | tuple):
        return _sha256("[" + "".join(f"{digest(item)}," for item in value))
    return _sha256("=" + _json(value))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# One encoder for all: `json.dumps` makes a new one for every value, which doubles the time to verify a chain.
_json = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True).encode


def redact_as(payload: Payload, wanted: Payload) -> Payload:
    """`payload` with a mark wherever `wanted`, the same payload without some texts, differs from it.

    `reveal` of the result is `wanted`, its digest that of `payload`. Raises `InternalError` where `wanted` differs
    in other ways than by texts taken out.
    """
    marked = cast("Payload", _redact(payload, wanted))
    if reveal(marked) != dict(wanted):
        raise InternalError("a redaction may only take texts out")
    return marked


def _redact(value: Plain | Payload, wanted: Plain | Payload) -> Plain:
    if _is_mark(value):
        return cast("Plain", value)
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return {key: _redact(old, wanted[key]) if key in wanted else _mark(old, "gone") for key, old in value.items()}
    if isinstance(value, list) and isinstance(wanted, list) and len(value) == len(wanted):
        return [_redact(old, new) for old, new in zip(value, wanted, strict=True)]
    if value == wanted:
        return cast("Plain", value)
    return _mark(value, "list" if isinstance(wanted, list) else "text")


def _mark(value: Plain | Payload, kind: str) -> Plain:
    if _is_mark(value):
        return cast("Plain", value)
    return {_MARK: digest(value), "as": kind}


def reveal(payload: Payload) -> dict[str, Plain]:
    """The payload as it reads now: what stands in for redacted values in place of their marks."""
    return cast("dict[str, Plain]", _reveal(payload))


def _reveal(value: Plain | Payload) -> Plain:
    if _is_mark(value):
        return _STANDS_IN[str(cast("Payload", value)["as"])]
    if isinstance(value, Mapping):
        return {key: _reveal(item) for key, item in value.items() if not (_is_mark(item) and _kind(item) == "gone")}
    if isinstance(value, list):
        return [_reveal(item) for item in value]
    return cast("Plain", value)


def _is_mark(value: object) -> bool:
    return isinstance(value, Mapping) and value.keys() == {_MARK, "as"} and _kind(value) in _STANDS_IN


def _kind(mark: object) -> str:
    return str(cast("Payload", mark)["as"])


def redacted_leaves(record: AuditRecord) -> tuple[str, ...]:
    """The digests of the values that were taken out of the record's payloads, in order."""
    return leaves_of(record.act)


def leaves_of(act: Act) -> tuple[str, ...]:
    """As `redacted_leaves`, of an act that is not linked yet."""
    return (*_marks(act.before), *_marks(act.after))


def _marks(value: object) -> Iterator[str]:
    if _is_mark(value):
        yield str(cast("Payload", value)[_MARK])
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from _marks(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _marks(item)


def accounted_leaves(record: AuditRecord) -> frozenset[str]:
    """The digests whose redaction this record accounts for; empty for any other record."""
    leaves = (record.act.after or {}).get("leaves") if record.act.action == REDACTION else None
    return frozenset(str(leaf) for leaf in leaves) if isinstance(leaves, list) else frozenset()
