"""Decisions as lines for people: the status in words and colour, the reason, the anchors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nm_lsp.base.wording import counted
from nm_lsp.cli.output import Output, clean
from nm_lsp.engine.decision_requests import AnchorRow, AnchorState, DecisionDetail, DecisionRow, HistoryRow, Similar

STATUS_COLOURS = {"active": "green", "stale": "yellow", "invalidated": "red", "unknown": "cyan"}
_WIDTH = max(map(len, STATUS_COLOURS))
_INDENT = " " * len("nm-abcdefgh  ")
_MAX_ANCHORS = 6


def status_word(output: Output, status: str) -> str:
    return output.style(status.upper().ljust(_WIDTH), STATUS_COLOURS.get(status, "dim"))


def print_rows(output: Output, rows: Iterable[DecisionRow], notes: Sequence[str] = ()) -> None:
    """Each decision: id, status and title on one line, below it reason and anchors. `notes` follow the titles."""
    for at, row in enumerate(rows):
        note = output.style(f"  {clean(notes[at])}", "dim") if at < len(notes) else ""
        output.text(f"{row.id}  {status_word(output, row.status)}  {output.style(clean(row.title), 'bold')}{note}")
        if row.status_reason:
            seen = " (acknowledged)" if row.acknowledged else ""
            output.text(f"{_INDENT}{clean(row.status_reason)}{seen}")
        output.text(output.style(f"{_INDENT}{_anchors(row.anchors)}", "dim"))


def tell_next_steps(output: Output, rows: Iterable[DecisionRow]) -> None:
    """Where some are stale: the commands that show why, and that end it."""
    stale = [row.id for row in rows if row.status == "stale"]
    if stale:
        identity = stale[0] if len(stale) == 1 else "ID"
        output.note(
            f"`nm-lsp decisions diff {identity}` shows what changed; `restore {identity}` says that it still holds, "
            f"`invalidate {identity}` that it does not"
        )


def print_detail(output: Output, detail: DecisionDetail) -> None:
    """The whole record, as labelled lines."""
    row = detail.row
    output.text(f"{row.id}  {status_word(output, row.status)}  {output.style(clean(row.title), 'bold')}")
    if row.status_reason:
        output.text(f"{_INDENT}{clean(row.status_reason)}")
    output.text()
    for line in clean(detail.rationale).split("\n"):
        output.text(f"  {line}".rstrip())
    output.text()
    for anchor in row.anchors:
        _field(output, "governs", _anchor(anchor))
    confidence = None if row.confidence is None else f"{row.confidence:g}"
    _field(output, "type", row.type)
    _field(output, "confidence", confidence)
    _field(output, "author", row.author)
    _field(output, "tags", ", ".join(row.tags))
    for name, values in (
        ("alternative", detail.alternatives),
        ("depends on", detail.depends_on),
        ("evidence", detail.evidence),
        ("problem", detail.problems),
    ):
        for value in values:
            _field(output, name, value)
    at = f" at {row.recorded_commit[:8]}" if row.recorded_commit else ""
    _field(output, "recorded", f"{moment(row.recorded_at)} by {detail.recorded_by}{at}")
    _field(output, "confirmed", f"{moment(detail.confirmed_at)} ({counted(detail.confirmations, 'confirmation')})")
    _field(output, "invalidated", detail.invalidated_reason)
    end = f" (in the end {detail.live_end})" if detail.live_end and detail.live_end != row.superseded_by else ""
    _field(output, "replaced by", row.superseded_by and row.superseded_by + end)
    _field(output, "revision", str(row.revision))


def print_history(output: Output, rows: Iterable[HistoryRow]) -> None:
    """Each change on a line of its own, with what was there before and after below it."""
    for row in rows:
        where = " on " + row.branch if row.branch else ""
        at = f"  ({row.commit[:8]}{where})" if row.commit else ""
        output.text(f"{moment(row.time)}  {clean(row.text)}{output.style(clean(at), 'dim')}")
        for name in row.before:
            output.text(output.style(f"{_INDENT}{name}: {_shown(row.before[name])}", "red"))
            output.text(output.style(f"{_INDENT}{name}: {_shown(row.after.get(name))}", "green"))


def print_similar(output: Output, similar: Iterable[Similar]) -> None:
    for one in similar:
        row = one.decision
        output.warn(f"like {row.id} ({row.status}) {row.title}: {one.why}")


def moment(text: str) -> str:
    """An ISO time to the minute, as people read it."""
    return f"{text[:10]} {text[11:16]}"


def _anchors(anchors: Sequence[AnchorRow]) -> str:
    shown = [_anchor(anchor) for anchor in anchors[:_MAX_ANCHORS]]
    left = len(anchors) - len(shown)
    return " · ".join(shown) + (f" · and {left} more" if left else "")


def _anchor(anchor: AnchorRow) -> str:
    name = anchor.path if anchor.path is not None else "/" + anchor.repo_path
    symbol = f"::{anchor.symbol}" if anchor.symbol else ""
    match anchor.state:
        case AnchorState.HOLDS:
            return clean(name + symbol)
        case AnchorState.MOVED if anchor.moved_to:
            return clean(f"{name}{symbol} → {anchor.moved_to}")
        case state:
            moved = f" → {anchor.moved_to}" if anchor.moved_to else ""
            return clean(f"{name}{symbol}{moved} [{state.value}]")


def _field(output: Output, name: str, value: str | None) -> None:
    if value:
        output.text(f"{output.style(name.rjust(11), 'dim')}  {clean(value)}")


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    return clean(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)).replace("\n", " ⏎ ")
