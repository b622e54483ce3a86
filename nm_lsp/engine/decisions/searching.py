"""Searching decisions by words, by meaning, or both merged by reciprocal rank.

Guarantees: only what is ACTIVE at HEAD is found unless the caller asks for more, by the verdicts of the look and by
nothing stored; every row carries its status. Where git cannot answer, decisions that nobody invalidated are returned,
each labelled unknown. Equal questions over equal decisions get equal answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.decisions.fold import Standing
from nm_lsp.decisions.model import DecisionId
from nm_lsp.decisions.verdicts import Status
from nm_lsp.engine.decision_requests import DecisionHit, DecisionSearchParams, DecisionSearchResult
from nm_lsp.engine.decisions.anchoring import Prefix
from nm_lsp.engine.decisions.rows import Describer
from nm_lsp.engine.decisions.similar import Nearness
from nm_lsp.engine.decisions.vectors import WAIT_S, DecisionVectors
from nm_lsp.engine.decisions.worktree import Look, WorkTree
from nm_lsp.search.fusion import Leg, fuse
from nm_lsp.search.tokens import STOP_WORDS

MODES: Final = ("hybrid", "keyword", "semantic")
STATUSES: Final = ("active", "stale", "invalidated", "all")
MIN_COSINE: Final = 0.30
MAX_QUERY: Final = 2_000
MAX_LIMIT: Final = 100

NO_MODEL: Final = "There are no model weights, so decisions were searched by words alone (`nm-lsp model install`)."
NO_FTS: Final = "This SQLite has no full-text search, so words were looked for as plain text."
GIT_SILENT: Final = "Git cannot answer, so nobody knows which of these decisions hold: {}"


class DecisionSearch:
    """The search of one work tree's decisions. Thread-safe."""

    def __init__(self, tree: WorkTree, nearness: Nearness, *, wait_s: float = WAIT_S) -> None:
        """`wait_s`: how long a question may wait for missing vectors."""
        self._wait_s = wait_s
        self._tree = tree
        self._nearness = nearness
        self._vectors = DecisionVectors(lambda: tree.keeper, nearness)
        self._said_no_fts = False

    def search(
        self, look: Look, prefix: Prefix, params: DecisionSearchParams, cancel: Cancellation
    ) -> DecisionSearchResult:
        """The best `limit` decisions, best first. Raises `InvalidInput`."""
        _check(params)
        wanted = _wanted(look, params)
        notices = []
        if look.git_problem is not None:
            notices.append(GIT_SILENT.format(look.git_problem.message))
        numbers = {identity: number for number, identity in enumerate(look.records)}
        by_words: dict[DecisionId, float] = {}
        by_meaning: dict[DecisionId, float] | None = {}
        if params.mode != "semantic":
            by_words = self._by_words(params.query, wanted, notices)
        cancel.check()
        if params.mode != "keyword":
            by_meaning = self._by_meaning(look, params.query, wanted, notices)
            if by_meaning is None:
                notices.append(NO_MODEL)
        cancel.check()
        if by_meaning is None and params.mode == "semantic":
            by_words = self._by_words(params.query, wanted, notices)
        legs = [_ranked(by_words, numbers), _ranked(by_meaning or {}, numbers)]
        fused = fuse([Leg(leg) for leg in legs])[: params.limit]
        ids = list(look.records)
        found = [ids[entry.doc] for entry in fused]
        describer = Describer.of(self._tree, look, prefix, found)
        hits = tuple(
            DecisionHit(describer.row(identity), round(entry.score, 4), entry.ranks[0], entry.ranks[1])
            for identity, entry in zip(found, fused, strict=True)
        )
        return DecisionSearchResult(hits, tuple(notices))

    def _by_words(self, query: str, wanted: Mapping[DecisionId, None], notices: list[str]) -> dict[DecisionId, float]:
        store = self._tree.keeper.store()
        if store is None:
            return {}
        matches, has_fts = store.search(content_words(query))
        if not has_fts and not self._said_no_fts:
            self._said_no_fts = True
            notices.append(NO_FTS)
        return {match.decision: match.score for match in matches if match.decision in wanted}

    def _by_meaning(
        self, look: Look, query: str, wanted: Mapping[DecisionId, None], notices: list[str]
    ) -> dict[DecisionId, float] | None:
        """Cosines from the floor on; None without a model."""
        if self._nearness.model is None:
            return None
        asked = self._nearness.vectors([query])
        embedded = self._vectors.of(look.records, wait_s=self._wait_s) if asked is not None else None
        if asked is None or embedded is None:
            return None
        if embedded.n_missing:
            notices.append(
                f"{embedded.n_missing:,} decisions have no vector yet and were searched by words alone; "
                "they are being made."
            )
        if not embedded.ids:
            return {}
        cosines = embedded.matrix @ asked[0]
        rows = (cosines >= MIN_COSINE).nonzero()[0].tolist()
        return {embedded.ids[row]: float(cosines[row]) for row in rows if embedded.ids[row] in wanted}


def content_words(query: str) -> str:
    """`query` without words that say nothing by themselves; as it is where it has no others."""
    words = [word for word in query.split() if word.strip("?!.,;:()\"'").casefold() not in STOP_WORDS]
    return " ".join(words) if words else query


def _check(params: DecisionSearchParams) -> None:
    if not params.query.strip():
        raise InvalidInput("query", "must not be empty.")
    if len(params.query) > MAX_QUERY:
        raise InvalidInput("query", f"has {len(params.query):,} characters; at most {MAX_QUERY:,} are allowed.")
    if params.mode not in MODES:
        raise InvalidInput("mode", f"{params.mode[:40]!r} is not one of {', '.join(MODES)}.")
    if params.status not in STATUSES:
        raise InvalidInput("status", f"{params.status[:40]!r} is not one of {', '.join(STATUSES)}.")
    if not 1 <= params.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"{params.limit} is not between 1 and {MAX_LIMIT}.")
    floor = params.min_confidence
    if floor is not None and not (math.isfinite(floor) and 0 <= floor <= 1):
        raise InvalidInput("minConfidence", "must be a number from 0 to 1.")


def _wanted(look: Look, params: DecisionSearchParams) -> dict[DecisionId, None]:
    """The decisions that may be found. Without a stated confidence, a decision stays below every floor."""
    wanted: dict[DecisionId, None] = {}
    for identity, record in look.records.items():
        confidence = record.decision.confidence
        if params.min_confidence is not None and (confidence is None or confidence < params.min_confidence):
            continue
        status = look.verdicts[identity].status
        match params.status:
            case "active":
                is_wanted = status is Status.ACTIVE or (status is Status.UNKNOWN and record.standing is Standing.ACTIVE)
            case "all":
                is_wanted = True
            case _:
                is_wanted = status.value == params.status
        if is_wanted:
            wanted[identity] = None
    return wanted


def _ranked(scores: Mapping[DecisionId, float], numbers: Mapping[DecisionId, int]) -> Sequence[int]:
    """Numbers of decisions, best first; the newer of two equal ones first."""
    known = [identity for identity in scores if identity in numbers]
    return [numbers[i] for i in sorted(known, key=lambda i: (-scores[i], -numbers[i]))]
