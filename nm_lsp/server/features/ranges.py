"""Places of a file as LSP ranges that lie inside the text, however old the span is that they come from."""

from __future__ import annotations

from lsprotocol import types

from nm_lsp.base.text import Position, PositionEncoding, convert_column, split_lines, to_column, without_surrogates
from nm_lsp.graph.model import Span


class TextRanges:
    """Ranges in one text. `encoding` is the client's unit of columns."""

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self._lines = split_lines(without_surrogates(text))
        self._encoding = encoding

    def first_line(self) -> types.Range:
        return types.Range(types.Position(0, 0), self._end_of(0))

    def of(self, span: Span) -> types.Range:
        """The range of a span; the first line where the text no longer has its lines."""
        if span.start_line >= max(len(self._lines), 1):
            return self.first_line()
        start = self._position(span.start_line, span.start_col)
        end = self._position(span.end_line, span.end_col)
        return types.Range(start, max(start, end, key=lambda at: (at.line, at.character)))

    def _position(self, line: int, byte_column: int) -> types.Position:
        if line >= len(self._lines):
            return self._end_of(max(len(self._lines) - 1, 0))
        column = convert_column(self._lines[line], byte_column, PositionEncoding.UTF8, self._encoding)
        return types.Position(line, min(column, self._end_of(line).character))

    def _end_of(self, line: int) -> types.Position:
        if line >= len(self._lines):
            return types.Position(0, 0)
        content = self._lines[line].rstrip("\r\n")
        return types.Position(line, to_column(content, len(content), self._encoding))


def touches(span: Span, start: Position, end: Position) -> bool:
    """Whether the lines of a span and of a range have one in common."""
    return span.start_line <= end.line and start.line <= span.end_line
