"""A question in, ranked candidates out: two legs, fusion, explainable adjustments, a floor, one place for each file.

Deterministic: the same corpus, question and boosts give the same list; ties go by path, then by position. Knows no
embedder: the vector leg is a function of the question's text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.confidence import WORDS_SUFFICE, confidence, coverage
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.features import Evidence, Pool, factors, logarithms, weigh
from nm_lsp.search.fusion import DEFAULT_K, Fused, Leg, fuse
from nm_lsp.search.keyword import KeywordScores, keyword_scores
from nm_lsp.search.question import Question, QuestionKind, understand
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.segment import KINDS

VectorLeg = Callable[[str, int], tuple[NDArray[np.int32], NDArray[np.float32]]]
"""Question and k to the k nearest docs, best first, and their cosines."""

KEYWORD_DEPTH: Final = 150
VECTOR_DEPTH: Final = 150
VECTOR_SEARCHED: Final = 500
"""Neighbours asked for; the best of them by role make the leg."""
OTHER_ROLE: Final = 0.7
"""What a score keeps in tests, documentation and the like, unless the question asks for them."""
MEMBERS_LOOKED_AT: Final = 80
OWNER_SHARE: Final = 0.6
"""A class that only its member brought in starts with this part of the member's fused score."""
POOL: Final = 100
"""Candidates that are looked at closely, unless more are asked for: twice as many find nothing more."""

MAX_NAMESAKES: Final = 40

COSINE_FLOOR: Final = 0.25
"""Below it a vector says nothing: unrelated English and code reach 0.2."""

VECTOR_WEIGHT: Final[Mapping[QuestionKind, float]] = {
    QuestionKind.IDENTIFIER: 0.3,
    QuestionKind.PATH: 0.0,
    QuestionKind.WORDS: 0.7,
    QuestionKind.SENTENCE: 0.8,
}

HALF_SCORE: Final = 12.0
"""The product of fused score, boost and factors that is shown as 0.5."""

