"""Whether two texts are the same code: what tells a decision's real change from a change of layout.

Two texts are the same code when their syntax trees are equal node by node: kind, nesting, text of the leaves. Comments
are left out except directives; docstrings are strings and count. What does not parse cleanly or has no grammar is
compared by bytes; in Markdown, YAML and Make only trailing blanks and line ends are layout.

Guarantee, in one direction: texts said to be the same code mean the same (for Python, `ast.dump` is equal). The other
way, syntax that changes no meaning (redundant parentheses, `;`, a trailing comma) still counts as a change. Pure; walks
iteratively, so that depth costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from tree_sitter import Node, Tree

from nm_lsp.base.recent import Recent
from nm_lsp.graph import model
from nm_lsp.graph.comments import is_directive
from nm_lsp.graph.extract import parse_data
from nm_lsp.graph.languages import CODE_LANGUAGES, DOCUMENT_LANGUAGES, code_language
from nm_lsp.graph.syntax import Limit, Unparsable, parse_bytes

_LINE_LAYOUT = frozenset({"markdown", "yaml", "make"})
_TIME_LIMIT_S = 5.0
# Files parsed last: several symbols of one are asked for, and one that was judged is shown next.
_parsed: Recent[tuple[model.Node, ...]] = Recent(256, 20_000_000)
_NODE_BYTES = 1_500
_BOM = b"\xef\xbb\xbf"
# Between the parts of these nodes a blank is text, not layout.
_VERBATIM = re.compile(r"string|heredoc|regex|char|text|content|symbol_array")
_LAYOUT_AFTER_ALL = re.compile(r"concatenated|context|character_class_escape")
# Python's statements whose later parts begin lines of their own, and those parts.
_COMPOUND = frozenset({"if_statement", "for_statement", "while_statement", "try_statement", "decorated_definition"})
_CLAUSE = re.compile(r"_clause$|^decorator$|^(?:class|function)_definition$")
# Where a name may be declared several times before its code comes, and what the code, or such a declaration, has.
_DECLARED_FIRST = frozenset({"typescript", "tsx", "c", "cpp", "python"})
_OVERLOAD = re.compile(rb"\s*@(?:[\w.]+\.)?overload\b")
BETWEEN_HOMONYMS = b"\0"
_CONTINUATION = re.compile(rb"\\\r?\n")
_INDENTATION = re.compile(rb"(?:[ \t\f]*\r?\n)*([ \t]+)\S")

_CLASS = (b"class X {\n", b"\n}")
# What may have to stand around a symbol for it to parse by itself, besides nothing.
_SURROUNDINGS: dict[str, tuple[tuple[bytes, bytes], ...]] = {
    "javascript": (_CLASS, (b"x = {\n", b"\n}")),
    "typescript": (_CLASS, (b"interface X {\n", b"\n}"), (b"x = {\n", b"\n}")),
    "tsx": (_CLASS, (b"interface X {\n", b"\n}"), (b"x = {\n", b"\n}")),
    "java": (_CLASS, (b"@interface X {\n", b"\n}")),
    "csharp": (_CLASS, (b"interface X {\n", b"\n}"), (b"class X { int\n", b";\n}")),
    "cpp": ((b"class X {\n", b"\n};"),),
    "rust": ((b"impl X {\n", b"\n}"), (b"trait X {\n", b"\n}")),
    "go": ((b"type X interface {\n", b"\n}"), (b"type (\n", b"\n)"), (b"const (\n", b"\n)"), (b"var (\n", b"\n)")),
    "php": (
        (b"<?php\n", b""), (b"<?php class X {\n", b"\n}"), (b"<?php interface X {\n", b"\n}"),
        (b"<?php class X { const\n", b";\n}"),
    ),
}  # fmt: skip

_Item = tuple[int, int, bytes]


def same_code(old: bytes, new: bytes, language: str | None) -> bool:
    """Whether two whole files are the same code. `language` is what `language_of` says of them."""
    if old == new:
        return True
    if language in _LINE_LAYOUT:
        return _bare_lines(old) == _bare_lines(new)
    if language not in CODE_LANGUAGES or old.startswith(_BOM) != new.startswith(_BOM):
        return False
    return bool(_equal_trees(old, new, language))


def same_symbol(old: bytes, new: bytes, language: str | None) -> bool:
    """Whether two texts that `symbol_text` gave are the same code, however deep each was indented."""
    if old == new:
        return True
    if language in _LINE_LAYOUT:
        return _bare_lines(old) == _bare_lines(new)
    if language not in CODE_LANGUAGES:
        return False
    if BETWEEN_HOMONYMS in old or BETWEEN_HOMONYMS in new:
        pairs = zip_longest(old.split(BETWEEN_HOMONYMS), new.split(BETWEEN_HOMONYMS), fillvalue=b"")
        return all(same_symbol(one, other, language) for one, other in pairs)
    if language == "python":
        # An indented text is read as a block. Cutting its indentation off would also change the strings in it.
        return bool(_equal_trees(old, new, language, _python_block(old), _python_block(new)))
    surroundings = _SURROUNDINGS.get(language, ())
    if language != "php":
        surroundings = ((b"", b""), *surroundings)
    for around in surroundings:
        equal = _equal_trees(old, new, language, around, around)
        if equal is not None:
            return equal
    return False


def nodes_of(data: bytes, language: str) -> tuple[model.Node, ...]:
    """The symbols of a text without byte-order mark, as of a file without a name; none where it cannot be parsed."""
    return _parsed.get(
        language, data, make=lambda: _nodes(data, language), weight=lambda nodes: _NODE_BYTES * len(nodes)
    )


def _nodes(data: bytes, language: str) -> tuple[model.Node, ...]:
    try:
        return parse_data("", data, language, Limit(_TIME_LIMIT_S, None)).nodes
    except Unparsable:
        return ()


def symbol_text(text: bytes, language: str | None, qualified_name: str) -> bytes | None:
    """The text of a symbol with its decorators and the comment above it, or None when the file has no such symbol.

    `qualified_name` is what follows `::` in a node id, `#2` for the second of several homonyms included. Where nothing
    but blanks precede the symbol on its line they are part of the text, so that its indentation is known. A name that
    is declared before its code comes (overloads, prototypes) means all of them, with `BETWEEN_HOMONYMS` between.
    """
    if language is None or (language not in CODE_LANGUAGES and language not in DOCUMENT_LANGUAGES):
        return None
    data = text.removeprefix(_BOM)
    nodes = nodes_of(data, language)
    first = next((node for node in nodes if node.id == f"::{qualified_name}"), None)
    if first is None:
        return None
    found = _text_of(first, data)
    if language in _DECLARED_FIRST and first.qualified_name == qualified_name and _is_declaration(found, language):
        homonyms = (node for node in nodes if node.qualified_name == qualified_name)
        return BETWEEN_HOMONYMS.join(_text_of(node, data) for node in homonyms)
    return found


def _text_of(node: model.Node, data: bytes) -> bytes:
    start = data.rfind(b"\n", 0, node.span.start_byte) + 1
    if data[start : node.span.start_byte].strip():
        start = node.span.start_byte
    return data[start : node.span.end_byte]


def _is_declaration(text: bytes, language: str) -> bool:
    return _OVERLOAD.match(text) is not None if language == "python" else b"{" not in text


def _bare_lines(text: bytes) -> list[bytes]:
    return [line.rstrip(b" \t") for line in text.splitlines()]


def _python_block(text: bytes) -> tuple[bytes, bytes]:
    """A statement before the text keeps a comment at its top inside the block."""
    indentation = _INDENTATION.match(text)
    return (b"if 1:\n" + indentation[1] + b"pass\n", b"\n") if indentation else (b"pass\n", b"\n")


def _equal_trees(
    old: bytes,
    new: bytes,
    language: str,
    around_old: tuple[bytes, bytes] = (b"", b""),
    around_new: tuple[bytes, bytes] = (b"", b""),
) -> bool | None:
    """Whether both trees are equal below what stands around; None when either does not parse cleanly."""
    streams: list[Iterator[_Item]] = []
    for text, (before, after) in ((old, around_old), (new, around_new)):
        data = before + text + after
        try:
            tree = parse_bytes(data, code_language(language).grammar, Limit(_TIME_LIMIT_S, None))
        except Unparsable:
            return None
        in_if = before.startswith(b"if 1:")
        if tree.root_node.has_error or (in_if and _leaves_the_block(tree)):
            return None
        streams.append(_canonical(tree, data, by_indentation=language == "python", in_if=in_if))
    return all(a == b for a, b in zip_longest(*streams))


def _leaves_the_block(tree: Tree) -> bool:
    return any(not child.type.endswith("comment") for child in tree.root_node.named_children[1:])


def _canonical(tree: Tree, data: bytes, *, by_indentation: bool, in_if: bool) -> Iterator[_Item]:
    """The tree as a sequence that is equal for equal trees only: per node its depth, kind and, for a leaf, text.

    Text between the parts of a node is part of the sequence unless it is layout, so no byte that could mean something
    is left out whatever the grammar makes of it. With `in_if`, the statements of the block inside the only `if`
    come as if they stood alone.
    """
    cursor = tree.walk()
    if in_if:
        block = tree.root_node.named_child(0).child_by_field_name("consequence")
        if block is None:
            return
        cursor = block.walk()
    top = cursor.node
    assert top is not None
    open_nodes = [_Open(top.type, top.start_byte, top.end_byte, by_indentation=by_indentation)]
    if not cursor.goto_first_child():
        return
    while True:
        node = cursor.node
        assert node is not None
        outer = open_nodes[-1]
        if outer.indentation is not None and _is_misplaced(outer, data, node):
            yield 0, -3, b""
        start, end, kind = node.start_byte, node.end_byte, node.type
        if outer.told < start:
            yield from _gap(data[outer.told : start], len(open_nodes), verbatim=outer.verbatim)
        outer.told = end
        if kind == "line_continuation":
            # One that begins its line hides how the next line is indented, so it is told.
            if not data[data.rfind(b"\n", 0, start) + 1 : start].strip():
                yield 0, -4, b""
        elif kind.endswith("comment"):
            comment = data[start:end]
            if is_directive(comment):
                yield 0, -2, comment.strip()
        elif cursor.goto_first_child():
            yield len(open_nodes), node.kind_id, b""
            open_nodes.append(_Open(kind, start, end, by_indentation=by_indentation))
            continue
        else:
            leaf = data[start:end]
            # An unnamed leaf of blanks is the end of a line, which Go's and other grammars show only in some places.
            if node.is_named or not leaf.isspace():
                yield len(open_nodes), node.kind_id, leaf
        while not cursor.goto_next_sibling():
            closed = open_nodes.pop()
            if closed.told < closed.end:
                yield from _gap(data[closed.told : closed.end], len(open_nodes) + 1, verbatim=closed.verbatim)
            if not open_nodes:
                return
            cursor.goto_parent()


class _Open:
    """A node being told: how far, whether blanks in it are text, and how a Python block's statements are indented."""

    __slots__ = ("end", "indentation", "is_block", "told", "verbatim")

    def __init__(self, kind: str, start: int, end: int, *, by_indentation: bool) -> None:
        self.told = start
        self.end = end
        self.verbatim = _VERBATIM.search(kind) is not None and _LAYOUT_AFTER_ALL.search(kind) is None
        self.indentation: bytes | None = None
        self.is_block = kind in ("module", "block")
        if by_indentation and (self.is_block or kind in _COMPOUND):
            self.indentation = b"" if kind == "module" else b"?"


def _is_misplaced(block: _Open, data: bytes, statement: Node) -> bool:
    """Whether a statement of a Python block begins its line elsewhere than the block's first one.

    The grammar takes such text without an error, the interpreter does not: it must not pass for the same code.
    """
    line = data.rfind(b"\n", 0, statement.start_byte) + 1
    indentation = data[line : statement.start_byte]
    if indentation.strip() or statement.type.endswith("comment"):
        return False
    if not block.is_block and block.indentation != b"?" and not _CLAUSE.search(statement.type):
        return False
    if block.indentation == b"?":
        block.indentation = indentation
    return indentation != block.indentation


def _gap(between: bytes, depth: int, *, verbatim: bool) -> Iterator[_Item]:
    text = between if verbatim else _CONTINUATION.sub(b"", between).strip()
    if text:
        yield depth, -1, text
