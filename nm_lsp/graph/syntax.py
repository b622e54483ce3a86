"""Parsing within a limit. tree-sitter itself neither recurses nor raises; what it cannot do is be quick on every input.

Layer 1 reads no clock: either the caller passes one, or the limit is counted in the parser's own progress steps and in
the bytes it reads, which makes the outcome the same on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tree_sitter import Language, Parser, Query, QueryCursor, Tree
from tree_sitter import Node as SyntaxNode

from nm_lsp.base.errors import NmError

# Progress steps in a second of parsing: 65,000 (Python) to 99,000 (JavaScript) were measured.
STEPS_PER_SECOND = 60_000
# A scanner that looks ahead makes no steps meanwhile: at each line of a long comment Python's reads on to its end.
# 70 MB in a second were measured; an ordinary file is read less than twice.
BYTES_PER_SECOND = 60_000_000
CHUNK = 16_384


class Unparsable(NmError):
    """A source file that cannot be taken into the graph; the message is the reason, for people to read."""

    code = "unparsable"


_TOO_LONG = "the file took longer to parse than the time limit allows"


class Limit:
    """Says when to stop. `exceeded` holds afterwards whether it did."""

    __slots__ = ("_bytes_left", "_clock", "_left", "_until", "exceeded")

    def __init__(self, seconds: float, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._until = clock() + seconds if clock else 0.0
        self._left = int(seconds * STEPS_PER_SECOND)
        self._bytes_left = int(seconds * BYTES_PER_SECOND)
        self.exceeded = False

    def step(self) -> bool:
        """One progress step; true when the work must end."""
        self._left -= 1
        late = self._clock() > self._until if self._clock else self._left < 0
        self.exceeded = self.exceeded or late
        return self.exceeded

    def read(self, n_bytes: int) -> bool:
        """So much was read; true when the work must end."""
        self._bytes_left -= n_bytes
        self.exceeded = self.exceeded or self._bytes_left < 0
        return self.exceeded


def parse_bytes(data: bytes, language: Language, limit: Limit) -> Tree:
    """The syntax tree of `data`. Raises `Unparsable` when the limit is reached first."""
    window = _windows.pop() if _windows else _Window()
    is_parsed = False

    def read(offset: int, _point: object) -> memoryview | bytes:
        if is_parsed:
            # The text of a node, which is asked for here too and crashes the interpreter where it is not bytes.
            return data[offset : offset + CHUNK]
        # What looks ahead can only be stopped by the end of the file.
        end = offset if limit.read(min(CHUNK, len(data) - offset)) else offset + CHUNK
        return window.show(data[offset:end])

    try:
        tree = Parser(language).parse(read, encoding="utf8", progress_callback=lambda _offset, _has_error: limit.step())
    except ValueError as problem:
        if limit.exceeded:
            raise Unparsable(_TOO_LONG) from problem
        raise
    finally:
        is_parsed = True
        _windows.append(window)
    if limit.exceeded:
        raise Unparsable(_TOO_LONG)
    return tree


class _Window:
    """Memory through which a parser is shown its source, a chunk at a time.

    py-tree-sitter (0.25 and 0.26) never gives up what a read callback returned. Handed the source itself, every parse
    would leave a copy of it behind; this way the same few views are left behind again and again.
    """

    __slots__ = ("_memory", "_views")

    def __init__(self) -> None:
        self._memory = bytearray(CHUNK)
        self._views: dict[int, memoryview] = {}

    def show(self, chunk: bytes) -> memoryview:
        """The bytes of `chunk`, until the next call."""
        size = len(chunk)
        self._memory[:size] = chunk
        view = self._views.get(size)
        if view is None:
            view = self._views[size] = memoryview(self._memory)[:size]
        return view


_windows: deque[_Window] = deque()
"""Those that no parse uses now: there are never more than parses at one time."""


def captures_of(root: SyntaxNode, query: Query) -> dict[str, list[SyntaxNode]]:
    """All captures of a query; the lists are in no promised order.

    Without a limit: a progress callback here crashes the interpreter (tree-sitter 0.26.1), and running a query costs
    less than the parse that was within its limit.
    """
    return QueryCursor(query).captures(root)
