"""Text positions as LSP means them, and the buffer of an open document.

A line ends with `\\n`, `\\r\\n` or `\\r` and with nothing else (`str.splitlines` cuts at form feeds and U+2028 too).
Columns count UTF-8 bytes, UTF-16 units or code points, whichever was negotiated. A column past the end of its line, or
inside a character, is moved to the nearest boundary before it; a line past the end means the end of the text. Nothing
here raises for any position, and lone surrogates are ordinary characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

# Units are counted by the block in C: a line may be a whole file, and every keystroke in it asks for a column.
_BLOCK = 1_024
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")


class PositionEncoding(Enum):
    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


@dataclass(frozen=True, slots=True)
class Position:
    """A 0-based line and a column in units of the encoding at hand."""

    line: int
    column: int


def split_lines(text: str) -> list[str]:
    """The lines of `text` with their ends. Joined again they are `text`; an empty text has no line."""
    if "\r" not in text:
        lines = [line + "\n" for line in text.split("\n")]
        last = lines.pop()[:-1]
        return [*lines, last] if last else lines
    return _LINE.findall(text)


def char_units(char: str, encoding: PositionEncoding) -> int:
    """How many units one character takes."""
    code = ord(char)
    match encoding:
        case PositionEncoding.UTF32:
            return 1
        case PositionEncoding.UTF16:
            return 2 if code > 0xFFFF else 1
        case PositionEncoding.UTF8:
            return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def to_index(line: str, column: int, encoding: PositionEncoding) -> int:
    """The index into `line` of a column, never past the line's end mark."""
    content = line.rstrip("\r\n")
    if column <= 0:
        return 0
    if content.isascii() or encoding is PositionEncoding.UTF32:
        return min(column, len(content))
    for start in range(0, len(content), _BLOCK):
        block = content[start : start + _BLOCK]
        units = _units(block, encoding)
        if units > column:
            return start + _index_in(block, column, encoding)
        column -= units
    return len(content)


def _index_in(block: str, column: int, encoding: PositionEncoding) -> int:
    for index, char in enumerate(block):
        column -= char_units(char, encoding)
        if column < 0:
            return index
    return len(block)


def _units(text: str, encoding: PositionEncoding) -> int:
    if encoding is PositionEncoding.UTF16:
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def to_column(line: str, index: int, encoding: PositionEncoding) -> int:
    """The column of an index into `line`."""
    before = line[: max(index, 0)]
    if before.isascii() or encoding is PositionEncoding.UTF32:
        return len(before)
    return _units(before, encoding)


def convert_column(line: str, column: int, source: PositionEncoding, target: PositionEncoding) -> int:
    """`column` of `line`, counted in units of `source`, in units of `target`."""
    if source is target or line.isascii():
        return min(column, len(line.rstrip("\r\n"))) if line.isascii() else column
    return to_column(line, to_index(line, column, source), target)


def without_surrogates(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD, so that it has a UTF-8 form.

    Its UTF-16 columns stay what they were.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class TextBuffer:
    """The text of one open document, changed in place. One edit costs one join of the lines, not a parse."""

    __slots__ = ("_lines", "_text")

    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)
        self._text: str | None = text

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def line(self, number: int) -> str:
        """Line `number` with its end, "" past the last one."""
        return self._lines[number] if 0 <= number < len(self._lines) else ""

    def replace_all(self, text: str) -> None:
        self._lines = split_lines(text)
        self._text = text

    def replace(self, start: Position, end: Position, new_text: str, encoding: PositionEncoding) -> None:
        """Put `new_text` in place of what lies between two positions (in either order)."""
        first, last = (start, end) if (start.line, start.column) <= (end.line, end.column) else (end, start)
        first_line, first_index = self._locate(first, encoding)
        last_line, last_index = self._locate(last, encoding)
        middle = self.line(first_line)[:first_index] + new_text + self.line(last_line)[last_index:]
        # A `\r` and a `\n` brought together become one line end. Only the line before can be hit: an index never lies
        # behind a line end, so the last line keeps its own.
        if middle.startswith("\n") and first_line > 0 and self._lines[first_line - 1].endswith("\r"):
            first_line -= 1
            middle = self._lines[first_line] + middle
        self._lines[first_line : last_line + 1] = split_lines(middle)
        self._text = None

    def _locate(self, position: Position, encoding: PositionEncoding) -> tuple[int, int]:
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            # The position after the last line end is a line of its own to LSP, but holds no text.
            if self._lines and not self._lines[-1].endswith(("\n", "\r")):
                return len(self._lines) - 1, len(self._lines[-1])
            return len(self._lines), 0
        return position.line, to_index(self._lines[position.line], position.column, encoding)
