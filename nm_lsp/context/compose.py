"""The layers put together into one text that an agent can be given, and what it cost.

Guarantee: `tokens` of the whole never exceeds the budget, counted over the very text returned. L0 and L1 depend on the
index and the description of the project alone, so a caller may keep them for as long as neither changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.context.budget import DEFAULT_BUDGET, DEFAULT_WAKEUP, LayerText, allot, allot_wakeup, grown
from nm_lsp.context.hits import Body, hits_layer
from nm_lsp.context.identity import Reader, identity
from nm_lsp.context.modules import modules
from nm_lsp.context.summary import summary
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.ranking import RankedResult
from nm_lsp.search.token_count import TokenCount

SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Composed:
    """`text` is the layers that say something, in order; `communities` the titles L2 chose."""

    text: str
    tokens: int
    layers: tuple[LayerText, ...]
    communities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """L0 and L1 as made for one allotment."""

    identity: LayerText
    summary: LayerText


def standing_layers(
    corpus: Corpus, read: Reader, folder_name: str, count: TokenCount, identity_budget: int, summary_budget: int
) -> Standing:
    """L0 and L1. `read` gives a file's text by path relative to the folder, or None."""
    return Standing(identity(read, folder_name, identity_budget, count), summary(corpus, summary_budget, count))


def compose_wakeup(
    corpus: Corpus, read: Reader, folder_name: str, count: TokenCount, budget: int | None = None
) -> Composed:
    """L0 and L1 in at most `budget` tokens (600 by default and at most)."""
    room = allot_wakeup(DEFAULT_WAKEUP if budget is None else budget)
    standing = standing_layers(corpus, read, folder_name, count, room.identity, room.summary)
    return _joined((standing.identity, standing.summary), room.total, count)


def compose_query(
    corpus: Corpus,
    result: RankedResult,
    *,
    read: Reader,
    body: Body,
    folder_name: str,
    count: TokenCount,
    budget: int | None = None,
    reserved: int = 0,
    standing: Standing | None = None,
    cancel: Cancellation | None = None,
) -> Composed:
    """All four layers in at most `budget` tokens (1,100 by default, 1,500 at most).

    `reserved` tokens of it are left free for what the caller adds. `standing` are L0 and L1 kept from before, for the
    same budget and index. Raises `Cancelled`.
    """
    asked = DEFAULT_BUDGET if budget is None else budget
    room = allot(max(0, asked - reserved), result.question.complexity)
    if standing is None:
        standing = standing_layers(corpus, read, folder_name, count, room.identity, room.summary)
    gap = count(SEPARATOR)
    spent = standing.identity.tokens + standing.summary.tokens + 2 * gap
    chosen = modules(corpus, result.candidates, min(room.modules, max(0, room.total - spent)), count, cancel)
    spent += chosen.layer.tokens + gap
    # From 0 where the question is barely answered (0.5) to 1 where it surely is.
    quality = min(1.0, max(0.0, 2 * result.confidence - 1))
    found = hits_layer(result.candidates, result.question, body, chosen.said, grown(room, spent, quality), count)
    layers = (standing.identity, standing.summary, chosen.layer, found)
    return _joined(layers, room.total, count, chosen.communities)


def _joined(
    layers: tuple[LayerText, ...], total: int, count: TokenCount, communities: tuple[str, ...] = ()
) -> Composed:
    text = SEPARATOR.join(layer.text for layer in layers if layer.text)
    # The layers were counted one by one. A counter for which the whole costs more than its parts ends here too.
    while text and count(text) > total:
        text = text.rpartition("\n")[0].rstrip("\n")
    return Composed(text, count(text), layers, communities)
