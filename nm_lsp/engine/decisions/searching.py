"""Searching decisions by words, by meaning, or both merged by reciprocal rank.

Guarantees: only what is ACTIVE at HEAD is found unless the caller asks for more, by the verdicts of the look and by
nothing stored; every row carries its status. Where git cannot answer, decisions that nobody invalidated are returned,
each labelled unknown. Equal questions over equal decisions get equal answers.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.base.wording import counted
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
POOL: Final = 200
"""How deep each ranking is merged. What lies deeper in one adds less to a score than any two neighbours differ by."""

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
        notices = []
        if look.git_problem is not None:
            notices.append(GIT_SILENT.format(look.git_problem.message))
        by_words: list[DecisionId] = []
        by_meaning: list[DecisionId] | None = []
        if params.mode != "semantic":
            by_words = self._by_words(look, params, notices)
        cancel.check()
        if params.mode != "keyword":
            by_meaning = self._by_meaning(look, params, notices)
            if by_meaning is None:
                notices.append(NO_MODEL)
        cancel.check()
        if by_meaning is None and params.mode == "semantic":
            by_words = self._by_words(look, params, notices)
        ids = sorted({*by_words, *(by_meaning or ())}, key=lambda i: (look.records[i].recorded_at, i), reverse=True)
        numbers = {identity: number for number, identity in enumerate(ids)}
        legs = [Leg([numbers[i] for i in leg]) for leg in (by_words, by_meaning or ())]
        fused = fuse(legs)[: params.limit]
        found = [ids[entry.doc] for entry in fused]
        describer = Describer.of(self._tree, look, prefix, found)
        hits = tuple(
            DecisionHit(describer.row(identity), round(entry.score, 4), entry.ranks[0], entry.ranks[1])
            for identity, entry in zip(found, fused, strict=True)
        )
        return DecisionSearchResult(hits, tuple(notices))

    def _by_words(self, look: Look, params: DecisionSearchParams, notices: list[str]) -> list[DecisionId]:
        store = self._tree.keeper.store()
        if store is None:
            return []
        matches, has_fts = store.search(content_words(params.query))
        if not has_fts and not self._said_no_fts:
            self._said_no_fts = True
            notices.append(NO_FTS)
        scores = {match.decision: match.score for match in matches}
        return _best(scores, look, params)

    def _by_meaning(self, look: Look, params: DecisionSearchParams, notices: list[str]) -> list[DecisionId] | None:
        """Those from the floor of the cosine on; None without a model."""
        if self._nearness.model is None:
            return None
        asked = self._nearness.vectors([params.query])
        embedded = self._vectors.of(look.records, wait_s=self._wait_s) if asked is not None else None
        if asked is None or embedded is None:
            return None
        if embedded.n_missing:
            notices.append(
                f"{counted(embedded.n_missing, 'decision')} had no vector yet and could be found by words alone; "
                "vectors are being made."
            )
        if not embedded.ids:
            return []
        cosines = embedded.matrix @ asked[0]
        rows = (cosines >= MIN_COSINE).nonzero()[0].tolist()
        return _best({embedded.ids[row]: float(cosines[row]) for row in rows}, look, params)


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


def _best(scores: Mapping[DecisionId, float], look: Look, params: DecisionSearchParams) -> list[DecisionId]:
    """The decisions of one ranking that may be found, best first, the newer of two equal ones first."""
    known = [identity for identity in scores if _is_wanted(look, identity, params)]
    return heapq.nlargest(max(POOL, params.limit), known, key=lambda i: (scores[i], look.records[i].recorded_at, i))


def _is_wanted(look: Look, identity: DecisionId, params: DecisionSearchParams) -> bool:
    """Whether a decision may be found. Without a stated confidence, it stays below every floor."""
    record = look.records.get(identity)
    if record is None:
        return False
    confidence = record.decision.confidence
    if params.min_confidence is not None and (confidence is None or confidence < params.min_confidence):
        return False
    status = look.verdicts[identity].status
    match params.status:
        case "active":
            return status is Status.ACTIVE or (status is Status.UNKNOWN and record.standing is Standing.ACTIVE)
        case "all":
            return True
        case _:
            return status.value == params.status
