"""The graph of a snapshot as a whole: counted, written out, checked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.base.uris import checked_path
from nm_lsp.engine.exporting import export_target, write_target
from nm_lsp.engine.requests import (
    CommunityRow,
    Count,
    GraphExportParams,
    GraphExportResult,
    GraphValidateParams,
    GraphValidateResult,
    Progress,
    StatsResult,
)
from nm_lsp.engine.snapshot import Snapshot
from nm_lsp.graph.communities import Community
from nm_lsp.graph.interchange import Graph, from_json, to_json, validate
from nm_lsp.graph.model import Confidence, Edge, EdgeKind, NodeId
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import EDGE_KINDS, KINDS

EXPORT_FOLDER = ".neuralmind/lsp"
_CHECK_EVERY = 200


def stats(snapshot: Snapshot, index_bytes: int, model: str, cancel: Cancellation) -> StatsResult:
    corpus = snapshot.corpus
    languages = Counter(corpus.file_language(file) for file in corpus.file_numbers.values())
    kinds = Counter(dict(enumerate(np.bincount(corpus.kind[corpus.live], minlength=len(KINDS)).tolist())))
    cancel.check()
    topics = []
    for topic in corpus.topics:
        files = [corpus.file_numbers[path] for path in topic.files if path in corpus.file_numbers]
        n_symbols = sum(len(corpus.file_docs(file)) for file in files)
        topics.append(CommunityRow(topic.id, topic.title, len(files), n_symbols))
    topics.sort(key=lambda row: (-row.symbols, row.id))
    vectors = snapshot.vectors
    return StatsResult(
        files=corpus.n_live_files,
        symbols=corpus.n_live,
        index_revision=snapshot.manifest.generation,
        index_bytes=index_bytes,
        languages=_counts(languages),
        kinds=_counts(Counter({KINDS[row].value: n for row, n in kinds.items() if n})),
        edges=_counts(_stored_uses(corpus)),
        communities=tuple(topics),
        vectors=Progress(vectors.n_done, vectors.n_wanted) if vectors else Progress(0, 0),
        vector_search="annoy" if snapshot.manifest.annoy else "exact",
        model=model,
    )


def _counts(counter: Counter[str]) -> tuple[Count, ...]:
    return tuple(Count(name, n) for name, n in sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def _stored_uses(corpus: Corpus) -> Counter[str]:
    """Uses by kind as they are stored, before resolution; constructions count as calls here."""
    counts: Counter[str] = Counter()
    first = 0
    for segment in corpus.segments:
        alive = corpus.live[segment.columns["ref.source"].astype(np.int64) + first]
        rows = np.bincount(segment.columns["ref.kind"][alive], minlength=len(EDGE_KINDS)).tolist()
        counts.update({EDGE_KINDS[row].value: n for row, n in enumerate(rows) if n})
        counts["imports"] += len(segment.columns["import.line"])
        first += segment.n_docs
    counts["contains"] = int((corpus.parent[corpus.live] >= 0).sum())
    return counts


def graph_of(corpus: Corpus, cancel: Cancellation) -> Graph:
    """All live nodes, every edge resolved. Seconds for a large workspace: resolution is done here and not before."""
    nodes, edges = [], dict[tuple[NodeId, NodeId, EdgeKind], Confidence]()
    ids: dict[int, NodeId] = {}
    for _, file in sorted(corpus.file_numbers.items()):
        for doc in corpus.file_docs(file):
            node = corpus.node(doc)
            ids[doc] = node.id
            nodes.append(node)
    for n_done, doc in enumerate(ids):
        if n_done % _CHECK_EVERY == 0:
            cancel.check()
        parent = int(corpus.parent[doc])
        if parent >= 0:
            edges[ids[parent], ids[doc], EdgeKind.CONTAINS] = Confidence.RESOLVED
        for _, targets in corpus.references_from(doc):
            for target in targets:
                if target.doc != doc:
                    edges.setdefault((ids[doc], ids[target.doc], target.kind), target.confidence)
    for file in corpus.file_numbers.values():
        source = ids[corpus.file_docs(file).start]
        for target_file in corpus.resolver.imported_files(file):
            edges[source, ids[corpus.file_docs(target_file).start], EdgeKind.IMPORTS] = Confidence.RESOLVED
    rows = [Edge(source, target, kind, confidence) for (source, target, kind), confidence in edges.items()]
    rows.sort(key=lambda edge: (edge.source, edge.kind.value, edge.target))
    communities = tuple(Community(topic.id, topic.title, topic.files) for topic in corpus.topics)
    return Graph(tuple(nodes), tuple(rows), communities)


def export(folder: Path, corpus: Corpus, params: GraphExportParams, cancel: Cancellation) -> GraphExportResult:
    """Writes only inside the folder; an existing file is replaced only if it is a graph of ours."""
    target = _target(folder, params.to) if params.to is not None else None
    graph = graph_of(corpus, cancel)
    data = to_json(graph)
    if target is None:
        return GraphExportResult(len(graph.nodes), len(graph.edges), None, data)
    write_target(target, json.dumps(data, ensure_ascii=False))
    path = target.relative_to(folder).as_posix()
    return GraphExportResult(len(graph.nodes), len(graph.edges), path, None)


def _target(folder: Path, to: str) -> Path:
    target = export_target(folder, to)
    if target.exists():
        try:
            is_ours = not validate(json.loads(target.read_bytes()))
        except (OSError, ValueError, RecursionError):
            is_ours = False
        if not is_ours:
            raise Refused(f"{to} exists and is not a graph of ours.", hint="Name another file, or remove that one.")
    return target


def check(folder: Path, corpus: Corpus, params: GraphValidateParams, cancel: Cancellation) -> GraphValidateResult:
    """Holds a graph.json, or the folder's own graph, against the contract."""
    if params.path is None:
        data: object = to_json(graph_of(corpus, cancel))
    else:
        try:
            source = (folder / checked_path(params.path, "path")).resolve()
            if not source.is_relative_to(folder):
                raise InvalidInput("path", f"{params.path[:200]!r} lies outside the folder")
            data = json.loads(source.read_bytes())
        except FileNotFoundError as error:
            raise NotFound(f"{params.path} does not exist.") from error
        except (OSError, ValueError, RecursionError) as error:
            return GraphValidateResult(False, (f"it cannot be read as JSON: {error}",), 0, 0)
    problems = validate(data)
    if problems:
        return GraphValidateResult(False, tuple(f"{p.where}: {p.message}" for p in problems), 0, 0)
    graph = from_json(data)
    return GraphValidateResult(True, (), len(graph.nodes), len(graph.edges))
