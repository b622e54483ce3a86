"""One finding of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    OK = "ok"
    LIMITED = "limited"  # works, with less than it could
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Check:
    """One part. `repair` is a command or an action in words, None where nothing is wrong."""

    part: str
    health: Health
    detail: str
    repair: str | None = None
