"""Reciprocal rank fusion: two rankings into one, each leg's rank kept.

    score(d) = Σ_leg weight(leg) / (k + rank_leg(d))

with ranks from 1 (Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009; k = 60 there and here). A doc that a leg does not return gets nothing from it, unless the leg
could not have seen it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT_K: Final = 60


@dataclass(frozen=True, slots=True)
class Leg:
    """One ranking: docs best first, and the weight of its word.

    `unseen` are docs that it knows nothing of yet. They count as if their rank here were the best that they have
    elsewhere: else the docs that it happened to see first would go before better ones.
    """

    docs: Sequence[int]
    weight: float = 1.0
    unseen: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Fused:
    """`ranks` are 1-based, in the order of the legs, None where a leg lacks the doc. `score` is 1 for the doc that is
    first in all legs."""

    doc: int
    ranks: tuple[int | None, ...]
    score: float


def fuse(legs: Sequence[Leg], k: int = DEFAULT_K) -> list[Fused]:
    """All docs of all legs, best first; equal scores in the order of doc numbers."""
    ranks = [{doc: rank for rank, doc in enumerate(leg.docs, 1)} for leg in legs]
    best = sum(leg.weight for leg in legs if leg.docs) / (k + 1)
    fused = []
    for doc in sorted(set().union(*ranks)) if ranks else ():
        places = tuple(leg_ranks.get(doc) for leg_ranks in ranks)
        elsewhere = min(rank for rank in places if rank is not None)
        score = 0.0
        for leg, rank in zip(legs, places, strict=True):
            if rank is not None or doc in leg.unseen:
                score += leg.weight / (k + (elsewhere if rank is None else rank))
        fused.append(Fused(doc, places, score / best if best else 0.0))
    return sorted(fused, key=lambda entry: (-entry.score, entry.doc))
