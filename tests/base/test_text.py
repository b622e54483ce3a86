"""Text positions and the buffer, against plain string operations on the whole text."""

from __future__ import annotations

import re
import timeit
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nm_lsp.base.text import (
    Position,
    PositionEncoding,
    TextBuffer,
    convert_column,
    split_lines,
    to_column,
    to_index,
    without_surrogates,
)

TEXTS = st.text(st.sampled_from("ab é€😀\n\r\u2028\x0c\ud83d\ude00"), max_size=30)
PLACES = st.tuples(st.integers(0, 8), st.integers(0, 12))


def units(text: str, encoding: PositionEncoding) -> int:
    """The oracle of lengths: what the codecs say."""
    match encoding:
        case PositionEncoding.UTF8:
            return len(text.encode("utf-8", "surrogatepass"))
        case PositionEncoding.UTF16:
            return sum(len(char.encode("utf-16-le", "surrogatepass")) // 2 for char in text)
        case PositionEncoding.UTF32:
            return len(text)


def offset(text: str, line: int, column: int, encoding: PositionEncoding) -> int:
    """The oracle of positions: an index into the whole text, found one character at a time."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]
    if line >= len(starts):
        return len(text)
    at = starts[line]
    taken = 0
    while at < len(text) and text[at] not in "\r\n":
        taken += units(text[at], encoding)
        if taken > column:
            break
        at += 1
    return at


@given(TEXTS)
def test_lines_are_cut_where_lsp_cuts(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(re.fullmatch(r"[^\r\n]*(\r\n|\n|\r)", line) for line in lines[:-1])
    assert "" not in lines


@settings(max_examples=300)
@given(
    TEXTS,
    st.lists(st.tuples(PLACES, PLACES, TEXTS), min_size=1, max_size=6),
    st.sampled_from(list(PositionEncoding)),
)
def test_edits_do_what_they_do_to_a_string(
    text: str, edits: list[tuple[tuple[int, int], tuple[int, int], str]], encoding: PositionEncoding
) -> None:
    buffer = TextBuffer(text)
    for start, end, new in edits:
        first, last = sorted((start, end))
        begin, stop = offset(text, *first, encoding), offset(text, *last, encoding)
        text = text[:begin] + new + text[stop:]
        buffer.replace(Position(*start), Position(*end), new, encoding)
        assert buffer.text == text
        assert [buffer.line(number) for number in range(len(split_lines(text)) + 1)] == [*split_lines(text), ""]


@given(TEXTS, st.integers(0, 40), st.sampled_from(list(PositionEncoding)))
def test_columns_convert_there_and_back(text: str, index: int, encoding: PositionEncoding) -> None:
    line = text.replace("\n", "").replace("\r", "")
    index = min(index, len(line))
    column = to_column(line, index, encoding)
    assert column == units(line[:index], encoding)
    assert to_index(line, column, encoding) == index
    for other in PositionEncoding:
        assert convert_column(line, column, encoding, other) == units(line[:index], other)


@pytest.mark.parametrize("encoding", [PositionEncoding.UTF8, PositionEncoding.UTF16])
def test_columns_of_a_line_that_is_a_whole_file(encoding: PositionEncoding) -> None:
    """They are found at about the price of encoding the line: every keystroke asks for some."""
    odd = "aé😀\ud83d\ude00b" * 1_000
    for index in (*range(1_020, 1_030), 4_999):
        assert to_index(odd, units(odd[:index], encoding), encoding) == index
        assert to_index(odd, units(odd[: index + 1], encoding) - 1, encoding) == index
    line = "aé😀b" * 100_000
    column = to_column(line, len(line), encoding)
    codec = "utf-8" if encoding is PositionEncoding.UTF8 else "utf-16-le"

    def fastest(work: Callable[[], object]) -> float:
        return min(timeit.repeat(work, number=1, repeat=5))

    asked = fastest(lambda: (to_index(line, column, encoding), to_column(line, len(line), encoding)))
    assert asked < 20 * fastest(lambda: line.encode(codec, "surrogatepass"))


@pytest.mark.parametrize(("column", "index"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (99, 3), (-1, 0)])
def test_s05_a_column_inside_a_character_is_moved_before_it(column: int, index: int) -> None:
    """S05: columns inside a surrogate pair, past the end or below zero do not raise."""
    assert to_index("a😀b\r\n", column, PositionEncoding.UTF16) == index


@given(TEXTS)
def test_s07_text_for_the_engine_has_a_utf8_form_and_the_same_utf16_columns(text: str) -> None:
    """S07: lone surrogates are replaced, pairs sent as two halves are joined, and no column moves."""
    clean = without_surrogates(text)
    clean.encode("utf-8")
    assert units(clean, PositionEncoding.UTF16) == units(text, PositionEncoding.UTF16)
