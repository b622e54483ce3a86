"""The text behind a hit: as it is on the screen, else as it is on disk, if the index knows those very bytes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from nm_lsp.engine.snapshot import Snapshot
from nm_lsp.worker.sources import Unreadable, decode, read_bytes

_MAX_BYTES = 50_000_000


class TextState(Enum):
    SAME = "same"  # the text that was indexed
    CHANGED = "changed"  # other bytes since: positions may be off
    GONE = "gone"


class SourceTexts:
    """One request's view of the sources. `changed` collects paths whose disk content the index does not know."""

    def __init__(self, folder: Path, snapshot: Snapshot, screen: Callable[[str], str | None]) -> None:
        self._folder = folder
        self._snapshot = snapshot
        self.screen = screen
        self._texts: dict[str, tuple[str | None, TextState]] = {}
        self.changed: list[str] = []

    def state(self, path: str) -> TextState:
        return self._look(path)[1]

    def read(self, path: str) -> str | None:
        """The text that the index's positions belong to, or None where it is not to be had any more."""
        text, state = self._look(path)
        return text if state is TextState.SAME else None

    def _look(self, path: str) -> tuple[str | None, TextState]:
        known = self._texts.get(path)
        if known is None:
            known = self._texts[path] = self._load(path)
            if known[1] is not TextState.SAME:
                self.changed.append(path)
        return known

    def _load(self, path: str) -> tuple[str | None, TextState]:
        if path in self._snapshot.overlay:
            return (self.screen(path) or "").removeprefix("\ufeff"), TextState.SAME
        stamp = self._snapshot.corpus.stamp(path)
        try:
            status = (self._folder / path).lstat()
            if stamp is None or (stamp.size, stamp.mtime_ns) != (status.st_size, status.st_mtime_ns):
                return None, TextState.CHANGED
            return decode(read_bytes(self._folder, path, _MAX_BYTES)), TextState.SAME
        except FileNotFoundError:
            return None, TextState.GONE
        except (OSError, Unreadable):
            return None, TextState.CHANGED