LISTED: Final = "its file is listed already"
SAME_FILE_FACTOR: Final = 0.9
"""A further hit of a file already listed counts so much less, again for each one more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ranked doc. `score` in [0, 1] is made of `fused`, the boost and the `adjustments` (name, factor)."""

    doc: int
    node: Node
    keyword_rank: int | None
    keyword_score: float | None
    vector_rank: int | None
    vector_score: float | None
    fused: float
    synapse_boost: float
    adjustments: tuple[tuple[str, float], ...]
    score: float
    matched: tuple[str, ...]
    """Words of the question found in it, rarest first."""
    coverage: float
    """Their share of the question, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class RankedResult:
    """`confidence` in [0, 1] says how sure it is that the question is answered here at all."""

    question: Question
    candidates: tuple[Candidate, ...]
    n_considered: int
    confidence: float


def search(
    corpus: Corpus,
    query: str,
    *,
    limit: int = 10,
    kinds: Sequence[NodeKind] | None = None,
    path: str | None = None,
    vector_leg: VectorLeg | None = None,
    synapse_boost: Mapping[int, float] | None = None,
    rrf_k: int = DEFAULT_K,
    use_keyword: bool = True,
    unseen: NDArray[np.bool_] | None = None,
    cancel: Cancellation | None = None,
) -> RankedResult:
    """The best `limit` docs for `query`, or none where nothing answers it.

    `kinds` and `path` (a file or folder, relative to the corpus' root) restrict the answer. `synapse_boost` maps docs
    to additions in [0, 1]: a doc's score is multiplied by 1 + boost. `use_keyword=False` leaves the vector leg alone.
    `unseen` are the docs whose vectors are still being made: that the vector leg is silent about them is no evidence.
    Raises `Cancelled`.
    """
    question = understand(query)
    gathered = gather(
        corpus,
        question,
        _allowed(corpus, kinds, path),
        vector_leg,
        limit=limit,
        rrf_k=rrf_k,
        use_keyword=use_keyword,
        unseen=unseen,
        cancel=cancel,
    )
    if gathered is None:
        return RankedResult(question, (), 0, 0.0)
    sure = (
        1.0 if gathered.n_named else _confidence(corpus, gathered, question, vector_leg is not None and unseen is None)
    )
    if sure < 0.5:
        return RankedResult(question, (), gathered.n_considered, sure)
    boosts = synapse_boost or {}
    files = corpus.file[gathered.pool.docs].tolist()
    candidates = tuple(
        _candidate(gathered, row, raw, factor, _boost(boosts, gathered.entries[row].doc))
        for raw, row, factor in _spread(files, _ranked(gathered, boosts), limit)
    )
    return RankedResult(question, candidates, gathered.n_considered, sure)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What both legs found, before any adjustment; `entries` run parallel to the pool."""

    pool: Pool
    entries: tuple[Fused, ...]
    keyword: KeywordScores
    evidence: Evidence
    nearest: float
    n_considered: int
    n_named: int


def gather(
    corpus: Corpus,
    question: Question,
    allowed: NDArray[np.bool_],
    vector_leg: VectorLeg | None,
    *,
    limit: int = POOL,
    rrf_k: int = DEFAULT_K,
    use_keyword: bool = True,
    unseen: NDArray[np.bool_] | None = None,
    cancel: Cancellation | None = None,
) -> Gathered | None:
    """Run the legs, fuse them and look closely at the best; None where neither leg returns anything."""
    keyword = keyword_scores(corpus, question.concepts if use_keyword else (), cancel)
    role_weights = _role_weights(corpus, question.wants)
    keyword_docs = _best(keyword.scores * role_weights, allowed, KEYWORD_DEPTH) if use_keyword else _NO_DOCS
    vector_docs, cosines, nearest = _nearest(question.text, vector_leg, allowed, role_weights)
    if cancel is not None:
        cancel.check()
    missing = frozenset(keyword_docs[unseen[keyword_docs]].tolist()) if unseen is not None else frozenset()
    weight = VECTOR_WEIGHT[question.kind] if use_keyword else 1.0
    legs = (Leg(keyword_docs.tolist()), Leg(vector_docs.tolist(), weight, missing))
    named = _named(corpus, question, allowed, keyword.scores * role_weights) if use_keyword else []
    fused = _with_named(fuse(legs, rrf_k), named)
    if not fused:
        return None
    size = max(POOL, limit)
    entries = (*fused[:size], *_owners(corpus, fused, size, allowed))
    docs = np.array([entry.doc for entry in entries], np.int32)
    known = dict(zip(vector_docs.tolist(), cosines.tolist(), strict=True))
    if missing and known:
        # As near as the found ones are on average.
        known |= dict.fromkeys(missing, float(cosines.mean()))
    pool = Pool(
        docs,
        [corpus.node(doc) for doc in docs.tolist()],
        np.array([known.get(doc, np.nan) for doc in docs.tolist()], np.float32),
    )
    files_named = frozenset(named if question.kind is QuestionKind.PATH else ())
    evidence = weigh(corpus, question, pool, keyword, COSINE_FLOOR, files_named)
    return Gathered(pool, entries, keyword, evidence, nearest, len(fused), len(named))


def _confidence(corpus: Corpus, gathered: Gathered, question: Question, with_vectors: bool) -> float:
    if question.kind is QuestionKind.PATH:
        # A path that names no file is answered only where it was none ("async/await") and its words are all there.
        return 0.5 * coverage(corpus, gathered.keyword) / WORDS_SUFFICE
    return confidence(gathered.nearest, corpus, gathered.keyword, with_vectors=with_vectors)


def _allowed(corpus: Corpus, kinds: Sequence[NodeKind] | None, path: str | None) -> NDArray[np.bool_]:
    allowed = corpus.live
    if kinds is not None:
        allowed = allowed & np.isin(corpus.kind, [KINDS.index(kind) for kind in kinds])
    if path:
        folder = path.rstrip("/")
        files = [
            number
            for name, number in corpus.file_numbers.items()
            if name == folder or name.startswith(f"{folder}/") or folder == "."
        ]
        allowed = allowed & np.isin(corpus.file, files)
    return allowed


def _best(scores: NDArray[np.float32], allowed: NDArray[np.bool_], k: int) -> NDArray[np.int32]:
    """The k best docs of positive score; equal scores in the order of doc numbers."""
    docs = np.flatnonzero((scores > 0) & allowed)
    if len(docs) > k:
        # Everything tied with the k-th stays in, so that the cut does not depend on how the partition falls.
        threshold = np.partition(scores[docs], len(docs) - k)[len(docs) - k]
        docs = docs[scores[docs] >= threshold]
    return docs[np.argsort(-scores[docs], kind="stable")][:k].astype(np.int32)


def _nearest(
    text: str, vector_leg: VectorLeg | None, allowed: NDArray[np.bool_], role_weights: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32], float]:
    """Docs of the leg, their cosines, and the largest cosine of all, allowed or not."""
    if vector_leg is None or not text.strip():
        return _NO_DOCS, np.zeros(0, np.float32), 0.0
    docs, cosines = vector_leg(text, VECTOR_SEARCHED)
    nearest = float(cosines.max(initial=0.0))
    keep = (cosines >= COSINE_FLOOR) & allowed[docs]
    docs, cosines = docs[keep], cosines[keep]
    order = np.lexsort((docs, -cosines * role_weights[docs]))[:VECTOR_DEPTH]
    return docs[order], cosines[order], nearest


