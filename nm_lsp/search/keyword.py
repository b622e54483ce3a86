"""The keyword leg: BM25 in its ATIRE form over the postings of a corpus, a few numpy operations a term.

    score(d) = Σ_t w(t) · log(N / df(t)) · tf·(k1 + 1) / (tf + k1·(1 − b + b·L(d) / avg(L)))

with k1 = 1.5, b = 0.75 (Trotman, Puurula, Burgess: "Improvements to BM25 and Language Models Examined", 2014, equation
3). N counts live docs, L(d) is the sum of the weighted term frequencies of d, w(t) is the question's weight of the
term (1 for its own words, less for abbreviations). A term that every doc holds weighs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.question import Concept

K1: Final = 1.5
B: Final = 0.75


@dataclass(frozen=True, slots=True)
class Matches:
    """Where one concept of the question was found: docs ascending, and its best single contribution to each."""

    concept: Concept
    docs: NDArray[np.int32]
    scores: NDArray[np.float32]
    n_live: int

    @property
    def idf(self) -> float:
        """Of the concept as a whole: log(N / n) for n docs that hold any of its terms, half a doc where none does."""
        return math.log(max(self.n_live, 1) / max(len(self.docs), 0.5))

    @property
    def rarity(self) -> float:
        """log(1 + N / n): never 0, so that in a corpus of a few files a word all docs hold still counts."""
        return math.log(1 + max(self.n_live, 1) / max(len(self.docs), 0.5))

    def holds(self, docs: NDArray[np.int32]) -> NDArray[np.bool_]:
        """For each of `docs`, whether the concept occurs in it."""
        if not len(self.docs):
            return np.zeros(len(docs), np.bool_)
        at = np.minimum(np.searchsorted(self.docs, docs), len(self.docs) - 1)
        found: NDArray[np.bool_] = self.docs[at] == docs
        return found


@dataclass(frozen=True, slots=True)
class KeywordScores:
    """`scores[doc]` for every doc, 0 where no term occurs; `matches` has one entry for each concept, in its order."""

    scores: NDArray[np.float32]
    matches: tuple[Matches, ...]


def keyword_scores(corpus: Corpus, concepts: Sequence[Concept], cancel: Cancellation | None = None) -> KeywordScores:
    """Score all docs. An empty corpus has no scores and every concept is unknown to it."""
    scores = np.zeros(corpus.n_docs, np.float32)
    matches = []
    # The length part of the formula is shared by all terms.
    norms = K1 * (1 - B + B * corpus.length / np.float32(max(corpus.average_length, 1e-9)))
    for concept in concepts:
        if cancel is not None:
            cancel.check()
        weighted = []
        for term, weight in concept.terms:
            docs, part = _term_scores(corpus, term, norms)
            part = part * np.float32(weight)
            scores[docs] += part
            weighted.append((docs, part))
        matches.append(_joined(concept, weighted, corpus.n_live))
    return KeywordScores(scores, tuple(matches))


def _term_scores(
    corpus: Corpus, term: str, norms: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    docs, frequencies = corpus.postings(term)
    if not len(docs):
        return docs, frequencies
    idf = np.float32(math.log(corpus.n_live / len(docs)))
    tf = frequencies.astype(np.float32, copy=False)
    return docs, idf * tf * np.float32(K1 + 1) / (tf + norms[docs])


def _joined(concept: Concept, parts: Sequence[tuple[NDArray[np.int32], NDArray[np.float32]]], n_live: int) -> Matches:
    parts = [part for part in parts if len(part[0])]
    if len(parts) == 1:
        docs, scores = parts[0]
    elif parts:
        docs, inverse = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        scores = np.zeros(len(docs), np.float32)
        np.maximum.at(scores, inverse, np.concatenate([part[1] for part in parts]))
    else:
        docs, scores = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Matches(concept, docs, scores, n_live)
