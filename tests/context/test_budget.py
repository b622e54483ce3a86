"""Who may spend how much, and that nobody spends more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.context.budget import CAP_IDENTITY, CAP_LAYER, MAX_BUDGET, Page, allot, allot_wakeup, grown
from nm_lsp.search.token_count import TokenCount, counted_tokens, estimated_tokens

word_count = counted_tokens(lambda text: len(text.split()))


@pytest.mark.parametrize(
    ("budget", "complexity", "split"),
    [
        (1_100, 1.0, (100, 300, 300, 400)),
        (1_100, 0.5, (100, 300, 300, 350)),
        (1_100, 0.0, (100, 300, 200, 200)),
        (1_500, 1.0, (100, 409, 424, 500)),
        (550, 1.0, (50, 150, 150, 200)),
        (0, 1.0, (0, 0, 0, 0)),
        (9_999, 1.0, (100, 409, 424, 500)),
    ],
)
def test_split(budget: int, complexity: float, split: tuple[int, ...]) -> None:
    room = allot(budget, complexity)
    assert (room.identity, room.summary, room.modules, room.hits) == split


@given(st.integers(0, 3_000), st.floats(0, 1))
def test_the_parts_stay_within_the_whole_and_the_caps(budget: int, complexity: float) -> None:
    room = allot(budget, complexity)
    parts = (room.identity, room.summary, room.modules, room.hits)
    assert all(part >= 0 for part in parts)
    assert sum(parts) <= room.total <= MAX_BUDGET
    assert room.identity <= CAP_IDENTITY
    assert max(parts) <= CAP_LAYER


@given(st.integers(0, 1_500), st.floats(0, 1), st.integers(0, 1_000), st.floats(0, 1))
def test_hits_grow_only_into_what_is_left(budget: int, complexity: float, spent: int, quality: float) -> None:
    room = allot(budget, complexity)
    given_to_hits = grown(room, spent, quality)
    assert 0 <= given_to_hits <= max(0, room.total - spent)
    assert given_to_hits <= CAP_LAYER
    assert given_to_hits <= grown(room, spent, 1.0)


def test_good_matches_get_more_than_weak_ones() -> None:
    room = allot(1_100, 0.2)
    assert grown(room, 400, 0.0) == room.hits
    assert grown(room, 400, 1.0) == CAP_LAYER


def test_wakeup_is_identity_and_summary() -> None:
    assert (allot_wakeup(600).identity, allot_wakeup(600).summary) == (100, 500)
    assert allot_wakeup(9_999).total == 600
    assert allot_wakeup(40).identity + allot_wakeup(40).summary <= 40


@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=80), max_size=30),
    st.integers(0, 120),
    st.sampled_from([estimated_tokens, word_count]),
)
def test_a_page_never_costs_more_than_its_limit(lines: list[str], limit: int, count: TokenCount) -> None:
    page = Page(limit, count)
    kept = []
    for number, line in enumerate(lines):
        if number % 3 == 0:
            page.add_cut(line, "> ")
        elif page.add(line):
            kept.append(line)
    assert count(page.text) <= limit
    assert all(line in page.text.split("\n") for line in kept)


def test_lines_that_belong_together_are_added_together_or_not_at_all() -> None:
    page = Page(10, estimated_tokens)
    assert not page.add("short", "x" * 60)
    assert page.is_empty
    assert page.add("short")
