"""Segments, their merge and the corpus: one numbering over many parts says the same as one part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.graph.extract import parse_file
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.merge import merge_segments
from nm_lsp.search.segment import (
    NO_KEY,
    FileStamp,
    IndexedFile,
    Segment,
    SegmentBuilder,
    node_id,
    split_node_id,
)

SOURCES = {
    "app/models.py": "class Base:\n    def save(self):\n        return store(self)\n\nclass User(Base):\n    pass\n",
    "app/store.py": '"""Storage."""\nfrom app.models import Base\n\ndef store(thing):\n    return Base()\n',
    "app/views.py": "import app.models as m\n\ndef show():\n    u = m.User()\n    u.save()\n    return u\n",
    "readme.md": "# Title\n\nUses `store`.\n\n## Part\n\ntext ü 𝕏\n",
    "empty.py": "",
}


def indexed(path: str, text: str) -> IndexedFile:
    parsed = parse_file(path, text)
    terms: list[dict[str, int]] = [
        {node.name.lower(): 3, "common": 1} if node.name else {"common": 2} for node in parsed.nodes
    ]
    keys = [bytes([row + 1]) * 32 if row % 2 else NO_KEY for row in range(len(parsed.nodes))]
    return IndexedFile(
        parsed, FileStamp(path.encode().ljust(16, b"\0")[:16], len(text), 7), text.isascii(), terms, keys
    )


def segment(*paths: str) -> Segment:
    builder = SegmentBuilder()
    for path in paths:
        builder.add(indexed(path, SOURCES[path]))
    return builder.build()


def contents(corpus: Corpus) -> dict[str, object]:
    """Everything a corpus says, by path and name instead of by number."""
    said: dict[str, object] = {}
    for path, file in sorted(corpus.file_numbers.items()):
        docs = corpus.file_docs(file)
        said[path] = (corpus.stamp(path), corpus.file_language(file), corpus.file_imports(file))
        for doc in docs:
            node = corpus.node(doc)
            uses = [
                (
                    reference.kind,
                    reference.target,
                    reference.line,
                    [(corpus.id(t.doc), t.kind, t.confidence) for t in found],
                )
                for reference, found in corpus.references_from(doc)
            ]
            parent = int(corpus.parent[doc])
            said[node.id] = (node, corpus.key(doc), corpus.id(parent) if parent >= 0 else None, uses)
    for term in ("common", "user", "store", "absent"):
        docs, tf = corpus.postings(term)
        said[f"term {term}"] = sorted((corpus.id(int(d)), float(f)) for d, f in zip(docs, tf, strict=True))
    for name in ("SAVE", "Base", "nothing"):
        said[f"name {name}"] = sorted(corpus.id(int(doc)) for doc in corpus.defined(name))
    return said


def test_nodes_come_back_as_they_were_parsed() -> None:
    corpus = Corpus([(segment(*SOURCES), frozenset())])
    for path, text in SOURCES.items():
        parsed = parse_file(path, text)
        docs = corpus.file_docs(corpus.file_numbers[path])
        assert [corpus.node(doc) for doc in docs] == list(parsed.nodes)
        assert corpus.file_imports(corpus.file_numbers[path]) == list(parsed.imports)


@given(st.permutations(sorted(SOURCES)), st.integers(1, len(SOURCES) - 1), st.data())
def test_parts_and_their_merge_say_the_same_as_one_segment(order: list[str], cut: int, data: st.DataObject) -> None:
    """Files split over two segments, one of them replaced by a later row, then everything merged."""
    replaced = data.draw(st.sampled_from(order[:cut]))
    first, second = segment(*order[:cut]), segment(*order[cut:], replaced)
    dead = frozenset([order.index(replaced)])
    parts = Corpus([(first, dead), (second, frozenset())])
    whole = contents(Corpus([(segment(*order), frozenset())]))
    assert contents(parts) == whole
    live = np.ones(first.n_files, np.bool_)
    live[list(dead)] = False
    merged = merge_segments([(first, live), (second, np.ones(second.n_files, np.bool_))], lambda: None)
    assert contents(Corpus([(merged, frozenset())])) == whole
    assert parts.n_live == merged.n_docs
    assert parts.average_length == pytest.approx(float(merged.length.mean()))


def test_dead_rows_are_never_returned() -> None:
    corpus = Corpus([(segment("app/models.py", "app/store.py"), frozenset([0]))])
    assert corpus.defined("save").tolist() == []
    assert corpus.find("app/models.py::User") is None
    assert corpus.n_live_files == 1
    docs, _ = corpus.postings("common")
    assert {corpus.path(int(doc)) for doc in docs} == {"app/store.py"}


def test_an_empty_corpus_answers() -> None:
    corpus = Corpus(())
    assert corpus.postings("x")[0].tolist() == []
    assert corpus.defined("x").tolist() == []
    assert corpus.find("a.py::x") is None
    assert merge_segments([], lambda: None).n_docs == 0


@pytest.mark.parametrize(
    ("path", "qualified", "ordinal", "expected"),
    [("a.py", "", 0, "a.py"), ("a.py", "C.m", 1, "a.py::C.m"), ("a.py", "C.m", 3, "a.py::C.m#3")],
)
def test_node_ids_split_into_what_they_were_made_of(path: str, qualified: str, ordinal: int, expected: str) -> None:
    assert node_id(path, qualified, ordinal) == expected
    assert split_node_id(expected) == (path, qualified, max(ordinal, 1))


def test_a_sharp_sign_that_is_no_ordinal_belongs_to_the_name() -> None:
    assert split_node_id("a.md::C# code") == ("a.md", "C# code", 1)
