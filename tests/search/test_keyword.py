"""The keyword leg against rank_bm25, and its edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25
from retrieval_corpus import Built

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.keyword import K1, B, keyword_scores
from nm_lsp.search.question import Concept
from nm_lsp.search.stemming import stem


class BM25ATIRE(BM25):  # type: ignore[misc]  # the package has no types
    """The formula written out over plain token lists."""

    def __init__(self, corpus: list[list[str]]) -> None:
        super().__init__(corpus)

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {word: math.log(self.corpus_size / n) for word, n in nd.items()}

    def get_scores(self, query: list[str]) -> np.ndarray:
        scores = np.zeros(self.corpus_size)
        lengths = np.array(self.doc_len)
        for word in query:
            tf = np.array([frequencies.get(word, 0) for frequencies in self.doc_freqs])
            scores += self.idf.get(word, 0) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths / self.avgdl))
        return scores


def tokens_of(corpus: Corpus, terms: list[str]) -> list[list[str]]:
    """The corpus as lists of tokens: each known term as often as it counts, the rest as filler of the same length."""
    documents: list[list[str]] = [[] for _ in range(corpus.n_docs)]
    for term in terms:
        for doc, tf in zip(*corpus.postings(term), strict=True):
            documents[doc].extend([term] * int(tf))
    for doc, document in enumerate(documents):
        document.extend(["filler"] * (int(corpus.length[doc]) - len(document)))
    return documents


def asked(*terms: str) -> list[Concept]:
    return [Concept(term, ((stem(term), 1.0),)) for term in terms]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(["cart", "total", "voucher", "address", "custom", "days", "estimate"]), min_size=1, unique=True
    )
)
def test_scores_are_those_of_rank_bm25(shop: Built, terms: list[str]) -> None:
    stems = [stem(term) for term in terms]
    oracle = BM25ATIRE(tokens_of(shop.corpus, stems))
    ours = keyword_scores(shop.corpus, asked(*terms)).scores
    assert ours.any()
    np.testing.assert_allclose(ours, oracle.get_scores(stems), rtol=1e-4, atol=1e-6)


def test_weights_of_terms_scale_their_part(shop: Built) -> None:
    full = keyword_scores(shop.corpus, asked("voucher")).scores
    half = keyword_scores(shop.corpus, [Concept("voucher", ((stem("voucher"), 0.5),))]).scores
    np.testing.assert_allclose(half, full / 2, rtol=1e-6)


def test_a_concept_is_held_where_any_of_its_terms_stands(shop: Built) -> None:
    match = keyword_scores(shop.corpus, [Concept("x", ((stem("voucher"), 1.0), ("parcel", 0.4)))]).matches[0]
    everything = np.arange(shop.corpus.n_docs, dtype=np.int32)
    held = {shop.corpus.id(doc) for doc in everything[match.holds(everything)].tolist()}
    assert "src/shop/shipping.py::estimate_delivery" in held
    assert "src/shop/cart.py::apply_discount" in held
    assert "src/shop/accounts.py::verify_hash" not in held


def test_an_unknown_word_is_the_rarest(shop: Built) -> None:
    known, unknown = keyword_scores(shop.corpus, asked("voucher", "zebra")).matches
    assert unknown.rarity > known.rarity
    assert unknown.idf > known.idf
    assert not len(unknown.docs)


def test_an_empty_corpus_has_no_scores() -> None:
    found = keyword_scores(Corpus([]), asked("anything"))
    assert len(found.scores) == 0
    assert len(found.matches) == 1


def test_replaced_files_are_not_scored(corpus_of: Callable[[Mapping[str, str]], Built]) -> None:
    segment = corpus_of(
        {"a.py": "def voucher():\n    return 1\n", "b.py": "def voucher():\n    return 2\n"}
    ).corpus.segments[0]
    corpus = Corpus([(segment, frozenset({0}))])
    scores = keyword_scores(corpus, asked("voucher")).scores
    # Every live doc of the one file left may hold the word, so that its idf can be 0: ask the postings as well.
    assert not scores[~corpus.live].any()
    assert corpus.live[corpus.postings(stem("voucher"))[0]].all()


def test_cancelling_stops_it(shop: Built) -> None:
    cancel = Cancellation()
    cancel.cancel()
    with pytest.raises(Cancelled):
        keyword_scores(shop.corpus, asked("voucher"), cancel)
