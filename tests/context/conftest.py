"""A small corpus from texts, built as the benchmarks build theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from retrieval_corpus import Built, build

from nm_lsp.search.corpus import Corpus
from nm_lsp.search.topics import Topic

DEPOT = {
    "README.md": "# Depot\n\n[![badge](x.svg)](y)\n\nParcels go **out** on time.\n\n## Install\n\nRun it.\n",
    "depot/parcel.py": '''class Thing:
    """Anything with a weight."""


class Parcel(Thing):
    """A box on its way to a customer."""

    def wrap(self, paper):
        """Put the box into brown paper."""
        cut_paper(paper)
        return self


class FragileParcel(Parcel):
    def wrap(self, paper):
        return super().wrap(paper)


def cut_paper(paper):
    """Cut brown paper to the size of the box."""
    return paper


def send_parcel(parcel, paper):
    return parcel.wrap(paper)
''',
    "depot/route.py": '''def shortest_route(stops):
    """Order the stops of a tour so that it is short."""
    return sorted(stops)
''',
    "tests/test_parcel.py": "def test_wrap():\n    Parcel().wrap('brown')\n",
}


@pytest.fixture(scope="session")
def corpus_of() -> Callable[[Mapping[str, str]], Built]:
    return build


@pytest.fixture(scope="session")
def depot() -> Built:
    built = build(DEPOT)
    topics = (
        Topic(1, "depot: Parcel, wrap", ("depot/parcel.py", "tests/test_parcel.py"), ("depot/parcel.py::send_parcel",)),
        Topic(2, "depot: shortest_route", ("depot/route.py",), ("depot/route.py::shortest_route",)),
    )
    corpus = Corpus([(segment, frozenset()) for segment in built.corpus.segments], topics)
    return Built(corpus, built.texts, built.embedding_texts)
