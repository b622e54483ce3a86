"""Markdown and reStructuredText by section: small scanners over lines, no grammar.

A section runs from its heading to the next heading of the same or a higher level and so contains its subsections. Code
written in a document as code (`name`, ``name``, :func:`name`) is a reference of the kind "documents". Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nm_lsp.graph.lines import LineTable
from nm_lsp.graph.model import EdgeKind, Node, NodeKind, ParsedFile, Reference
from nm_lsp.graph.naming import Names, content_hash

_MAX_TITLE = 120
_MAX_DOC = 1_000
# No pattern here may be worse than linear: a line can be a megabyte.
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")
# What cannot be the text of a setext heading: other blocks, or nothing.
_NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}(?:[-*+>|]|\d+[.)])(?:\s|$)| {0,3}#{1,6}\s| {0,3}<")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")
_MARKDOWN_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_RST_CODE = re.compile(
    r"``([^`\n]+)``|:(?:[a-z]{1,20}:){0,3}(?:class|func|meth|mod|attr|exc|data|const|obj|ref|setting):`([^`\n]+)`"
)
_IDENTIFIER = re.compile(r"~?[.]?([A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_][\w$]*)*)(?:\(\))?$")
_INLINE_MARKUP = re.compile(r"[`*]|\[([^\]]*)\]\([^)]*\)|:[a-z:]+:(?=`)")


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int  # from 1
    title: str
    first_line: int  # with an overline, that of the overline
    title_line: int
    last_line: int


def parse_document(path: str, data: bytes, language: str, *, is_generated: bool) -> ParsedFile:
    """A document as its file node and one node a section."""
    table = LineTable(data)
    bounds = [*table.starts, len(data)]
    lines = [data[a:b].decode("utf-8", "replace").rstrip("\r\n") for a, b in pairwise(bounds)]
    scan = _markdown_headings if language == "markdown" else _rst_headings
    headings = list(scan(lines))
    code_lines = _code_lines(lines) if language == "markdown" else frozenset[int]()
    # In reStructuredText the text of a literal block or directive is indented.
    no_prose = code_lines if language == "markdown" else _indented_lines(lines)
    names = Names(path)
    file_name = path.rsplit("/", 1)[-1]
    first = headings[0].first_line if headings else len(lines)
    nodes = [
        Node(
            names.id_of(""), NodeKind.FILE, file_name, "", path, language, table.span(0, len(data)), table.span(0, 0),
            file_name, _first_paragraph(lines, 0, first, no_prose), (), content_hash(data), None,
        )
    ]  # fmt: skip
    open_sections: list[tuple[int, int]] = []  # (level, index into nodes)
    for index, heading in enumerate(headings):
        while open_sections and open_sections[-1][0] >= heading.level:
            open_sections.pop()
        parent = open_sections[-1][1] if open_sections else 0
        start, end = bounds[heading.first_line], _section_end(headings, index, bounds)
        next_line = headings[index + 1].first_line if index + 1 < len(headings) else len(lines)
        outer = nodes[parent].qualified_name
        qualified = f"{outer}.{heading.title}" if outer else heading.title
        title_start = bounds[heading.title_line]
        title_end = title_start + len(lines[heading.title_line].encode())
        nodes.append(
            Node(
                names.id_of(qualified), NodeKind.SECTION, heading.title, qualified, path, language,
                table.span(start, end), table.span(title_start, title_end), lines[heading.title_line].strip()[:300],
                _first_paragraph(lines, heading.last_line + 1, next_line, no_prose), (), content_hash(data[start:end]),
                parent,
            )
        )  # fmt: skip
        open_sections.append((heading.level, index + 1))
    references = tuple(_mentions(lines, headings, language, code_lines))
    return ParsedFile(path, language, tuple(nodes), references, (), is_generated, None)


def _section_end(headings: Sequence[_Heading], index: int, bounds: Sequence[int]) -> int:
    level = headings[index].level
    for later in headings[index + 1 :]:
        if later.level <= level:
            return bounds[later.first_line]
    return bounds[-1]


def _title(text: str) -> str:
    plain = " ".join(_INLINE_MARKUP.sub(lambda found: found[1] or "", text[: 4 * _MAX_TITLE]).split())
    return plain[:_MAX_TITLE]


def _without_closing_marks(text: str) -> str:
    """An ATX heading may end in `#`s of its own, set off by a blank."""
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else text


def _fenced(lines: Sequence[str]) -> Iterator[tuple[int, str, bool]]:
    """Each line with its number and whether it is inside fenced code or front matter."""
    fence = ""
    start = 0
    if lines and lines[0].rstrip() == "---":
        close = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
        for number in range(close + 1 if close else 0):
            yield number, lines[number], True
        start = close + 1 if close else 0
    for number in range(start, len(lines)):
        line = lines[number]
        found = _FENCE.match(line)
        if fence:
            closes = found and found[1].startswith(fence) and not found[2].strip()
            yield number, line, True
            if closes:
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in line[found.end(1) :]):
            fence = found[1]
            yield number, line, True
        else:
            yield number, line, False


def _code_lines(lines: Sequence[str]) -> frozenset[int]:
    return frozenset(number for number, _, inside in _fenced(lines) if inside)


def _indented_lines(lines: Sequence[str]) -> frozenset[int]:
    return frozenset(number for number, line in enumerate(lines) if line[:1].isspace())


def _markdown_headings(lines: Sequence[str]) -> Iterator[_Heading]:
    paragraph = -1  # first line of the paragraph that a setext underline would make a heading
    for number, line, inside in _fenced(lines):
        if inside:
            paragraph = -1
            continue
        if atx := _ATX.match(line):
            title = _title(_without_closing_marks(line[atx.end() :].strip()))
            if title:
                yield _Heading(len(atx[1]), title, number, number, number)
            paragraph = -1
        elif paragraph >= 0 and (setext := _SETEXT.match(line)):
            title = _title(" ".join(lines[paragraph:number]))
            if title:
                yield _Heading(1 if setext[1][0] == "=" else 2, title, paragraph, paragraph, number)
            paragraph = -1
        elif _NO_PARAGRAPH.match(line):
            # A list item's or quotation's text may go on, so an underline below it is no heading either.
            paragraph = -1 if not line.strip() else -2
        elif paragraph == -1:
            paragraph = number


def _rst_headings(lines: Sequence[str]) -> Iterator[_Heading]:
    """Titles by their adornments; a level is the order in which its style (character, overline) first appears."""
    styles: list[tuple[str, bool]] = []
    number = 0
    while number < len(lines):
        line = lines[number].rstrip()
        over = _ADORNMENT.match(line)
        heading = None
        if over and number + 2 < len(lines) and lines[number + 2].rstrip() == line and lines[number + 1].strip():
            if len(lines[number + 1].rstrip()) <= len(line):
                heading = (line[0], True), number, number + 1, number + 2
        elif line and not line[0].isspace() and not over and number + 1 < len(lines):
            under = lines[number + 1].rstrip()
            blank_before = number == 0 or not lines[number - 1].strip()
            if blank_before and _ADORNMENT.match(under) and len(under) >= len(line):
                heading = (under[0], False), number, number, number + 1
        if heading is None:
            number += 1
            continue
        style, first, title_line, last = heading
        if style not in styles:
            styles.append(style)
        title = _title(lines[title_line])
        if title:
            yield _Heading(styles.index(style) + 1, title, first, title_line, last)
        number = last + 1


def _first_paragraph(lines: Sequence[str], first: int, end: int, no_prose: frozenset[int]) -> str:
    """The first paragraph of prose among the lines; code, front matter and directives are none."""
    kept: list[str] = []
    for number in range(first, end):
        text = lines[number].strip()
        if text and number not in no_prose:
            kept.append(text)
        elif kept:
            if not kept[0].startswith(".. "):
                break
            kept = []
    return "\n".join(kept)[:_MAX_DOC]


def _mentions(
    lines: Sequence[str], headings: Sequence[_Heading], language: str, code_lines: frozenset[int]
) -> Iterator[Reference]:
    pattern = _MARKDOWN_CODE if language == "markdown" else _RST_CODE
    section = 0
    seen: set[tuple[int, str]] = set()
    for number, line in enumerate(lines):
        while section < len(headings) and headings[section].first_line <= number:
            section += 1
        if "`" not in line or number in code_lines:
            continue
        for found in pattern.finditer(line):
            written = found[1] if language == "markdown" or found[1] else found[2]
            if "<" in written and written.endswith(">"):
                written = written.rpartition("<")[2][:-1]
            name = _IDENTIFIER.match(written.strip())
            if name is None or len(name[1]) < 3:
                continue
            target = name[1].replace("::", ".").replace("#", ".")
            if (section, target) not in seen:
                seen.add((section, target))
                yield Reference(section, EdgeKind.DOCUMENTS, target, number)
