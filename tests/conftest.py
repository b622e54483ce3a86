"""Shared by all tests: the client harness can be imported by name, processes started by a test end with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "server"))

from lsp_harness import ProcessClient

# A time limit for one example measures what else the machine does.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture
def process_client() -> Iterator[Callable[..., ProcessClient]]:
    """Starts servers as real processes: `process_client(REAL)`; whatever still runs at the end is killed."""
    started: list[ProcessClient] = []

    def start(*arguments: Any, **options: Any) -> ProcessClient:
        started.append(ProcessClient(*arguments, **options))
        return started[-1]

    yield start
    for client in started:
        client.kill()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small folder to open."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "gov.py").write_text("def governed():\n    return 1\n")
    (folder / "other.py").write_text("x = 1\n")
    return folder
