"""Communities as the search and the context layers see them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """A community of files. `id` is stable across rebuilds; `symbols` are ids of its strongest nodes, best first."""

    id: int
    title: str
    files: tuple[str, ...]
    symbols: tuple[str, ...]
