"""The words inside comments and docstrings: markers off, indentation off. Pure functions over text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc

RATIONALE_MARKS = (b"WHY:", b"NOTE:", b"HACK:", b"TODO:", b"DECISION:")
_RATIONALE_START = re.compile(r"(?:WHY|NOTE|HACK|TODO|DECISION):")
_LINE_MARKER = re.compile(r"\s*(?://[/!]?|#+!?|--)[ \t]?")
_STAR = re.compile(r"^[ \t]*\*(?!/)[ \t]?", re.MULTILINE)
_STRING = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|')(.*?)(?:\1)?$", re.DOTALL)
# What a comment says to tools and interpreters, which makes it part of the code.
_DIRECTIVE = re.compile(
    rb"#!|\bgo:[a-z]+|//\s*\+build|^\W*type:|#\s*type:|\bnoqa\b|\beslint-|\bpragma\b|coding[:=]|\bfrozen_string_literal:|@ts-|"
    rb"\bmypy:|\bpylint:|\bpyright:|\bruff:|\bfmt:\s*(?:off|on|skip)|\bisort:|\bflake8:|\bshellcheck\s|\bnolint\b|"
    rb"\bprettier-ignore|\brubocop:|\bclang-format\s|\bistanbul\s|\bc8\s+ignore|\bNOLINT|@jsx|#\s*cython:|"
    rb"#\s*(?:include|cgo)\b|<reference\b"
)
_RULE = re.compile(r"[\s\-=*#~_/+]*")


def docstring_text(literal: str) -> str:
    """The text of a string literal that documents: without quotes, dedented. Escapes stay as written."""
    found = _STRING.match(literal)
    return cleandoc(found[2]).strip() if found else ""


def comment_text(comment: str) -> str:
    """One comment without its markers. A rule of dashes or the like is no text."""
    comment = comment.strip()
    if comment.startswith("/*"):
        body = comment[2:-2] if comment.endswith("*/") else comment[2:]
        text = cleandoc(_STAR.sub("", body.lstrip("*!"))).strip()
    elif comment.startswith("=begin"):
        text = cleandoc("\n".join(comment.splitlines()[1:-1]))
    else:
        text = "\n".join(_LINE_MARKER.sub("", line, count=1) for line in comment.splitlines()).rstrip()
    return "" if _RULE.fullmatch(text) else text


def is_directive(comment: bytes) -> bool:
    """Whether a comment is addressed to a tool: shebang, `go:build`, `type:`, `noqa`, `eslint-`, `pragma`, encoding."""
    return _DIRECTIVE.search(comment) is not None


def rationales(comments: Iterable[str]) -> Iterator[str]:
    """The reasons that consecutive comment texts give: each runs from its mark to the next one or to an empty line."""
    open_reason: list[str] = []
    for line in "\n".join(comments).splitlines():
        begins = _RATIONALE_START.match(line.lstrip())
        if open_reason and (begins or not line.strip()):
            yield " ".join(open_reason)
            open_reason = []
        if begins or open_reason:
            open_reason.append(line.strip())
    if open_reason:
        yield " ".join(open_reason)
