"""The rules of learning and forgetting, as numbers and as functions of one weight. Times are Unix seconds.

Guarantees: a weight stays in [0, 1] whatever it is given; a clock that goes back forgets nothing; decay is a function
of the elapsed time alone, so that applying it once or in many steps gives the same weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from nm_lsp.base.errors import InvalidInput

DAY_S: Final = 86_400.0

LEARNING_RATE: Final = 0.30
PRUNE_BELOW: Final = 0.01
LASTING_FLOOR: Final = 0.20
LASTING_AFTER: Final = 5
"""Activations of strength `STRONG` or more after which an edge of weight `LASTING_FLOOR` lasts."""
STRONG: Final = 0.5
LASTING_SLOWNESS: Final = 2.0
"""How many times longer the half-life of a lasting edge is."""
QUERY_CAP: Final = 0.05
"""Query hits alone lift an edge so far, which is below what is ever recalled."""

COMMIT_STRENGTH: Final = 1.0
EDIT_STRENGTH: Final = 1.0
USED_STRENGTH: Final = 1.0
OPEN_STRENGTH: Final = 0.3

TRANSITION_CAP: Final = 100.0
TRANSITION_PRUNE: Final = 0.5

PERSONAL: Final = "personal"
SHARED: Final = "shared"
EPHEMERAL: Final = "ephemeral"
STRUCTURAL: Final = "structural"
BRANCH: Final = "branch:"

ACTIVE_FACTOR: Final = 1.0
READ_FACTORS: Final = {PERSONAL: 0.8, SHARED: 0.5, STRUCTURAL: 0.5}
"""What a weight of another namespace than the active one counts when it is read."""


def branch_namespace(branch: str) -> str:
    return BRANCH + branch


def read_factors(active: str) -> dict[str, float]:
    """Namespace → factor of all that is stored and read while `active` is written; no other namespace is seen."""
    factors = {name: factor for name, factor in READ_FACTORS.items() if name != STRUCTURAL}
    return {**factors, active: ACTIVE_FACTOR}


def half_life_s(namespace: str, *, lasting: bool = False) -> float:
    """Seconds after which a weight in `namespace` has halved."""
    days = {SHARED: 60.0, EPHEMERAL: 1.0}.get(namespace, 30.0)
    return days * DAY_S * (LASTING_SLOWNESS if lasting else 1.0)


def decayed(weight: float, elapsed_s: float, half_life: float) -> float:
    """`weight` after `elapsed_s`; a negative time (a clock that was set back) counts as none."""
    if not elapsed_s > 0:
        return weight
    return weight * math.exp2(-elapsed_s / half_life)


@dataclass(frozen=True, slots=True)
class Synapse:
    """One edge in one namespace. `weight` was its weight `at`; `strong` counts its activations of `STRONG` or more."""

    weight: float = 0.0
    at: float = 0.0
    count: int = 0
    strong: int = 0

    @property
    def lasting(self) -> bool:
        """Long-term potentiation: used often and strongly enough never to be forgotten below the floor."""
        return self.strong >= LASTING_AFTER and self.weight >= LASTING_FLOOR

    def weight_at(self, now: float, namespace: str) -> float:
        weight = decayed(self.weight, now - self.at, half_life_s(namespace, lasting=self.lasting))
        return max(weight, LASTING_FLOOR) if self.lasting else weight

    def reinforced(self, strength: float, now: float, namespace: str, *, times: int = 1) -> Synapse:
        """One activation (or several equal ones): w ← w + 0.30·strength·(1 − w)."""
        check_strength(strength)
        weight = self.weight_at(now, namespace)
        weight = 1.0 - (1.0 - weight) * (1.0 - LEARNING_RATE * strength) ** times
        is_strong = strength >= STRONG
        return Synapse(min(weight, 1.0), now, self.count + times, self.strong + (times if is_strong else 0))

    def lifted(self, now: float, namespace: str) -> Synapse | None:
        """An activation by a question's hits alone; None where it leaves the edge as it is."""
        weight = self.weight_at(now, namespace)
        if weight >= QUERY_CAP:
            return None
        raised = min(QUERY_CAP, weight + LEARNING_RATE * QUERY_CAP * (1.0 - weight))
        return replace(self, weight=raised, at=now, count=self.count + 1)

    def halved(self, now: float, namespace: str) -> Synapse:
        """Negative feedback; never below the floor of a lasting edge."""
        weight = self.weight_at(now, namespace) * 0.5
        return replace(self, weight=max(weight, LASTING_FLOOR) if self.lasting else weight, at=now)

    def joined(self, other: Synapse, factor: float, now: float, namespace: str, other_namespace: str) -> Synapse:
        """This edge with what `other`, from another namespace, adds at `factor` of its weight. Counts add up."""
        mine = self.weight_at(now, namespace)
        theirs = other.weight_at(now, other_namespace) * factor
        weight = 1.0 - (1.0 - mine) * (1.0 - theirs)
        return Synapse(min(weight, 1.0), now, self.count + other.count, self.strong + other.strong)


def check_strength(strength: float) -> None:
    """Raises `InvalidInput` for anything but a number in [0, 1]."""
    if not (math.isfinite(strength) and 0.0 <= strength <= 1.0):
        raise InvalidInput("strength", f"{strength} is no number from 0 to 1")


def check_weight(weight: float, field: str = "weight") -> None:
    """Raises `InvalidInput` for a weight of a bundle that is negative, above 1, infinite or no number."""
    if not (math.isfinite(weight) and 0.0 <= weight <= 1.0):
        raise InvalidInput(field, f"{weight} is no number from 0 to 1")


def transition_at(count: float, elapsed_s: float, namespace: str) -> float:
    """A transition's count after `elapsed_s` without being taken."""
    return decayed(count, elapsed_s, half_life_s(namespace))
