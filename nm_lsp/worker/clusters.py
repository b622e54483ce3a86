"""The communities of an index: file edges out of imports and uses, then detection and naming."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.communities import detect
from nm_lsp.graph.model import NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import KINDS
from nm_lsp.search.topics import Topic
from nm_lsp.worker.folder import FolderIndex

IMPORT_WEIGHT = 3.0
USE_WEIGHT = 1.0
MAX_USES = 10
"""Uses between two files beyond this many add nothing: one loop of calls is not a friendship."""
STRONGEST = 8
INTERVAL_S = 60.0
CHANGED_SHARE = 0.02

FileEdges = dict[tuple[str, str], float]


class TopicsKeeper:
    """Computes the communities of an index anew when more than `CHANGED_SHARE` of its file edges changed, at most once
    in `INTERVAL_S`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._edges: FileEdges | None = None
        self._at: float | None = None
        self._wanted = False

    def update(self, index: FolderIndex, *, changed: bool) -> bool:
        """True where the index has other communities now. `changed`: rows of the index changed since the last call."""
        self._wanted = self._wanted or changed or index.manifest.topics is None
        now = self._clock()
        if not self._wanted or (self._at is not None and now - self._at < INTERVAL_S):
            return False
        self._wanted, self._at = False, now
        corpus = index.corpus()
        edges = file_edges(corpus)
        before, self._edges = self._edges, edges
        if before is not None and len(before.keys() ^ edges.keys()) <= CHANGED_SHARE * len(edges):
            return False
        index.update(topics=index.store.write_topics(communities(corpus, edges, corpus.topics)))
        return True


def file_edges(corpus: Corpus) -> FileEdges:
    """Undirected weighted edges between files (paths in order). Uses count only where their name has one definition."""
    weights: dict[tuple[int, int], float] = {}
    for file in corpus.file_numbers.values():
        for target in corpus.resolver.imported_files(file):
            pair = (min(file, target), max(file, target))
            weights[pair] = weights.get(pair, 0.0) + IMPORT_WEIGHT
    for a, b, count in _uses_of_unique_names(corpus):
        pair = (min(a, b), max(a, b))
        weights[pair] = weights.get(pair, 0.0) + USE_WEIGHT * min(count, MAX_USES)
    path = corpus.file_path
    names = {file: path(file) for pair in weights for file in pair}
    return {_ordered(names[a], names[b]): weight for (a, b), weight in weights.items()}


def _ordered(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _uses_of_unique_names(corpus: Corpus) -> list[tuple[int, int, int]]:
    """(file of the use, file of the definition, uses) for names that the corpus defines exactly once."""
    names, owners, tails, users = [], [], [], []
    doc_base = 0
    module_row = KINDS.index(NodeKind.MODULE)
    for segment in corpus.segments:
        docs = segment.columns["name.doc"].astype(np.int64) + doc_base
        defines = corpus.live[docs] & (corpus.kind[docs] != module_row)
        names.append(segment.columns["name.hash"][defines])
        owners.append(corpus.file[docs[defines]])
        sources = segment.columns["ref.source"][segment.columns["tail.ref"]].astype(np.int64) + doc_base
        alive = corpus.live[sources]
        tails.append(segment.columns["tail.hash"][alive])
        users.append(corpus.file[sources[alive]])
        doc_base += segment.n_docs
    if not names:
        return []
    unique, first, counts = np.unique(np.concatenate(names), return_index=True, return_counts=True)
    owner: NDArray[np.int32] = np.concatenate(owners)[first]
    unique, owner = unique[counts == 1], owner[counts == 1]
    tail, user = np.concatenate(tails), np.concatenate(users)
    if not len(unique) or not len(tail):
        return []
    at = np.minimum(np.searchsorted(unique, tail), len(unique) - 1)
    hit = unique[at] == tail
    pairs = np.stack([user[hit], owner[at[hit]]], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    rows, uses = np.unique(pairs, axis=0, return_counts=True)
    return [(int(a), int(b), int(n)) for (a, b), n in zip(rows.tolist(), uses.tolist(), strict=True)]


def communities(corpus: Corpus, edges: FileEdges, previous: Sequence[Topic]) -> list[Topic]:
    """Communities of all live files; ids carry over from `previous` by largest overlap."""
    paths = sorted(corpus.file_numbers)
    rank = {path: row for row, path in enumerate(paths)}
    before = {path: topic.id for topic in previous for path in topic.files}
    weights = {(rank[a], rank[b]): weight for (a, b), weight in edges.items()}
    strongest = _strongest(corpus)
    names = {path: [corpus.name(doc) for doc in docs] for path, docs in strongest.items()}
    found = []
    for community in detect(paths, weights, before, names):
        symbols = sorted(
            (doc for path in community.files for doc in strongest.get(path, ())),
            key=lambda doc: (-float(corpus.length[doc]), doc),
        )[:STRONGEST]
        found.append(Topic(community.id, community.title, tuple(community.files), tuple(corpus.id(d) for d in symbols)))
    return found


def _strongest(corpus: Corpus) -> Mapping[str, list[int]]:
    """The three largest classes and functions of each file."""
    wanted = [row for row, kind in enumerate(KINDS) if kind in {NodeKind.CLASS, NodeKind.FUNCTION}]
    found = {}
    for path, file in corpus.file_numbers.items():
        docs = [doc for doc in corpus.file_docs(file) if corpus.kind[doc] in wanted]
        found[path] = sorted(docs, key=lambda doc: (-float(corpus.length[doc]), doc))[:3]
    return found
