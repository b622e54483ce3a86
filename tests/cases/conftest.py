"""What every case shares: a place of its own, a repository, servers, and the checks when it is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from case_bench import Bench
from decision_session import Repo, Session
from lsp_harness import FAKE, ProcessClient


@pytest.fixture(autouse=True)
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The place of one case; the common checks are made when the case went well."""
    made = Bench(tmp_path)
    n_failed = request.session.testsfailed
    yield made
    made.close()
    if request.session.testsfailed == n_failed:
        made.check()


@pytest.fixture
def repo(bench: Bench) -> Repo:
    """R0."""
    return bench.repo()


@pytest.fixture
def start(bench: Bench) -> Callable[..., AbstractContextManager[Session]]:
    """Opens folders in a server: `with start(repo.path) as s`."""
    return bench.session


@pytest.fixture
def process_client(bench: Bench) -> Callable[..., ProcessClient]:
    """Starts servers as bare processes, with a fake engine unless `REAL` is named."""

    def start(command: list[str] = FAKE, **options: Any) -> ProcessClient:
        return bench.client(command, **options)

    return start
