"""A corpus ends with its last user, and is made of whole segments."""

from __future__ import annotations

import gc
import re
import weakref

import pytest

from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import COLUMNS, Segment, SegmentBuilder


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


def test_a_segment_says_which_column_it_lacks() -> None:
    """A flipped bit in a file's header renames a column; that is damage when the file is opened, not at a question."""
    columns = SegmentBuilder().columns()
    assert columns.keys() == COLUMNS
    for name in columns:
        with pytest.raises(KeyError, match=re.escape(name)):
            Segment({key: values for key, values in columns.items() if key != name})
