"""Reciprocal rank fusion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.search.fusion import Leg, fuse

ranking = st.lists(st.integers(0, 50), unique=True, max_size=20)


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    fused = {entry.doc: entry for entry in fuse([Leg([7, 8]), Leg([8, 9], 0.5)], k=60)}
    best = 1.5 / 61
    assert fused[7].score == pytest.approx((1 / 61) / best)
    assert fused[8].score == pytest.approx((1 / 62 + 0.5 / 61) / best)
    assert fused[9].score == pytest.approx((0.5 / 62) / best)
    assert fused[8].ranks == (2, 1)
    assert fused[9].ranks == (None, 2)


def test_first_in_all_legs_scores_one() -> None:
    assert fuse([Leg([3, 1]), Leg([3, 2])])[0].score == pytest.approx(1.0)


def test_without_candidates_there_is_nothing() -> None:
    assert fuse([]) == []
    assert fuse([Leg([]), Leg([])]) == []


@given(ranking, ranking, st.integers(1, 100))
def test_order_is_total_and_every_doc_is_there_once(one: list[int], other: list[int], k: int) -> None:
    fused = fuse([Leg(one), Leg(other)], k)
    assert sorted(entry.doc for entry in fused) == sorted({*one, *other})
    keys = [(-entry.score, entry.doc) for entry in fused]
    assert keys == sorted(keys)


@given(ranking)
def test_an_empty_leg_changes_nothing(docs: list[int]) -> None:
    assert [entry.doc for entry in fuse([Leg(docs), Leg([])])] == docs


def test_what_a_leg_cannot_have_seen_is_not_held_against_it() -> None:
    """5 is first by words and has no vector yet; 6 is second by words and alone has one."""
    by_words, by_meaning = [5, 6], [6]
    assert [entry.doc for entry in fuse([Leg(by_words), Leg(by_meaning)])] == [6, 5]
    fused = fuse([Leg(by_words), Leg(by_meaning, unseen={5})])
    assert {entry.doc: entry.ranks for entry in fused} == {5: (1, None), 6: (2, 1)}
    assert fused[0].doc == 5
