"""What the rules of staleness ask of a repository and of a comparison of code. Protocols only.

`nm_lsp.git.Repository` is a `History`; `nm_lsp.graph.same_code` does the comparing; tests bring fakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from nm_lsp.decisions.changes import Difference
from nm_lsp.decisions.model import Content


class History(Protocol):
    """A repository as this clone has it. Every method raises `GitUnavailable` where git cannot answer."""

    def commits(self, tips: Iterable[str], known: Iterable[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        """(commit, parents) of all commits reachable from `tips` but not from `known`, children before parents."""
        ...

    def differences(self, pairs: Sequence[tuple[str | None, str]]) -> Sequence[Difference]:
        """Per (older commit, or None for the empty tree before a root commit; newer commit) what differs."""
        ...

    def files(self, commit: str, under: str = "") -> dict[str, Content]:
        """Path → content of all files of `commit`, or of those below the folder `under` (`src/auth/`)."""
        ...

    def contents(self, commit: str, paths: Iterable[str]) -> dict[str, Content]:
        """Path → content at `commit` of those of `paths` that are files there."""
        ...

    def present(self, objects: Sequence[str]) -> set[str]:
        """Those of `objects` that this clone holds."""
        ...

    def blob(self, content: Content) -> bytes | None:
        """The bytes of a file; None where this clone does not hold them."""
        ...


class CodeComparison(Protocol):
    """ "Same code" as the words of the design define it. `path` only says which language the text is in."""

    def same_file(self, path: str, seen: bytes, now: bytes) -> bool:
        """Whether two texts of a file are the same code."""
        ...

    def symbol_text(self, path: str, name: str, text: bytes) -> bytes | None:
        """The text of the symbol with the qualified `name` in a file; None if there is none."""
        ...

    def same_symbol(self, path: str, seen: bytes, now: bytes) -> bool:
        """Whether two texts of a symbol are the same code."""
        ...
