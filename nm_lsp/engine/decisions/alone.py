"""The decisions of a folder without its index: for the command line, which asks once and ends.

The same desk as an editor's, with the bytes on disk alone: no buffers, no child process, no watch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.similar import ModelNearness
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.query_embedding import QueryEmbedder
from nm_lsp.engine.settings import Settings


@contextmanager
def open_desk(folder: Path, settings: Settings) -> Iterator[Desk]:
    """The desk of `folder`; closed, with its store and git's children, at the end of the block."""
    repositories = Repositories()
    revival = settings.decisions.revival == "automatic"
    tree = WorkTree(
        folder,
        repositories,
        git=settings.git.path,
        revival=revival,
        clock=time.monotonic,
        require_encrypted=settings.storage.require_encrypted,
    )
    try:
        yield Desk(
            folder,
            tree,
            screen=lambda _path: None,
            spans=lambda _path, _symbol: None,
            nearness=ModelNearness(QueryEmbedder(enabled=settings.model.enabled)),
            on_change=lambda: None,
        )
    finally:
        tree.close()
        repositories.close()
