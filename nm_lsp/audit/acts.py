"""A decision's event as an act of the audit, and back.

Guarantees: `event_of(link(head, act_of(event), event.time))` equals the event, so that the text copy of the chain can
bring back a store that was lost; with redacted values, the event as the redaction left it.
"""

from __future__ import annotations

from typing import Final

from nm_lsp.audit.chain import Act, AuditRecord, Payload, redact_as, reveal
from nm_lsp.decisions.events import Event

PREFIX: Final = "decision."


def act_of(event: Event) -> Act:
    """`before` holds the values before; `after` the whole event but for them."""
    before, after = _payloads(event)
    return Act(event.actor, event.face, PREFIX + event.kind.value, event.decision or "", before, after)


def redacted_act(event: Event, redacted: Event) -> Act:
    """The act of `event` with marks where `redacted`, the same event, has texts taken out."""
    act = act_of(event)
    before, after = _payloads(redacted)
    assert act.before is not None
    assert act.after is not None
    return Act(act.actor, act.face, act.action, act.subject, redact_as(act.before, before), redact_as(act.after, after))


def event_of(record: AuditRecord) -> Event | None:
    """The event that the record is of; None for an act of another kind. Raises `InvalidInput` for a broken one."""
    act = record.act
    if not act.action.startswith(PREFIX) or act.after is None or act.before is None:
        return None
    return Event.from_plain({**reveal(act.after), "before": reveal(act.before)})


def _payloads(event: Event) -> tuple[Payload, Payload]:
    plain = event.to_plain()
    before = plain.pop("before")
    assert isinstance(before, dict)
    return before, plain
