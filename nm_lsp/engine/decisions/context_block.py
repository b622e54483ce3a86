"""The decisions that govern the files an answer shows: ACTIVE ones as context, all others behind their status."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nm_lsp.context.budget import Page
from nm_lsp.context.quoting import PROSE, inline
from nm_lsp.decisions.validation import escaped
from nm_lsp.engine.decision_requests import DecisionRow, Governing
from nm_lsp.engine.decisions.desk import Desk

TITLE: Final = "## Decisions that govern these files"
MAX_DECISIONS: Final = 5


def governing_block(
    desk: Desk, paths: Iterable[str], budget: int, count: Callable[[str], int]
) -> tuple[str, tuple[DecisionRow, ...]]:
    """At most `budget` tokens about the decisions on `paths` (folder-relative, most important first), quoted as data.

    Doubted ones come first: they are what an agent must know before it builds on the code. "" where nothing governs.
    """
    found: dict[str, tuple[str, Governing]] = {}
    for path in paths:
        for governing in desk.governing(path):
            found.setdefault(governing.decision.id, (path, governing))
    if not found:
        return "", ()
    ordered = sorted(found.values(), key=lambda item: (item[1].decision.status == "active", not item[1].is_here))
    page = Page(budget, count)
    if not page.add(TITLE):
        return "", ()
    shown = []
    for path, governing in ordered[:MAX_DECISIONS]:
        row = governing.decision
        state = "" if row.status == "active" else f"{row.status.upper()}: "
        head = f"- {row.id} {state}{inline(row.title)} ({inline(path)})"
        if not page.add(head):
            break
        shown.append(row)
        why = row.status_reason if row.status != "active" else None
        page.add_cut(escaped(why or governing.rationale, one_line=True), f"  {PROSE}")
    return (page.text, tuple(shown)) if shown else ("", ())
