"""What a hit shows of itself: signature, first line of documentation, and the lines that answer the question.

Never more than `MAX_TOKENS`, however long the lines are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.tokens import question_terms, stems_of

MAX_TOKENS: Final = 100
MAX_LINES: Final = 4
MAX_LINE: Final = 160
_MAX_SCANNED: Final = 400
"""Lines of a definition that are looked at; longer ones are data."""

TokenCounter = Callable[[str], int]
"""What a text costs: max(word pieces, characters / 4), or characters / 3 without a tokenizer."""


def snippet(node: Node, text: str | None, query: str, count: TokenCounter, limit: int = MAX_TOKENS) -> str:
    """At most `limit` tokens about `node`. `text` is the file's text that its span belongs to; without it no lines."""
    head = [node.signature or node.name]
    doc = node.doc.strip().split("\n", 1)[0].strip()
    if doc:
        head.append(doc)
    kept = _fit(head, count, limit)
    if text is None or len(kept) < len(head):
        return "\n".join(kept)
    for line in _best_lines(node, text, query, head):
        longer = [*kept, line]
        if count("\n".join(longer)) > limit:
            break
        kept = longer
    return "\n".join(kept)


def _fit(lines: list[str], count: TokenCounter, limit: int) -> list[str]:
    """The first lines that fit; a first line that is too long alone is cut at a word."""
    kept: list[str] = []
    for line in lines:
        if count("\n".join([*kept, line])) <= limit:
            kept.append(line)
            continue
        room = limit - count("\n".join(kept)) if kept else limit
        cut = _cut(line, count, room - 2)
        if cut:
            kept.append(cut)
        break
    return kept


def _cut(line: str, count: TokenCounter, room: int) -> str:
    low, high = 0, min(len(line), room * 4)
    while low < high:
        middle = (low + high + 1) // 2
        if count(line[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    cut = line[:low].rsplit(" ", 1)[0] if low < len(line) else line
    return cut + " …" if cut else ""


def _best_lines(node: Node, text: str, query: str, shown: list[str]) -> list[str]:
    """Up to `MAX_LINES` lines of the definition that hold most of the question's words, in their order."""
    lines = _lines_of(node, text)
    wanted = set(question_terms(query))
    seen = {line.strip() for line in shown}
    doc_lines = {line.strip() for line in node.doc.split("\n")}
    scored = []
    for row, line in enumerate(lines[:_MAX_SCANNED]):
        bare = line.strip()
        if len(bare) < 3 or bare in seen or bare.strip("\"'#/* ") in doc_lines:
            continue
        n_hits = len(stems_of(bare) & wanted)
        if n_hits or (node.kind is NodeKind.SECTION and row > 0):
            scored.append((-n_hits, row, bare[:MAX_LINE]))
    best = sorted(scored)[:MAX_LINES]
    return [line for _, _, line in sorted(best, key=lambda item: item[1])]


def _lines_of(node: Node, text: str) -> list[str]:
    """The lines of the node after the one its name is in."""
    first, last = node.name_span.end_line + 1, node.span.end_line + 1
    if node.kind is NodeKind.MODULE:
        first = node.span.start_line
    return text.split("\n")[first : min(last, first + _MAX_SCANNED)]
