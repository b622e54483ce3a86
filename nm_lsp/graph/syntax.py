"""Parsing within a limit. tree-sitter itself neither recurses nor raises; what it cannot do is be quick on every input.

Layer 1 reads no clock: either the caller passes one, or the limit is counted in the parser's own progress steps, which
makes the outcome the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Language, Parser, Query, QueryCursor, Tree
from tree_sitter import Node as SyntaxNode

from nm_lsp.base.errors import NmError

# Progress steps in a second of parsing: 65,000 (Python) to 99,000 (JavaScript) were measured.
STEPS_PER_SECOND = 60_000


class Unparsable(NmError):
    """A source file that cannot be taken into the graph; the message is the reason, for people to read."""

    code = "unparsable"


class Limit:
    """Says when to stop. `exceeded` holds afterwards whether it did."""

    __slots__ = ("_clock", "_left", "_until", "exceeded")

    def __init__(self, seconds: float, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._until = clock() + seconds if clock else 0.0
        self._left = int(seconds * STEPS_PER_SECOND)
        self.exceeded = False

    def step(self) -> bool:
        """One progress step; true when the work must end."""
        self._left -= 1
        self.exceeded = self._clock() > self._until if self._clock else self._left < 0
        return self.exceeded


def parse_bytes(data: bytes, language: Language, limit: Limit) -> Tree:
    """The syntax tree of `data`. Raises `Unparsable` when the limit is reached first."""
    try:
        return Parser(language).parse(
            lambda offset, _point: data[offset:],
            encoding="utf8",
            progress_callback=lambda _offset, _has_error: limit.step(),
        )
    except ValueError as problem:
        if limit.exceeded:
            raise Unparsable("the file took longer to parse than the time limit allows") from problem
        raise


def captures_of(root: SyntaxNode, query: Query) -> dict[str, list[SyntaxNode]]:
    """All captures of a query; the lists are in no promised order.

    Without a limit: a progress callback here crashes the interpreter (tree-sitter 0.26.1), and running a query costs
    less than the parse that was within its limit.
    """
    return QueryCursor(query).captures(root)