def _role_weights(corpus: Corpus, wants: frozenset[Role]) -> NDArray[np.float32]:
    """Per doc what its file's role leaves of a score, so that a large test suite does not fill both legs."""
    roles = _ROLES_OF.get(corpus)
    if roles is None:
        roles = np.zeros(corpus.n_files, np.int8)
        for path, number in corpus.file_numbers.items():
            roles[number] = ROLES.index(role_of(path))
        _ROLES_OF[corpus] = roles
    weights = np.array([1.0 if role is Role.SOURCE or role in wants else OTHER_ROLE for role in ROLES], np.float32)
    per_doc: NDArray[np.float32] = weights[roles][corpus.file]
    return per_doc


def _owners(corpus: Corpus, fused: Sequence[Fused], size: int, allowed: NDArray[np.bool_]) -> list[Fused]:
    """Classes whose members are among the best hits but which neither leg found: they hold little text of their own."""
    taken = {entry.doc for entry in fused[:size]}
    by_doc = {entry.doc: entry for entry in fused[size:]}
    owners: dict[int, Fused] = {}
    for entry in fused[:MEMBERS_LOOKED_AT]:
        parent = int(corpus.parent[entry.doc])
        if parent in taken or parent in owners or parent < 0 or not allowed[parent]:
            continue
        if KINDS[int(corpus.kind[parent])] is NodeKind.CLASS:
            owners[parent] = by_doc.get(parent) or Fused(parent, (None, None), entry.score * OWNER_SHARE)
    return list(owners.values())


def _named(corpus: Corpus, question: Question, allowed: NDArray[np.bool_], scores: NDArray[np.float32]) -> list[int]:
    """Docs that the question names outright, those that match it best first: definitions by name, files by path.

    A name with more definitions than `MAX_NAMESAKES` (`__init__`) points nowhere, unless it is the whole question.
    """
    if question.kind is QuestionKind.PATH:
        wanted = question.text.strip().strip("`").lstrip("./").rstrip("/").lower()
        files = [
            number
            for path, number in corpus.file_numbers.items()
            if path.lower() == wanted or path.lower().endswith(f"/{wanted}")
        ]
        docs = [corpus.file_docs(number).start for number in files]
    else:
        docs = []
        for name in question.names:
            found = corpus.defined(name).tolist()
            if question.kind is QuestionKind.IDENTIFIER or len(found) <= MAX_NAMESAKES:
                docs.extend(found)
    ordered = sorted({doc for doc in docs if allowed[doc]}, key=lambda doc: (-float(scores[doc]), doc))
    return ordered[:MAX_NAMESAKES]


