"""L3: the hits themselves: where, how well they match, and the lines that answer, without what L2 said already."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from nm_lsp.context.budget import LayerText, Page, finish
from nm_lsp.context.quoting import CODE, inline, quoted
from nm_lsp.graph.model import Node
from nm_lsp.search.question import Question
from nm_lsp.search.ranking import Candidate
from nm_lsp.search.snippet import MAX_TOKENS, best_lines, snippet
from nm_lsp.search.token_count import TokenCount

Body = Callable[[Node], str]
"""The source of a node's span, "" where it cannot be read."""

NAME, TITLE = "L3", "Found"
NO_MATCH: Final = "No match: nothing in this workspace answers the question."
MIN_SNIPPET: Final = 24
"""Tokens of text that even a weak hit gets."""
MIN_SHARE: Final = 0.35
"""A hit that scores less than this part of the best one is not worth an agent's tokens once three were shown."""
MIN_SHOWN: Final = 3


def hits_layer(
    hits: Sequence[Candidate],
    question: Question,
    body: Body,
    said: Collection[int],
    budget: int,
    count: TokenCount,
) -> LayerText:
    """The layer, at most `budget` tokens. `said` are docs whose signature and documentation L2 gave.

    The better a hit's score, the more lines it gets. Without hits the layer says plainly that nothing matches.
    """
    page = Page(budget, count)
    if not page.add(f"## {TITLE}"):
        return LayerText(NAME, TITLE, "", 0, budget, ("no room",))
    if not hits:
        page.add(NO_MATCH)
        return finish(NAME, TITLE, page, budget, count, ("no match",))
    best = hits[0].score
    n_shown = 0
    for hit in hits:
        if n_shown >= MIN_SHOWN and hit.score < best * MIN_SHARE:
            break
        head = f"- {inline(hit.node.path)}:{hit.node.span.start_line + 1} {_named(hit.node)} ({hit.score:.2f})"
        limit = max(MIN_SNIPPET, int(MAX_TOKENS * hit.score / best))
        lines = _lines(hit, question, body, limit, count, said=hit.doc in said)
        # A hit that fits only without its lines is still a place to look at; a place alone ends the list.
        while lines and not _fits(page, [head, *lines], count):
            lines.pop()
        if not page.add(head, *lines):
            break
        n_shown += 1
        if not lines and hit.doc not in said:
            break
    return finish(NAME, TITLE, page, budget, count, (f"{n_shown} of {len(hits)} hits",))


def _named(node: Node) -> str:
    return f"{node.kind.value} {inline(node.qualified_name or node.name)}"


def _fits(page: Page, lines: Sequence[str], count: TokenCount) -> bool:
    return sum(count(f"{line}\n") for line in lines) <= page.left


def _lines(hit: Candidate, question: Question, body: Body, limit: int, count: TokenCount, *, said: bool) -> list[str]:
    source = body(hit.node)
    if not said:
        return quoted(snippet(hit.node, source, question, count, limit), CODE)
    lines = sorted(best_lines(hit.node, source, question)[:3])
    return [line for _, text in lines for line in quoted(text, CODE)]
