"""From two texts to the lines and symbols that changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.synapses.edits import SymbolLines, changed_lines, is_layout, symbols_at

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", []),
        ("a\nb\nc\n", "a\nx\nc\n", [(1, 1)]),
        ("a\nb\nc\n", "a\nb\nx\ny\nc\n", [(2, 3)]),
        ("a\nb\nc\n", "a\nc\n", [(1, 1)]),
        ("a\nb\n", "a\n", [(0, 0)]),
        ("a\nb\nc\nd\ne\n", "x\nb\nc\nd\ny\n", [(0, 0), (4, 4)]),
        ("", "a\n", [(0, 0)]),
        ("a\n", "", [(0, 0)]),
        ("a", "a\n", [(0, 0)]),
    ],
)
def test_changed_lines(old: str, new: str, expected: list[tuple[int, int]]) -> None:
    assert changed_lines(old, new) == expected


@given(LINES, LINES)
def test_what_is_outside_the_ranges_was_there_before_in_this_order(old: str, new: str) -> None:
    ranges = changed_lines(old, new)
    assert bool(ranges) is (old != new)
    after = new.splitlines()
    outside = [line for n, line in enumerate(after) if not any(low <= n <= high for low, high in ranges)]
    rest = iter(old.splitlines())
    assert all(line in rest for line in outside)


@given(LINES, st.integers(0, 12))
def test_an_insertion_is_found(old: str, at: int) -> None:
    lines = old.splitlines(keepends=True)
    at = min(at, len(lines))
    assert changed_lines(old, "".join([*lines[:at], "new\n", *lines[at:]])) == [(at, at)]


def test_a_change_everywhere_is_cheap() -> None:
    old = "".join(f"a {n}\n" for n in range(6_000))
    new = "".join(f"b {n}\n" for n in range(6_000))
    assert changed_lines(old, new) == [(0, 5_999)]


SYMBOLS = [SymbolLines("C", 0, 9), SymbolLines("C.f", 1, 3), SymbolLines("C.g", 5, 8), SymbolLines("h", 12, 14)]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(2, 2)], ["C.f"]),
        ([(0, 0)], ["C"]),
        ([(4, 4)], ["C"]),
        ([(2, 6)], ["C", "C.f", "C.g"]),
        ([(3, 3), (13, 13), (2, 2)], ["C.f", "h"]),
        ([(10, 11)], []),
    ],
)
def test_symbols_at(ranges: list[tuple[int, int]], expected: list[str]) -> None:
    assert symbols_at(SYMBOLS, ranges) == expected


def test_layout() -> None:
    assert is_layout("def f( a ):\n\treturn a", "def f(a):\n    return a\n")
    assert not is_layout("a = 1", "a = 2")
