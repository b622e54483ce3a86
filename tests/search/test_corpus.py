"""A corpus ends with its last user."""

from __future__ import annotations

import gc
import weakref

from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import SegmentBuilder


def test_an_old_corpus_is_gone_without_a_garbage_collection() -> None:
    """Each saved file makes a new one, and an old one keeps its files open."""
    corpus = Corpus([(SegmentBuilder().build(), frozenset())])
    assert corpus.resolver is not None
    gone = weakref.ref(corpus)
    gc.disable()
    try:
        del corpus
        assert gone() is None
    finally:
        gc.enable()
