"""Children for tests; whatever still runs at the end of a test is ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from child_process import Child

from nm_lsp.worker.messages import OpenFolder


@pytest.fixture
def child() -> Iterator[Callable[[], Child]]:
    started: list[Child] = []

    def start() -> Child:
        started.append(Child())
        return started[-1]

    yield start
    for one in started:
        one.client.close()


@pytest.fixture
def opening(tmp_path: Path) -> Callable[[Path], OpenFolder]:
    """The order to index a folder, with the index beside it and no vectors."""

    def make(folder: Path, key: int = 1) -> OpenFolder:
        return OpenFolder(
            key=key,
            folder=str(folder),
            index=str(tmp_path / "index"),
            vector_cache=str(tmp_path / "vectors" / "vectors.db"),
            excludes=(),
            max_file_bytes=1_000_000,
            max_files=100_000,
            with_vectors=False,
            threads=1,
            git="git",
        )

    return make
