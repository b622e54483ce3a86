"""The text shown for a hit: signature, first line of documentation, and the lines that answer the question best.

At most `MAX_TOKENS` by the counter given, whatever the source looks like. Works on the text of one definition; where
that text comes from (disk or an unsaved buffer) is the caller's business.
"""

from __future__ import annotations

from typing import Final

from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.embedding_text import first_sentences
from nm_lsp.search.question import Question
from nm_lsp.search.token_count import TokenCount, cut_to
from nm_lsp.search.tokens import word_terms, words_of

MAX_TOKENS: Final = 100
MAX_SIGNATURE: Final = 45
"""Tokens of the signature, so that a long one leaves room for what it does."""
MAX_DOC: Final = 160
"""Characters of documentation."""
MAX_LINE: Final = 160
MIN_LINE: Final = 5
"""Tokens below which no line is worth a try."""
MAX_LINES_READ: Final = 300
MAX_LINES: Final = 8


def snippet(node: Node, body: str, question: Question, count: TokenCount, limit: int = MAX_TOKENS) -> str:
    """Text of a hit. `body` is the source of the node's span, or "" where it cannot be read."""
    text = cut_to(node.signature or node.name, min(MAX_SIGNATURE, limit), count)
    doc = first_sentences(node.doc, MAX_DOC)
    if doc and node.kind is not NodeKind.SECTION:
        text = f"{text}\n{doc}"
        if count(text) > limit:
            return cut_to(text, limit, count)
    # The counts of lines add up to no less than the count of the lines together, so that each is counted once.
    left = limit - count(text)
    chosen: list[tuple[int, str]] = []
    for row, line in best_lines(node, body, question):
        cost = count(f"{line}\n")
        if cost <= left:
            left -= cost
            chosen.append((row, line))
        if left < MIN_LINE:
            break
    return "\n".join([text, *(line for _, line in sorted(chosen))])


def best_lines(node: Node, body: str, question: Question) -> list[tuple[int, str]]:
    """At most `MAX_LINES` (row, line) with words of the question, best first; none of signature or documentation."""
    wanted = {term: weight for concept in question.concepts for term, weight in concept.terms}
    shown = set(words_of(node.signature)) | set(words_of(first_sentences(node.doc, MAX_DOC)))
    documentation = {line.strip() for line in node.doc.split("\n")}
    lines = body.split("\n", MAX_LINES_READ)[:MAX_LINES_READ]
    scored, seen = [], set()
    for row, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or (node.kind is not NodeKind.SECTION and _marked_off(stripped) in documentation):
            continue
        words = words_of(stripped)
        found = {term for word in words for term in word_terms(word) if term in wanted}
        if not found or shown.issuperset(words) or stripped in seen:
            continue
        seen.add(stripped)
        scored.append((sum(wanted[term] for term in found), row, stripped[:MAX_LINE]))
    scored.sort(key=lambda entry: (-entry[0], entry[1]))
    return [(row, line) for _, row, line in scored[:MAX_LINES]]


def _marked_off(line: str) -> str:
    """A line of a comment without its marks, as documentation keeps it."""
    return line.lstrip("/*#!\"' ").removesuffix("*/").rstrip("\"' ")
