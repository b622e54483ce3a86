"""The communities of an index: file edges out of imports and uses, then detection and naming."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.communities import detect
from nm_lsp.graph.model import NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.segment import KINDS
from nm_lsp.search.topics import Topic
from nm_lsp.worker.folder import FolderIndex

IMPORT_WEIGHT = 3.0
USE_WEIGHT = 1.0
MAX_USES = 10
"""Uses between two files beyond this many add nothing: one loop of calls is not a friendship."""
STRONGEST = 8
TITLE_NAMES = 3
INTERVAL_S = 60.0
_LEFT_OVER = 1 << 33
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
    """Communities of all live files; ids carry over from `previous` by largest overlap.

    Sources alone decide them, or tests, which use everything, would pull them together. Every other file joins the
    community it has most to do with; what has to do with none is grouped by its top folder.
    """
    paths = sorted(corpus.file_numbers)
    tied = {path for pair in edges for path in pair}
    sources = [path for path in paths if path in tied and role_of(path) is Role.SOURCE]
    rank = {path: row for row, path in enumerate(sources)}
    before = {path: topic.id for topic in previous for path in topic.files}
    weights = {(rank[a], rank[b]): weight for (a, b), weight in edges.items() if a in rank and b in rank}
    found = detect(sources, weights, before)
    joined = _joiners(edges, {path: community.id for community in found for path in community.files})
    strongest = _strongest(corpus, paths)
    topics = []
    for community in found:
        symbols = _best(community.files, strongest)
        place = community.title.partition(":")[0]
        files = (*community.files, *sorted(joined.get(community.id, ())))
        topics.append(Topic(community.id, _title(corpus, place, symbols), files, _ids(corpus, symbols)))
    placed = {path for topic in topics for path in topic.files}
    return topics + _left_over(corpus, [path for path in paths if path not in placed], strongest)


def _best(files: Iterable[str], strongest: Mapping[str, Sequence[tuple[int, float]]]) -> list[int]:
    rows = sorted((item for path in files for item in strongest[path]), key=lambda item: (-item[1], item[0]))
    return [doc for doc, _ in rows[:STRONGEST]]


def _ids(corpus: Corpus, docs: Iterable[int]) -> tuple[str, ...]:
    return tuple(corpus.id(doc) for doc in docs)


def _title(corpus: Corpus, place: str, symbols: Iterable[int]) -> str:
    """A folder and up to three of the most used names: "django/forms: CharField, Form, ValidationError"."""
    spellings: dict[str, str] = {}
    for doc in symbols:
        name = corpus.name(doc)
        spellings.setdefault(name.lower(), name)
    names = list(spellings.values())[:TITLE_NAMES]
    return f"{place}: {', '.join(names)}" if place and names else place or ", ".join(names) or "files"


def _joiners(edges: FileEdges, home: Mapping[str, int]) -> dict[int, list[str]]:
    """Community id to the files outside all communities that are tied to it most."""
    ties: dict[str, dict[int, float]] = {}
    for (a, b), weight in edges.items():
        for path, other in ((a, b), (b, a)):
            if path not in home and other in home:
                row = ties.setdefault(path, {})
                row[home[other]] = row.get(home[other], 0.0) + weight
    joined: dict[int, list[str]] = {}
    for path, counts in ties.items():
        best = min(counts, key=lambda community: (-counts[community], community))
        joined.setdefault(best, []).append(path)
    return joined


def _left_over(
    corpus: Corpus, paths: Sequence[str], strongest: Mapping[str, Sequence[tuple[int, float]]]
) -> list[Topic]:
    """One topic a top folder; its id follows from the folder's name, far from the detected ones."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(path.partition("/")[0] if "/" in path else "", []).append(path)
    topics = []
    for folder, files in sorted(groups.items()):
        symbols = _best(files, strongest)
        identifier = _LEFT_OVER + zlib.crc32(folder.encode("utf-8", "surrogateescape"))
        title = _title(corpus, folder or "top level", symbols)
        topics.append(Topic(identifier, title, tuple(files), _ids(corpus, symbols)))
    return topics


def _strongest(corpus: Corpus, paths: Iterable[str]) -> dict[str, list[tuple[int, float]]]:
    """Per file its classes and functions with how much they are used, most first; at most `STRONGEST`.

    A name's uses are shared among all that bear it, so that `Meta` or `get` count for little.
    """
    wanted = np.isin(corpus.kind, [KINDS.index(NodeKind.CLASS), KINDS.index(NodeKind.FUNCTION)])
    hashes: NDArray[np.uint64] = np.zeros(corpus.n_docs, np.uint64)
    first = 0
    for segment in corpus.segments:
        hashes[segment.columns["name.doc"].astype(np.int64) + first] = segment.columns["name.hash"]
        first += segment.n_docs
    tails = [segment.columns["tail.hash"] for segment in corpus.segments]
    used, n_uses = np.unique(np.concatenate(tails), return_counts=True) if tails else (hashes[:0], hashes[:0])
    names, n_bearers = np.unique(hashes[corpus.live], return_counts=True)
    uses = dict(zip(used.tolist(), n_uses.tolist(), strict=True))
    bearers = dict(zip(names.tolist(), n_bearers.tolist(), strict=True))
    found = {}
    for path in paths:
        rows = []
        for doc in corpus.file_docs(corpus.file_numbers[path]):
            if wanted[doc]:
                name = int(hashes[doc])
                weight = uses.get(name, 0) / bearers.get(name, 1) + float(corpus.length[doc]) / 10_000
                rows.append((doc, weight))
        found[path] = sorted(rows, key=lambda row: (-row[1], row[0]))[:STRONGEST]
    return found
