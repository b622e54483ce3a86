"""Text of decisions and repositories as data: in Markdown nothing of it is markup, in plain text nothing is hidden.

Guarantees for any text: no link (no `command:`, `file:` or bare URL becomes one), no image, no HTML, no heading, list,
table or code block of its own; control and bidirectional characters are written out like `\\u202e`; lengths are capped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nm_lsp.decisions.validation import escaped

MAX_TITLE = 200
MAX_LINE = 500
MAX_PROSE = 2_000
MAX_TEXT = 10_000
"""Of one hover."""

_ALWAYS = re.compile(r"[\\`*{}\[\]<>~|$@]")
# An underscore inside a word is no emphasis, and most names have some.
_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_URL = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_SCHEME = re.compile(r"\b(command|file|javascript|data|vscode(?:-[a-z]+)?):", re.IGNORECASE)
_LINE_START = re.compile(r"^(\s*)(?:([#+=-])|(\d+)([.)]))")
_BLANKS = re.compile(r"^[ \t]+")


@dataclass(frozen=True, slots=True)
class Markup:
    """Writes text for one client: Markdown, or plain text where the client shows no Markdown."""

    is_markdown: bool

    def line(self, text: str, limit: int = MAX_LINE) -> str:
        """`text` as one line."""
        short = one_line(text, limit)
        return _markdown(short) if self.is_markdown else short

    def strong(self, text: str, limit: int = MAX_TITLE) -> str:
        return f"**{self.line(text, limit)}**" if self.is_markdown else self.line(text, limit)

    def name(self, text: str) -> str:
        """An id or a name of code, which the caller knows to be harmless or wants as code."""
        short = one_line(text, MAX_TITLE)
        if not self.is_markdown:
            return short
        # A code span cannot hold its own fence.
        return f"`{short}`" if "`" not in short else _markdown(short)

    def prose(self, text: str, limit: int = MAX_PROSE) -> str:
        """`text` with its line ends."""
        short = cut(escaped(text[: 4 * limit]), limit)
        if not self.is_markdown:
            return short
        return "  \n".join(_markdown(_BLANKS.sub(_hard_blanks, line)) for line in short.split("\n"))

    def item(self, text: str) -> str:
        """A list item of text that is written already."""
        return f"- {text}"

    def rule(self) -> str:
        return "\n\n---\n\n" if self.is_markdown else "\n\n"

    def paragraphs(self, *parts: str) -> str:
        return "\n\n".join(part for part in parts if part)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """`text` in one readable line of at most `limit` characters."""
    return cut(escaped(text[: 4 * limit + 100], one_line=True), limit)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _hard_blanks(match: re.Match[str]) -> str:
    # Four blanks would begin a block of code.
    return "\u00a0" * len(match[0].expandtabs(4))


def _markdown(line: str) -> str:
    line = _ALWAYS.sub(r"\\\g<0>", line)
    line = _EDGE_UNDERSCORE.sub(r"\\_", line)
    line = _ENTITY.sub(r"\\&", line)
    line = _URL.sub(r"\\\g<0>", line)
    line = _SCHEME.sub(r"\1\\:", line)
    return _LINE_START.sub(_line_start, line)


def _line_start(match: re.Match[str]) -> str:
    blanks, sign, number, point = match.groups()
    return f"{blanks}\\{sign}" if sign else f"{blanks}{number}\\{point}"
