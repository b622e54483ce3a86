"""A closed batch on its way from the notes, or from a commit, to the store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """What was edited, folder-relative, before it is known which of it the index knows.

    `commit` is the key of the commit it is, if it is one; `is_bulk`: one that teaches nothing. Without a `namespace`
    it is learned where HEAD is when it is taught.
    """

    symbols: tuple[str, ...]
    opened: tuple[str, ...]
    seen: tuple[tuple[bytes, str], ...]
    at: float
    strength: float
    commit: bytes | None = None
    is_bulk: bool = False
    namespace: str | None = None
