"""Recall in the answers of an opened folder: ranks, explanations, budgets, and nothing where nothing was learned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.host import Host
from nm_lsp.engine.requests import ExplainParams, QueryParams, SearchParams
from nm_lsp.engine.settings import ModelSettings, Settings
from nm_lsp.engine.workspace import Workspace
from nm_lsp.storage.synapses import SynapseStore, Teaching

GO = Cancellation()
NOUNS = ("water", "steam", "heat", "flame", "kettle", "burner", "whistle", "handle")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "tea"
    root.mkdir()
    for noun in NOUNS:
        (root / f"{noun}.py").write_text(f'def boil_{noun}(litres):\n    """Boil the {noun}."""\n    return litres\n')
    (root / "invoice.py").write_text('def print_invoice(order):\n    """Send a bill."""\n    return order\n')
    return root


@pytest.fixture
def host(folder: Path) -> Iterator[Host]:
    workspace = Workspace(Settings(model=ModelSettings(enabled=False)), lambda _event: None)
    opened = workspace.add_folder(folder)
    opened.wait_ready(GO)
    yield opened
    workspace.close()


def teach(folder: Path, *pairs: tuple[str, str]) -> None:
    """What many joint edits leave behind; without git a folder learns in `ephemeral`."""
    store = SynapseStore.open(folder / ".neuralmind" / "lsp" / "synapses.db", time.time())
    for _ in range(8):
        store.teach(Teaching("ephemeral", time.time(), [(a, b, 1.0) for a, b in pairs]))
    store.close()


def test_recall_displaces_the_weakest_and_says_why(folder: Path, host: Host) -> None:
    plain = host.search(SearchParams(query="boil"), GO).hits
    query = host.query(QueryParams(query="boil"), GO)
    assert all(hit.ranks.synapse is None for hit in plain)
    assert "invoice.py::print_invoice" not in [hit.id for hit in plain]
    teach(folder, (plain[0].id, "invoice.py::print_invoice"), (plain[0].id, plain[3].id))
    hits = host.search(SearchParams(query="boil"), GO).hits
    assert len(hits) == len(plain)
    recalled = next(hit for hit in hits if hit.id == "invoice.py::print_invoice")
    assert recalled.ranks.keyword is None
    assert recalled.ranks.synapse == 1
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    lifted = [hit.id for hit in hits].index(plain[3].id)
    assert lifted < 3
    again = host.query(QueryParams(query="boil"), GO)
    assert again.tokens <= 1_100
    assert len(again.hits) == len(query.hits)
    assert f"goes with {plain[0].id} (synapse" in host.explain(ExplainParams(query="boil"), GO).text


def test_a_search_of_one_folder_recalls_nothing_from_elsewhere(folder: Path, host: Host) -> None:
    teach(folder, ("water.py::boil_water", "invoice.py::print_invoice"))
    hits = host.search(SearchParams(query="boil water", path="water.py"), GO).hits
    assert {hit.place.path for hit in hits} == {"water.py"}


def test_what_only_another_namespace_learned_is_not_recalled(folder: Path, host: Host) -> None:
    before = host.search(SearchParams(query="boil"), GO)
    store = SynapseStore.open(folder / ".neuralmind" / "lsp" / "synapses.db", time.time())
    store.teach(Teaching("branch:other", time.time(), [("water.py::boil_water", "invoice.py::print_invoice", 1.0)]))
    store.close()
    assert host.search(SearchParams(query="boil"), GO) == before
