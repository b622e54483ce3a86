"""Whether a question is answered here at all: the floor below which the honest answer is nothing.

Two witnesses: the nearest meaning (the largest cosine of a candidate) and the words (the largest share of the
question, weighed by rarity, that one candidate holds; a word that the corpus lacks is as rare as can be). Thresholds
were measured on answerable and on off-topic questions over twelve repositories (`tests/bench/retrieval.py`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nm_lsp.search.corpus import Corpus
from nm_lsp.search.keyword import KeywordScores

WORDS_WEIGHT: Final = 0.5
BOTH_FLOOR: Final = 0.60
"""For cosine + WORDS_WEIGHT · coverage."""
WORDS_FLOOR: Final = 0.38
"""For coverage alone, where there are no vectors to ask."""
WORDS_SUFFICE: Final = 0.85
"""Coverage that needs no second witness: who asks for two words and finds both wants to see them."""
MEANING_FLOOR: Final = 0.40
"""For the cosine alone, where the keyword leg is off."""


def confidence(nearest: float, corpus: Corpus, keyword: KeywordScores, *, with_vectors: bool) -> float:
    """In [0, 1]; at least 0.5 where the question is answered. Without vectors the words decide alone.

    `nearest` is the largest cosine of the vector leg, 0 where it returned nothing. Both witnesses speak for the whole
    corpus, whatever part of it the answer is restricted to.
    """
    if not keyword.matches:
        return min(1.0, 0.5 * nearest / MEANING_FLOOR)
    words = coverage(corpus, keyword)
    alone = 0.5 * words / (WORDS_SUFFICE if with_vectors else WORDS_FLOOR)
    both = 0.5 * (nearest + WORDS_WEIGHT * words) / BOTH_FLOOR if with_vectors else 0.0
    return min(1.0, max(alone, both))


def coverage(corpus: Corpus, keyword: KeywordScores) -> float:
    """The largest share of the question that one doc holds, in [0, 1]."""
    held = np.zeros(corpus.n_docs, np.float32)
    total = 0.0
    for match in keyword.matches:
        if match.concept.counts:
            weight = match.rarity * match.concept.terms[0][1]
            held[match.docs] += np.float32(weight)
            total += weight
    return float(held.max(initial=0.0)) / total if total else 0.0
