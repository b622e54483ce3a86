"""One source file, parsed: its text, tree, what the language's query captured, and its comments. Pure."""

from __future__ import annotations

from nm_lsp.graph.comments import comment_text
from nm_lsp.graph.languages.spec import CodeLanguage
from nm_lsp.graph.lines import LineTable
from nm_lsp.graph.syntax import Limit, captures_of, parse_bytes


class Source:
    """Made once a file. Raises `Unparsable` when the limit is reached."""

    __slots__ = ("captures", "comments", "data", "has_errors", "language", "lines", "path", "tree")

    def __init__(self, path: str, data: bytes, language: CodeLanguage, limit: Limit) -> None:
        self.path = path
        self.data = data
        self.language = language
        self.lines = LineTable(data)
        # The captured nodes are valid only while their tree is held.
        self.tree = parse_bytes(data, language.grammar, limit)
        self.has_errors = self.tree.root_node.has_error
        self.captures = captures_of(self.tree.root_node, language.query)
        self.comments = self.spans("comment")

    def spans(self, capture: str) -> list[tuple[int, int]]:
        """The byte spans of a capture, outer before inner, in source order, which the query itself does not promise."""
        spans = [(node.start_byte, node.end_byte) for node in self.captures.get(capture, ())]
        spans.sort(key=lambda span: (span[0], -span[1]))
        return spans

    def comment(self, start: int, end: int) -> str:
        """The words of the comment there."""
        return comment_text(self.data[start:end].decode("utf-8", "replace"))
