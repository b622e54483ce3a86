"""Writes `.neuralmind/SYNAPSE_MEMORY.md`: when something was learned, every five minutes at most, and at the end.

A file of that name that does not bear our first line is never touched. `.neuralmind/.gitignore` is written only where
the folder has none, and names only our file.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from nm_lsp.storage.files import create_file, replace_file
from nm_lsp.storage.synapse_reading import StoredMemory
from nm_lsp.synapses.network import NO_EDGES
from nm_lsp.synapses.page import FIRST_LINE, LearnedPair, LearnedStep, memory_page
from nm_lsp.synapses.rules import QUERY_CAP

log = logging.getLogger(__name__)

FILE: Final = "SYNAPSE_MEMORY.md"
EVERY_S: Final = 300.0


class MemoryPage:
    """The page of one repository, in the folder above that of its store."""

    def __init__(self, store_folder: Path) -> None:
        self._path = store_folder.parent / FILE
        self._written: tuple[int, str] | None = None
        self._at: float | None = None

    def write_if_due(self, memory: StoredMemory | None, namespace: str, now: float, *, at_end: bool = False) -> bool:
        """Write if something was learned since; says whether the file was written."""
        if memory is None or self._written == (memory.n_taught, namespace) or not memory.edges:
            return False
        if not at_end and self._at is not None and 0 <= now - self._at < EVERY_S:
            return False
        self._written, self._at = (memory.n_taught, namespace), now
        return self._write(page_of(memory, namespace))

    def _write(self, text: str) -> bool:
        try:
            if os.path.lexists(self._path):
                present = self._path.read_text("utf-8", "replace")
                if not present.startswith(FIRST_LINE) or present == text:
                    return False
            create_file(self._path.parent / ".gitignore", f"/.gitignore\n/{FILE}\n".encode())
            replace_file(self._path, text.encode("utf-8", "replace"))
        except OSError as error:
            log.info("%s was not written: %s", self._path, error)
            return False
        return True


def page_of(memory: StoredMemory, namespace: str) -> str:
    """The page of what `namespace` itself learned, at the moment of the last learning."""
    rows = memory.edges.get(namespace, NO_EDGES)
    weights = rows.weights_at(memory.learned_at, namespace)
    names = memory.names
    pairs = [
        LearnedPair(names[a], names[b], weight, lasting)
        for a, b, weight, lasting in zip(
            rows.a.tolist(), rows.b.tolist(), weights.tolist(), rows.lasting.tolist(), strict=True
        )
        if weight > QUERY_CAP and a in names and b in names
    ]
    steps = [
        LearnedStep(names[a], names[b], n)
        for (a, b), (n, _) in memory.steps.get(namespace, {}).items()
        if n >= 2 and a in names and b in names
    ]
    return memory_page(namespace, pairs, steps)
