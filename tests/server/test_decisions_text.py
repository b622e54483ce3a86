"""Text and places of decisions, without a server: nothing of it is markup, every range lies inside its text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.base.text import PositionEncoding, split_lines, to_column
from nm_lsp.engine.decision_requests import DecisionRow, Mark, Marks
from nm_lsp.graph.model import Span
from nm_lsp.server.features.markup import Markup, one_line
from nm_lsp.server.features.news import MANY, messages_of
from nm_lsp.server.features.ranges import TextRanges

MARKDOWN, PLAIN = Markup(is_markdown=True), Markup(is_markdown=False)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("snake_case_name stays", "snake_case_name stays"),
        ("_private and __dunder__", r"\_private and \_\_dunder\_\_"),
        ("*bold* `code` ~gone~", r"\*bold\* \`code\` \~gone\~"),
        ("[a](command:b)", r"\[a\](command\:b)"),
        ("https://e.org", r"https\://e.org"),
        ("www.e.org", r"www\.e.org"),
        ("a & b &amp; c &#60;", r"a & b \&amp; c \&#60;"),
        ("# no heading", r"\# no heading"),
        ("1. no list", r"1\. no list"),
        ("-- no rule", r"\-- no rule"),
        ("C:\\x", r"C:\\x"),
        ("a\u202eb\0", r"a\\u202eb\\u0000"),
    ],
)
def test_markdown_is_escaped(text: str, written: str) -> None:
    assert MARKDOWN.line(text) == written


@given(st.text(max_size=400))
def test_any_text_is_one_harmless_line(text: str) -> None:
    for line in (MARKDOWN.line(text), PLAIN.line(text), one_line(text)):
        assert len(line.splitlines()) <= 1
        assert not re.search("[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]", line)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*<\[\]|]", MARKDOWN.line(text))
    assert len(one_line(text * 100)) <= 500
    assert len(MARKDOWN.prose(text * 100)) < 10_000


@given(
    st.text(alphabet="ab\n\r\t é😀\u2028", max_size=40),
    st.tuples(*(st.integers(0, 50) for _ in range(6))),
    st.sampled_from(PositionEncoding),
)
def test_every_range_lies_inside_the_text(text: str, numbers: tuple[int, ...], encoding: PositionEncoding) -> None:
    lines = split_lines(text) or [""]
    for where in (TextRanges(text, encoding).of(Span(*numbers)), TextRanges(text, encoding).first_line()):
        for at in (where.start, where.end):
            assert at.line < len(lines)
            content = lines[at.line].rstrip("\r\n")
            assert at.character <= to_column(content, len(content), encoding)
        assert (where.start.line, where.start.character) <= (where.end.line, where.end.character)


def row(number: int, *, reason: str = "changed", commit: str = "1234567890") -> DecisionRow:
    return DecisionRow(
        id=f"nm-{number:08}", revision=1, title=f"Title {number}", status="stale", status_reason="it was",
        reason=reason, severity="warning", stale_commit=commit, stale_path="a.py", reverted=False,
        acknowledged=False, anchors=(),
        type=None, confidence=None, author=None, tags=(), superseded_by=None, recorded_at="", recorded_commit=None,
        changed_at="",
    )  # fmt: skip


def marks(*rows: DecisionRow, lost: tuple[DecisionRow, ...] = ()) -> Marks:
    shown = tuple(Mark("decision-stale", "warning", each, each.title, None, None) for each in rows)
    return Marks((None, 0), False, {"a.py": shown}, lost, 0, 0, {})


def test_messages_are_few() -> None:
    few, many = marks(*map(row, range(MANY - 1))), marks(*map(row, range(MANY)))
    assert list(messages_of(None, many, "nm")) == []
    assert list(messages_of(marks(), few, "nm")) == []
    (text,) = messages_of(marks(), many, "nm")
    assert text.startswith(f"{MANY} decisions became stale: “Title 0” (nm-00000000)")
    assert list(messages_of(many, many, "nm")) == []
    lost = (row(1), row(2), row(3, commit="abcdefabcdef"))
    assert len(list(messages_of(None, marks(lost=lost), "nm"))) == 2
    assert list(messages_of(marks(lost=lost), marks(lost=lost), "nm")) == []
    assert "all that 2 decisions govern" in next(messages_of(marks(), marks(lost=lost), "nm"))
