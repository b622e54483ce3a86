"""Searching decisions: which are found, in what order, and what is said when something is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nm_lsp.base.errors import InvalidInput
from nm_lsp.engine.decisions.searching import NO_FTS, NO_MODEL, content_words
from nm_lsp.storage import decision_search

from .conftest import Bench, WordNearness


def statuses(result: Any) -> dict[str, str]:
    return {hit.decision.id: hit.decision.status for hit in result.hits}


@pytest.fixture
def three(make_bench: Callable[..., Bench]) -> tuple[Bench, str, str, str]:
    """An ACTIVE, a STALE and an INVALIDATED decision that match alike."""
    bench = make_bench(nearness=WordNearness())
    active = bench.record("Sessions live in a signed cookie", "a.py")
    stale = bench.record("Sessions expire after an hour in the cookie", "b.py")
    lost = bench.record("Sessions live in the cookie of the browser", "c.py")
    bench.invalidate(lost)
    bench.commit({"b.py": "y = 2\n"})
    return bench, active, stale, lost


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_only_what_holds_is_found_by_default(three: tuple[Bench, str, str, str], mode: str) -> None:
    bench, active, stale, lost = three
    assert statuses(bench.search("sessions cookie", mode=mode)) == {active: "active"}
    everything = bench.search("sessions cookie", mode=mode, status="all")
    assert statuses(everything) == {active: "active", stale: "stale", lost: "invalidated"}
    reasons = {hit.decision.id: hit.decision.status_reason for hit in everything.hits}
    assert "b.py was changed" in (reasons[stale] or "")
    assert "It was wrong." in (reasons[lost] or "")
    assert statuses(bench.search("sessions cookie", mode=mode, status="stale")) == {stale: "stale"}
    assert statuses(bench.search("sessions cookie", mode=mode, status="invalidated")) == {lost: "invalidated"}


def test_the_status_is_that_of_this_head_and_not_a_stored_one(three: tuple[Bench, str, str, str]) -> None:
    bench, active, stale, _ = three
    bench.git("checkout", "-q", "HEAD~1")
    assert statuses(bench.search("sessions cookie")) == {active: "active", stale: "active"}
    bench.git("checkout", "-q", "main")
    assert statuses(bench.search("sessions cookie")) == {active: "active"}


def test_without_git_what_nobody_invalidated_is_returned_as_unknown(three: tuple[Bench, str, str, str]) -> None:
    bench, active, stale, _ = three
    bench.git_path = "/nonexistent/git"
    bench.reopen()
    result = bench.search("sessions cookie")
    assert statuses(result) == {active: "unknown", stale: "unknown"}
    assert any(notice.startswith("Git cannot answer") for notice in result.notices)


def test_meaning_finds_what_words_do_not(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(nearness=WordNearness())
    cookie = bench.record("Keep the cookie signed", "a.py", rationale="Signed.")
    bench.record("Never delete accounts", "b.py", rationale="Law.")
    by_meaning = bench.search("session signed", mode="semantic")
    assert [hit.decision.id for hit in by_meaning.hits] == [cookie]
    assert by_meaning.hits[0].semantic_rank == 1
    assert by_meaning.hits[0].keyword_rank is None
    assert bench.search("session", mode="keyword").hits == ()


def test_hybrid_merges_both_rankings(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(nearness=WordNearness())
    both = bench.record("Sessions: session store", "a.py", rationale="The session lives on.")
    bench.record("Cookie cookie cookie", "b.py", rationale="cookie")
    first = bench.search("session").hits[0]
    assert (first.decision.id, first.keyword_rank) == (both, 1)
    assert first.semantic_rank is not None
    assert 0 < first.score <= 1


def test_a_question_about_nothing_here_finds_nothing(three: tuple[Bench, str, str, str]) -> None:
    assert three[0].search("kubernetes helm chart", status="all").hits == ()


def test_words_that_say_nothing_are_not_looked_for(bench: Bench) -> None:
    bench.record("The only way it is", "a.py", rationale="It is what it is.")
    assert bench.search("how is the kafka broker used").hits == ()
    assert content_words("how is it") == "how is it"


def test_without_a_model_words_answer_and_it_is_said(bench: Bench) -> None:
    found = bench.record("Sessions live in a cookie", "a.py")
    for mode in ("hybrid", "semantic"):
        result = bench.search("cookie", mode=mode)
        assert list(statuses(result)) == [found]
        assert result.notices == (NO_MODEL,)
    assert bench.search("cookie", mode="keyword").notices == ()


def test_a_floor_on_confidence(bench: Bench) -> None:
    sure = bench.record("Cache in memory", "a.py", confidence=0.9)
    bench.record("Cache on disk", "b.py", confidence=0.4)
    bench.record("Cache nowhere", "c.py")
    assert list(statuses(bench.search("cache", min_confidence=0.8))) == [sure]
    assert len(bench.search("cache", min_confidence=0.0).hits) == 2


def test_only_missing_vectors_are_made_and_they_are_kept(make_bench: Callable[..., Bench]) -> None:
    nearness = WordNearness()
    bench = make_bench(nearness=nearness)
    bench.record("Cache in memory", "a.py")
    bench.record("Cache on disk", "b.py")
    bench.search("cache")
    nearness.embedded.clear()
    bench.reopen()
    bench.search("cache")
    assert nearness.embedded == ["cache"]
    bench.record("Cache nowhere", "c.py", rationale="None.")
    nearness.embedded.clear()
    assert len(bench.search("cache", mode="semantic").hits) == 3
    assert nearness.embedded == ["cache", "Cache nowhere\nNone."]


def test_a_question_does_not_wait_for_thousands_of_vectors(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(nearness=WordNearness())
    for number in range(20):
        bench.record(f"Cache number {number}", "a.py")
    vectors = bench.desk._search._vectors
    ticks = iter(range(1000))
    vectors._clock = lambda: float(next(ticks))
    result = bench.search("cache number", mode="semantic")
    assert len(result.hits) < 20
    assert any("no vector yet" in notice for notice in result.notices)
    assert vectors._filler is not None
    vectors._filler.join()
    again = bench.search("cache number", mode="semantic", limit=100)
    assert len(again.hits) == 20
    assert again.notices == ()


def test_writing_vectors_costs_no_new_look(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(nearness=WordNearness())
    bench.record("Cache in memory", "a.py")
    before = bench.desk.poll()
    bench.search("cache")
    assert bench.desk.poll() is before


def test_without_full_text_search_it_is_said_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bench.record("Sessions live in a cookie", "a.py")

    def plainly(connection: sqlite3.Connection, text: str) -> Any:
        return decision_search._search_plainly(connection, text.split()), False

    monkeypatch.setattr(decision_search, "search", plainly)
    first = bench.search("cookie", mode="keyword")
    assert list(statuses(first)) == [found]
    assert first.notices == (NO_FTS,)
    assert bench.search("cookie", mode="keyword").notices == ()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"query": " "}, "query"),
        ({"query": "x" * 1_000_000}, "query"),
        ({"query": "x", "mode": "fuzzy"}, "mode"),
        ({"query": "x", "status": "aged"}, "status"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "min_confidence": float("nan")}, "minConfidence"),
    ],
)
def test_bad_input_names_its_field(bench: Bench, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        bench.search(**fields)
    assert caught.value.field == field


def test_a_repository_without_decisions_stays_untouched(bench: Bench) -> None:
    assert bench.search("anything").hits == ()
    assert not Path(bench.root, ".neuralmind").exists()
