"""Where lines begin, as LSP counts them: a line ends at LF, CRLF or a lone CR. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right

from nm_lsp.graph.model import Span

_LINE_END = re.compile(rb"\r\n|\r|\n")


class LineTable:
    """Byte offsets to lines and columns for one text in UTF-8; both count from 0."""

    __slots__ = ("starts",)

    def __init__(self, data: bytes) -> None:
        self.starts = [0]
        if b"\r" in data:
            self.starts += [found.end() for found in _LINE_END.finditer(data)]
            return
        at = data.find(b"\n") + 1
        while at:
            self.starts.append(at)
            at = data.find(b"\n", at) + 1

    def line(self, byte: int) -> int:
        return bisect_right(self.starts, byte) - 1

    def span(self, start: int, end: int) -> Span:
        starts = self.starts
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, end, first) - 1
        return Span(start, end, first, start - starts[first], last, end - starts[last])
