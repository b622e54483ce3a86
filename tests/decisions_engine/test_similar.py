"""What a new decision is said to be like."""

from __future__ import annotations

from collections.abc import Callable

from .conftest import Bench, WordNearness


def test_the_same_title_is_reported(bench: Bench) -> None:
    first = bench.record("Tokens are  opaque", "a.py")
    result = bench.recorded("tokens are opaque", "b.py")
    assert [(one.decision.id, one.why) for one in result.similar] == [(first, "has the same title")]


def test_an_invalidated_one_comes_first_with_its_reason(bench: Bench) -> None:
    alive = bench.record("Tokens are opaque", "a.py")
    lost = bench.record("Tokens are opaque", "b.py")
    bench.invalidate(lost, "JWT won.")
    result = bench.recorded("Tokens are opaque", "c.py")
    assert [one.decision.id for one in result.similar] == [lost, alive]
    assert "JWT won." in result.similar[0].why


def test_the_same_words_about_the_same_code(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(nearness=WordNearness())
    text = "The list is read far more often than it is written to by anybody"
    first = bench.record("Keep the list sorted", "a.py", rationale=text)
    bench.record("Keep the list sorted always", "b.py", rationale=text)
    bench.record("Quite another thing", "a.py", rationale="Nothing in common with that.")
    result = bench.recorded("Keep the list in order", "a.py", rationale=text)
    assert [one.decision.id for one in result.similar] == [first]
    assert "nearly the same" in result.similar[0].why


def test_without_a_model_equal_titles_alone_count(bench: Bench) -> None:
    bench.record("Keep the list sorted", "a.py", rationale="Reads.")
    assert bench.recorded("Keep the list in order", "a.py", rationale="Reads.").similar == ()


def test_few_texts_are_embedded_however_many_govern_the_file(make_bench: Callable[..., Bench]) -> None:
    nearness = WordNearness()
    bench = make_bench(nearness=nearness)
    for number in range(12):
        bench.record(f"Number {number}", "a.py")
    nearness.embedded.clear()
    bench.recorded("Another number", "a.py")
    assert len(nearness.embedded) <= 4
