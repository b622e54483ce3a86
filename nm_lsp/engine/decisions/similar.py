"""What a new decision is like: one of the same title, or one about the same things in nearly the same words.

Said when a decision is recorded, so that a double is seen at once, and first of all one that was invalidated before.
Costs one pass over the records in memory; texts are compared for the few decisions with the same anchors alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from nm_lsp.decisions.fold import DecisionRecord, Standing
from nm_lsp.decisions.model import Anchor, Decision, DecisionId
from nm_lsp.engine.decision_requests import Similar
from nm_lsp.engine.decisions.rows import Describer
from nm_lsp.engine.decisions.worktree import Look
from nm_lsp.engine.query_embedding import QueryEmbedder

Vectors = NDArray[np.float32]

MIN_COSINE: Final = 0.9
"""From where on two texts about the same things say the same."""
MAX_SHOWN: Final = 5
_MAX_COMPARED: Final = 3
"""Texts compared by the model, those that share most words first: each may cost 10 ms that the recording waits for."""


class Nearness(Protocol):
    """How near texts are in meaning, where there is a model. Thread-safe."""

    @property
    def model(self) -> str | None:
        """The name of the model whose vectors these are; None without one."""

    def vectors(self, texts: Sequence[str]) -> Vectors | None:
        """One row (384, length 1) a text; None without a model. Costs about 10 ms a text."""


class ModelNearness:
    """Nearness by the model that questions are embedded with."""

    def __init__(self, embedder: QueryEmbedder) -> None:
        self._embedder = embedder

    @property
    def model(self) -> str | None:
        files = self._embedder.files
        return files.model_id if files is not None else None

    def vectors(self, texts: Sequence[str]) -> Vectors | None:
        rows = []
        for text in texts:
            row = self._embedder.embed(text)
            if row is None:
                return None
            rows.append(row)
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def embedded_text(decision: Decision) -> str:
    """What of a decision is embedded: its title and rationale."""
    return f"{decision.title}\n{decision.rationale}"


def similar_rows(look: Look, found: Mapping[DecisionId, str], describer: Describer) -> tuple[Similar, ...]:
    """What `similar_to` found, as faces show it."""
    return tuple(Similar(describer.row(i), _sentence(look, i, why)) for i, why in found.items())


def similar_to(look: Look, identity: DecisionId, nearness: Nearness) -> dict[DecisionId, str]:
    """The decisions most like `identity` with what is alike, those that were invalidated first; five at most."""
    mine = look.records[identity]
    why: dict[DecisionId, str] = {}
    same_place = []
    title, anchors = _plain_title(mine.decision.title), frozenset(mine.decision.anchors)
    paths = frozenset(anchor.path for anchor in anchors)
    for other, record in look.records.items():
        if other == identity:
            continue
        if _plain_title(record.decision.title) == title:
            why[other] = "has the same title"
        elif _is_about(look, record, anchors, paths):
            same_place.append(record)
    for record, cosine in _near(mine, same_place, nearness):
        if cosine >= MIN_COSINE:
            why[record.id] = f"says nearly the same about the same code (cosine {cosine:.2f})"
    ordered = sorted(why, key=lambda i: (not _is_lost(look, i), look.records[i].recorded_at, i))
    return {i: why[i] for i in ordered[:MAX_SHOWN]}


def _is_about(look: Look, record: DecisionRecord, anchors: frozenset[Anchor], paths: frozenset[str]) -> bool:
    """Whether its anchors, as recorded or where they are now, are exactly `anchors`.

    Asked of every decision at each recording: paths come first, since an anchor's hash costs ten times as much.
    """
    own = record.decision.anchors
    if len(own) != len(anchors):
        return False
    if own[0].path in paths and anchors.issuperset(own):
        return True
    verdict = look.verdicts.get(record.id)
    if verdict is None or not verdict.anchors or verdict.anchors[0].now.path not in paths:
        return False
    return anchors == {view.now for view in verdict.anchors}


def _near(
    mine: DecisionRecord, others: Sequence[DecisionRecord], nearness: Nearness
) -> Iterable[tuple[DecisionRecord, float]]:
    if not others:
        return
    text = embedded_text(mine.decision)
    words = frozenset(_plain(text).split())

    def overlap(record: DecisionRecord) -> float:
        own = frozenset(_plain(embedded_text(record.decision)).split())
        return len(words & own) / len(words | own)

    ranked = sorted(others, key=lambda record: (-overlap(record), record.id))[:_MAX_COMPARED]
    # The same words need no model to be called the same.
    rest = []
    for record in ranked:
        if _plain(embedded_text(record.decision)) == _plain(text):
            yield record, 1.0
        else:
            rest.append(record)
    vectors = nearness.vectors([text, *(embedded_text(record.decision) for record in rest)]) if rest else None
    if vectors is not None:
        yield from zip(rest, (vectors[1:] @ vectors[0]).tolist(), strict=True)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@lru_cache(maxsize=50_000)
def _plain_title(text: str) -> str:
    return _plain(text)


def _is_lost(look: Look, identity: DecisionId) -> bool:
    return look.records[identity].standing is Standing.INVALIDATED


def _sentence(look: Look, identity: DecisionId, why: str) -> str:
    lost = look.records[identity].invalidation
    return f"{why}, and was invalidated: {lost.reason}" if lost is not None else why
