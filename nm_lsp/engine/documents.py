"""The overlay: texts as they are on the screen, ahead of the disk. In memory only; never enters a database."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """An open document. `path` is relative to its workspace folder; `version` is the client's, or None."""

    path: str
    text: str
    version: int | None
    language_id: str
