"""Questions answered over a snapshot: the legs put together, the hits written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import EnvironmentProblem, InvalidInput
from nm_lsp.engine.memory.recall import MORE_LOOKED_AT, Recall
from nm_lsp.engine.query_embedding import QueryEmbedder
from nm_lsp.engine.requests import (
    CandidateTrace,
    Hit,
    Missing,
    Place,
    Ranks,
    Relevance,
    RelevanceParams,
    RelevanceResult,
    SearchParams,
    SearchResult,
)
from nm_lsp.engine.settings import Settings
from nm_lsp.engine.snapshot import Snapshot
from nm_lsp.engine.texts import SourceTexts, TextState
from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.question import Question
from nm_lsp.search.ranking import Candidate, RankedResult
from nm_lsp.search.ranking import search as ranked_search
from nm_lsp.search.snippet import snippet
from nm_lsp.search.token_count import TokenCount

MAX_QUERY = 2_000
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True)
class View:
    """All that one answer is made from."""

    folder: Path
    snapshot: Snapshot
    missing: tuple[Missing, ...]
    settings: Settings
    embedder: QueryEmbedder
    use_keyword: bool
    texts: SourceTexts
    recall: Recall | None = None


def checked_query(query: str) -> str:
    """Raises `InvalidInput` for an empty or an oversized question."""
    text = query.strip()
    if not text:
        raise InvalidInput("query", "the question is empty", hint="Say what you look for, in words or as a name.")
    if len(text) > MAX_QUERY:
        raise InvalidInput("query", f"the question has {len(text):,} characters; at most {MAX_QUERY:,} are taken")
    return text


def ranked(
    view: View,
    query: str,
    limit: int,
    cancel: Cancellation,
    *,
    kinds: Sequence[NodeKind] | None = None,
    path: str | None = None,
) -> RankedResult:
    """The ranking of both legs, with what its first hits recall. Hits whose file is gone from the disk are left out.

    Raises `EnvironmentProblem` where neither leg can answer.
    """
    if not view.use_keyword and view.embedder.files is None:
        raise EnvironmentProblem(
            "Nothing can be searched: keyword search is switched off, and there is no model for search by meaning.",
            hint="Unset NEURALMIND_BM25, or run `nm-lsp model install` with `model.enabled` as it is by default.",
        )
    recall = view.recall if view.recall is not None and not view.recall.is_empty and path is None else None
    result = ranked_search(
        view.snapshot.corpus,
        query,
        limit=limit if recall is None else limit + MORE_LOOKED_AT,
        kinds=kinds,
        path=path,
        vector_leg=_vector_leg(view),
        rrf_k=view.settings.search.rrf_k,
        use_keyword=view.use_keyword,
        unseen=_unseen(view),
        cancel=cancel,
    )
    candidates = result.candidates
    if recall is not None:
        allowed = frozenset(kind.value for kind in kinds) if kinds is not None else None
        candidates = recall.rerank(view.snapshot.corpus, candidates, limit, allowed)
    kept = tuple(c for c in candidates if view.texts.state(c.node.path) is not TextState.GONE)
    return RankedResult(result.question, kept, result.n_considered, result.confidence)


def _unseen(view: View) -> NDArray[np.bool_] | None:
    """The docs whose vectors are still being made; None where all are there."""
    if Missing.VECTORS not in view.missing:
        return None
    rows = view.snapshot.vectors
    return rows.unseen if rows is not None else np.zeros(view.snapshot.corpus.n_docs, np.bool_)


def _vector_leg(view: View) -> Callable[[str, int], tuple[NDArray[np.int32], NDArray[np.float32]]] | None:
    rows = view.snapshot.vectors
    if rows is None or not rows.n_done or view.embedder.files is None:
        return None

    def leg(question: str, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        vector = view.embedder.embed(question)
        if vector is None:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        docs, cosines = rows.search(vector, k)
        near = cosines >= view.settings.search.cosine_floor
        return docs[near], cosines[near]

    return leg


def search(view: View, params: SearchParams, cancel: Cancellation) -> SearchResult:
    query = checked_query(params.query)
    if not 1 <= params.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"{params.limit} is not between 1 and {MAX_LIMIT}")
    result = ranked(view, query, params.limit, cancel, kinds=_kinds(params.kinds), path=params.path)
    count = view.embedder.token_count()
    fired = synapse_ranks(result.candidates)
    hits = tuple(hit_of(view, c, result.question, count, fired.get(c.doc)) for c in result.candidates)
    return SearchResult(hits, partial_of(view))


def _kinds(names: Sequence[str] | None) -> list[NodeKind] | None:
    if names is None:
        return None
    known = {kind.value: kind for kind in NodeKind}
    for name in names:
        if name not in known:
            raise InvalidInput("kinds", f"{name!r} is no kind of symbol", hint=f"Known kinds: {', '.join(known)}.")
    return [known[name] for name in names]


def synapse_ranks(candidates: Sequence[Candidate]) -> dict[int, int]:
    """Doc → its 1-based rank among the hits that synapses lifted or brought."""
    fired = sorted((c for c in candidates if c.synapse_boost > 0), key=lambda c: (-c.synapse_boost, c.node.id))
    return {candidate.doc: rank for rank, candidate in enumerate(fired, 1)}


def hit_of(
    view: View, candidate: Candidate, question: Question, count: TokenCount, synapse_rank: int | None = None
) -> Hit:
    node = candidate.node
    text = snippet(node, body_of(view, node), question, count)
    return Hit(
        id=node.id,
        place=Place(node.path, node.span),
        kind=node.kind.value,
        name=node.name,
        signature=node.signature,
        score=round(candidate.score, 4),
        text=text,
        ranks=Ranks(candidate.keyword_rank, candidate.vector_rank, synapse_rank),
    )


def body_of(view: View, node: Node) -> str:
    """The source of a node's span; "" where it cannot be read as it was indexed."""
    text = view.texts.read(node.path)
    if text is None:
        return ""
    if text.isascii():
        return text[node.span.start_byte : node.span.end_byte]
    return text.encode("utf-8", "replace")[node.span.start_byte : node.span.end_byte].decode("utf-8", "replace")


def partial_of(view: View) -> tuple[Missing, ...]:
    """What the answer had to do without; a source that changed since it was indexed counts as a missing index."""
    missing = set(view.missing)
    if view.texts.changed:
        missing.add(Missing.INDEX)
    return tuple(kind for kind in Missing if kind in missing)


def relevance(view: View, params: RelevanceParams, cancel: Cancellation) -> RelevanceResult:
    query = checked_query(params.query)
    if not 1 <= params.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"{params.limit} is not between 1 and {MAX_LIMIT}")
    result = ranked(view, query, params.limit, cancel)
    rows = tuple(Relevance(c.node.id, Place(c.node.path, c.node.span), trace_of(c)) for c in result.candidates)
    return RelevanceResult(rows, partial_of(view))


def trace_of(candidate: Candidate) -> CandidateTrace:
    return CandidateTrace(
        id=candidate.node.id,
        keyword_rank=candidate.keyword_rank,
        keyword_score=candidate.keyword_score,
        vector_rank=candidate.vector_rank,
        vector_score=candidate.vector_score,
        fused=candidate.fused,
        synapse_boost=candidate.synapse_boost,
        adjustments=candidate.adjustments,
        score=candidate.score,
    )
