"""The evaluation measures what it says: the goals are met, and an engine that forgets a status is caught."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.engine.decisions import evaluation, searching
from nm_lsp.engine.decisions.similar import ModelNearness
from nm_lsp.engine.query_embedding import QueryEmbedder

FIXTURE = Path(__file__).parents[2] / "fixtures" / "decision_queries.json"


def small(tmp_path: Path) -> Path:
    decisions = [
        {"key": "cookie", "title": "Sessions are cookies", "rationale": "No sharing.", "file": "a", "status": "active"},
        {"key": "table", "title": "Sessions are rows", "rationale": "To end them.", "file": "b", "status": "stale"},
        {"key": "cents", "title": "Money is cents", "rationale": "No rounding.", "file": "c", "status": "active"},
        {"key": "float", "title": "Money is float", "rationale": "Simple.", "file": "d", "status": "invalidated"},
    ]
    queries = [
        {"query": "sessions", "relevant": ["cookie"]},
        {"query": "rounding", "relevant": ["cents"]},
        {"query": "nothing of that kind", "relevant": []},
        {"query": "currency", "relevant": ["cents"]},
    ]
    path = tmp_path / "queries.json"
    path.write_text(json.dumps({"decisions": decisions, "queries": queries}))
    return path


def test_the_goals_are_met_by_words_alone(tmp_path: Path) -> None:
    result = evaluation.evaluate(ModelNearness(QueryEmbedder(enabled=False)), Cancellation(), queries=small(tmp_path))
    (maintenance,) = result.maintenance
    assert (maintenance.mode, maintenance.stale_influence_rate) == ("keyword", 0.0)
    assert maintenance.recall_at_5 >= 0.9
    assert maintenance.precision >= 0.9
    assert len(maintenance.tasks) >= 5
    (queries,) = result.queries
    assert queries.recall == {1: 2 / 3, 3: 2 / 3, 5: 2 / 3, 10: 2 / 3}
    assert (queries.mrr, queries.n_questions, queries.n_misfires, queries.n_not_active) == (2 / 3, 3, 0, 0)


def test_a_search_that_forgets_the_status_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_is_wanted", lambda *_: True)
    result = evaluation.evaluate(ModelNearness(QueryEmbedder(enabled=False)), Cancellation(), queries=small(tmp_path))
    assert result.maintenance[0].stale_influence_rate > 0.4
    assert result.queries[0].n_not_active == 1
    # Every task seeds something that does not hold and would be found.
    assert all(task.intruders for task in result.maintenance[0].tasks)


def test_the_packaged_set_is_the_fixture_and_is_whole() -> None:
    packaged = evaluation._load("decision_queries.json")
    assert packaged == json.loads(FIXTURE.read_text("utf-8"))
    assert evaluation._query_set(FIXTURE) == packaged
    keys = {one["key"] for one in packaged["decisions"]}
    assert len(keys) == len(packaged["decisions"]) == len({one["title"] for one in packaged["decisions"]})
    holding = {one["key"] for one in packaged["decisions"] if one["status"] == "active"}
    assert all(set(one["relevant"]) <= holding for one in packaged["queries"])
    assert len(packaged["queries"]) >= 30


@pytest.mark.parametrize(
    "text", ["", "[]", '{"decisions": [], "queries": [{"query": "x", "relevant": ["y"]}]}', '{"decisions": [{}]}']
)
def test_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "queries.json"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        evaluation.evaluate(ModelNearness(QueryEmbedder(enabled=False)), Cancellation(), queries=path)
