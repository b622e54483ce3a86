"""Where lines begin, as LSP counts them: a line ends at LF, CRLF or a lone CR. Pure."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from nm_lsp.graph.model import Span


class LineTable:
    """Byte offsets to lines and columns for one text in UTF-8; both count from 0."""

    __slots__ = ("starts",)

    def __init__(self, data: bytes) -> None:
        # bytes.splitlines knows exactly the three line ends of LSP, and none of those that str.splitlines adds.
        self.starts = [0, *accumulate(map(len, data.splitlines(keepends=True)))]
        if data and not data.endswith((b"\n", b"\r")):
            self.starts.pop()

    def line(self, byte: int) -> int:
        return bisect_right(self.starts, byte) - 1

    def span(self, start: int, end: int) -> Span:
        starts = self.starts
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, end, first) - 1
        return Span(start, end, first, start - starts[first], last, end - starts[last])
