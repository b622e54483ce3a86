"""The few messages about decisions that are shown unasked: each says something no diagnostic can, and says it once.

One message a commit for decisions that lost their file; one for a look that made many stale; one where diagnostics had
to be left out. Everything else is shown on the files alone, so that a formatter's commit is no shower of pop-ups.
"""

from __future__ import annotations

from collections.abc import Iterator

from nm_lsp.engine.decision_requests import DecisionRow, Marks
from nm_lsp.server.features.markup import one_line
from nm_lsp.server.features.planning import STALE

MANY = 10
"""So many decisions that went stale in one look are one message as well."""
_NAMED = 3


def messages_of(before: Marks | None, now: Marks, prefix: str) -> Iterator[str]:
    """What to say of a look after another. `before` is None at the start: then only what is lost is said.

    `prefix` is that of the client's commands.
    """
    known = {row.id for row in before.lost} if before is not None else set()
    by_commit: dict[str | None, list[DecisionRow]] = {}
    for row in now.lost:
        if row.id not in known:
            by_commit.setdefault(row.stale_commit, []).append(row)
    for commit, rows in by_commit.items():
        by = f"Commit {commit[:8]}" if commit is not None else "A commit"
        what = "a decision governs" if len(rows) == 1 else f"{len(rows)} decisions govern"
        yield f"{by} removed all that {what}: {_named(rows)}. Invalidate, supersede or amend what no longer applies."
    if before is None:
        return
    earlier = stale_rows(before)
    fresh = [row for identity, row in stale_rows(now).items() if identity not in earlier]
    if len(fresh) >= MANY:
        text = f"{len(fresh)} decisions became stale: {_named(fresh)}."
        n_layout = sum(row.reason == "layout" for row in fresh)
        if n_layout:
            text += (
                f" In {n_layout} of them only comments or layout changed: one code action restores them, or"
                f' {prefix}.decisions.restore with all: "layout".'
            )
        yield text


def n_fresh(before: Marks | None, now: Marks) -> int:
    """How many decisions are STALE that were not before."""
    return len(stale_rows(now).keys() - (stale_rows(before).keys() if before is not None else set()))


def left_out_message(n_shown: int, n_left_out: int) -> str:
    return (
        f"Decisions on {n_shown + n_left_out} files do not hold as they stand; {n_shown} files are marked, open ones "
        "first. `nm-lsp decisions list --status stale` shows all."
    )


def stale_rows(marks: Marks) -> dict[str, DecisionRow]:
    """The STALE decisions that have a mark, by id."""
    return {mark.decision.id: mark.decision for group in marks.by_path.values() for mark in group if mark.code == STALE}


def _named(rows: list[DecisionRow]) -> str:
    shown = ", ".join(f"“{one_line(row.title, 60)}” ({row.id})" for row in rows[:_NAMED])
    return shown if len(rows) <= _NAMED else f"{shown} and {len(rows) - _NAMED} more"
