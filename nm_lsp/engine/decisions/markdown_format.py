"""A decision as Markdown: readable above, and below, in a comment that no viewer shows, all of its events.

    ---
    id: nm-abcdefgh          front matter for people and other tools, each value JSON and so YAML
    ...
    ---
    # Title
    Rationale, what it governs, alternatives, ...
    <!-- nm-lsp events 1
    {...}                    one event a line, in ASCII, in the order in which they were written
    -->

Guarantees: the text depends on the events alone, so that nothing changes where nobody changed anything; the events
that are read back equal those written. Nothing derived from a HEAD stands in it. What is above the comment is never
read back: `is_edited` says whether somebody changed it by hand.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nm_lsp.base.errors import NmError
from nm_lsp.decisions.events import Event, canonical, parse
from nm_lsp.decisions.fold import DecisionRecord, Standing, fold
from nm_lsp.decisions.model import Plain
from nm_lsp.decisions.validation import escaped

EVENTS_BEGIN: Final = "<!-- nm-lsp events 1"
EVENTS_END: Final = "-->"
_MARKER = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)")
MAX_SLUG: Final = 48


@dataclass(frozen=True, slots=True)
class Block:
    """The events of one decision as a file holds them. `problem` says why they cannot be used, if they cannot.

    `is_conflicted`: git left its conflict markers among them; the events of both sides are here.
    """

    events: tuple[Event, ...]
    problem: str | None = None
    is_conflicted: bool = False


def to_file(events: Sequence[Event]) -> str:
    """One decision as a file of its own."""
    record = fold(events, merged=True)
    return f"---\n{_front_matter(record)}---\n\n{_body(record, 1, None)}\n{_block(events)}"


def to_section(events: Sequence[Event], status: str | None) -> str:
    """One decision as a section of a text with several; `status` is what is known of it now, in words."""
    return f"{_body(fold(events, merged=True), 2, status)}\n{_block(events)}"


def file_name(record: DecisionRecord) -> str:
    """`nm-abcdefgh-title-in-words.md`, in ASCII."""
    plain = unicodedata.normalize("NFKD", record.decision.title).encode("ascii", "ignore").decode("ascii")
    slug = "-".join(re.findall(r"[a-z0-9]+", plain.lower()))[:MAX_SLUG].strip("-")
    return f"{record.id}-{slug}.md" if slug else f"{record.id}.md"


def is_export(text: str) -> bool:
    """Whether `text` holds decisions in this form."""
    return EVENTS_BEGIN in text


def blocks(text: str) -> list[Block]:
    """The decisions in `text`. One that cannot be read says why and leaves the others alone."""
    found: list[Block] = []
    open_block: list[str] | None = None
    for line in text.splitlines():
        if line.rstrip() == EVENTS_BEGIN:
            if open_block is not None:
                found.append(_UNENDED)
            open_block = []
        elif open_block is not None and line.rstrip() == EVENTS_END:
            found.append(_read(open_block))
            open_block = None
        elif open_block is not None:
            open_block.append(line)
    return [*found, _UNENDED] if open_block is not None else found


def is_edited(text: str, events: Sequence[Event]) -> bool:
    """Whether the readable part of a decision's file is another than its events make."""
    return "\n".join(text.splitlines()).strip() != to_file(events).strip()


_UNENDED: Final = Block((), "holds a list of events that does not end")


def _read(lines: Iterable[str]) -> Block:
    events: dict[str, Event] = {}
    is_conflicted = False
    for number, line in enumerate(lines, 1):
        if _MARKER.match(line):
            is_conflicted = True
            continue
        if not line.strip():
            continue
        try:
            event = parse(line)
        except (NmError, RecursionError) as error:
            reason = error.message if isinstance(error, NmError) else "is nested too deeply"
            return Block((), f"event {number}: {escaped(reason, one_line=True)[:200]}")
        if event.id in events and events[event.id] != event:
            return Block((), f"event {number}: the id {event.id[:40]!r} stands for two different events")
        events[event.id] = event
    if not events:
        return Block((), "holds no event")
    if len({event.decision for event in events.values()}) > 1:
        return Block((), "mixes the events of several decisions")
    return Block(_recorded_first(events.values()), None, is_conflicted)


def _recorded_first(events: Iterable[Event]) -> tuple[Event, ...]:
    """A merge of two files may put the lines of one side before the first of the other."""
    return tuple(sorted(events, key=lambda event: event.kind.value != "recorded"))


def _block(events: Sequence[Event]) -> str:
    lines = [canonical(event).decode("ascii").replace("<", "\\u003c").replace(">", "\\u003e") for event in events]
    return "\n".join([EVENTS_BEGIN, *lines, EVENTS_END]) + "\n"


def _front_matter(record: DecisionRecord) -> str:
    decision = record.decision
    fields: dict[str, Plain] = {
        "id": record.id,
        "title": decision.title,
        "standing": record.standing.value,
        "type": decision.type,
        "confidence": decision.confidence,
        "author": decision.author,
        "tags": list(decision.tags),
        "governs": [str(anchor) for anchor in decision.anchors],
        "dependsOn": list(decision.depends_on),
        "supersededBy": record.superseded_by,
        "recorded": record.recorded_at,
        "changed": record.changed_at,
    }
    rows = [f"{name}: {json.dumps(value)}\n" for name, value in fields.items() if value is not None and value != []]
    return "".join(rows)


def _body(record: DecisionRecord, level: int, status: str | None) -> str:
    """The readable part. Texts of people cannot end the events' comment or begin another."""
    decision = record.decision
    head, below = "#" * level, "#" * (level + 1)
    parts = [f"{head} {_inline(decision.title)}", ""]
    said = [f"`{record.id}`", *([status] if status is not None else [])]
    if record.standing is Standing.INVALIDATED and record.invalidation is not None:
        by = f", replaced by `{record.superseded_by}`" if record.superseded_by else ""
        said.append(f"**invalidated**{by}: {_inline(record.invalidation.reason)}")
    parts += [" · ".join(said), "", _prose(decision.rationale), "", f"{below} Governs", ""]
    parts += [f"- `{_inline(str(anchor)).replace('`', '')}`" for anchor in decision.anchors]
    lists = (
        ("Alternatives", decision.alternatives),
        ("Depends on", tuple(f"`{identity}`" for identity in decision.depends_on)),
        ("Evidence", decision.evidence),
    )
    for title, items in lists:
        if items:
            parts += ["", f"{below} {title}", "", *(f"- {_indented(item)}" for item in items)]
    said = [f"by {_inline(decision.author)}"] if decision.author else []
    said += [f"recorded {record.recorded_at[:10]} by {_inline(record.recorded_by)}"]
    said += [f"confidence {decision.confidence:g}"] if decision.confidence is not None else []
    said += [", ".join(_inline(tag) for tag in decision.tags)] if decision.tags else []
    return "\n".join([*parts, "", f"*{' · '.join(said)}*", ""])


def _inline(text: str) -> str:
    return _prose(escaped(text, one_line=True)).replace("<", "&lt;")


def _prose(text: str) -> str:
    return escaped(text).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def _indented(text: str) -> str:
    return _prose(text).replace("\n", "\n  ")