def _with_named(fused: list[Fused], named: Sequence[int]) -> list[Fused]:
    """Named docs go first into the pool, whatever the legs thought of them."""
    by_doc = {entry.doc: entry for entry in fused}
    first = [by_doc.get(doc) or Fused(doc, (None, None), 1 / (DEFAULT_K + 1)) for doc in named]
    taken = set(named)
    return [*first, *(entry for entry in fused if entry.doc not in taken)]


def _ranked(gathered: Gathered, boosts: Mapping[int, float]) -> list[tuple[float, int]]:
    """(product of fused score, boost and factors; row of the pool), best first."""
    products = logarithms(gathered.evidence.values).tolist()
    scored = []
    for row, entry in enumerate(gathered.entries):
        raw = entry.score * math.exp(products[row]) * (1 + _boost(boosts, entry.doc))
        scored.append((raw, row))
    nodes = gathered.pool.nodes
    return sorted(scored, key=lambda pair: (-pair[0], nodes[pair[1]].path, nodes[pair[1]].span.start_byte, pair[1]))


def _boost(boosts: Mapping[int, float], doc: int) -> float:
    return min(1.0, max(0.0, boosts.get(doc, 0.0)))


def _spread(
    files: Sequence[int], ranked: Sequence[tuple[float, int]], limit: int
) -> Iterator[tuple[float, int, float]]:
    """(score, row, factor), greedy: the best next, where each one listed from its file costs it `SAME_FILE_FACTOR`."""
    seen: dict[int, int] = {}
    waiting = list(ranked)
    for _ in range(min(limit, len(waiting))):
        best, best_at, best_factor = -1.0, 0, 1.0
        for at, (score, row) in enumerate(waiting):
            if score <= best:
                break  # Sorted, and no factor exceeds 1: nothing behind can be better.
            factor = SAME_FILE_FACTOR ** seen.get(files[row], 0)
            if score * factor > best:
                best, best_at, best_factor = score * factor, at, factor
        _, row = waiting.pop(best_at)
        seen[files[row]] = seen.get(files[row], 0) + 1
        yield best, row, best_factor


def _candidate(gathered: Gathered, row: int, raw: float, spread: float, boost: float) -> Candidate:
    entry, evidence = gathered.entries[row], gathered.evidence
    keyword_rank, vector_rank = entry.ranks
    cosine = float(gathered.pool.cosines[row])
    held = evidence.held[:, row]
    adjustments = factors(evidence.values[row])
    return Candidate(
        doc=entry.doc,
        node=gathered.pool.nodes[row],
        keyword_rank=keyword_rank,
        keyword_score=float(gathered.keyword.scores[entry.doc]) if keyword_rank is not None else None,
        vector_rank=vector_rank,
        # One that was only reckoned for a doc without a vector is no measurement.
        vector_score=None if vector_rank is None or math.isnan(cosine) else cosine,
        fused=entry.score,
        synapse_boost=boost,
        adjustments=adjustments if spread == 1 else (*adjustments, (LISTED, spread)),
        score=raw / (raw + HALF_SCORE),
        matched=tuple(
            evidence.concepts[number].word for number in np.argsort(-evidence.shares, kind="stable") if held[number]
        ),
        coverage=float(evidence.shares @ held),
    )


# Roles by file of each live corpus. A corpus is immutable, so that an entry never goes stale.
_ROLES_OF: Final[WeakKeyDictionary[Corpus, NDArray[np.int8]]] = WeakKeyDictionary()
ROLES: Final = tuple(Role)
_NO_DOCS: Final = np.zeros(0, np.int32)
