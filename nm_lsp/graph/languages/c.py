"""C, and what C++ shares with it: names are found inside declarators, `#include` is the import."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_c
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

SHARED_QUERY = """
(function_definition) @function
(struct_specifier name: (_) body: (_)) @class
(union_specifier name: (_) body: (_)) @class
(enum_specifier name: (_) body: (_)) @class
(type_definition) @class
(preproc_def value: (_)) @constant
(preproc_function_def) @function
(translation_unit (declaration) @constant)
(translation_unit (preproc_ifdef (declaration) @constant))
(call_expression function: [(identifier) (field_expression)] @call)
(type_identifier) @ref
(preproc_include) @import
(comment) @comment
"""
_NAMES = frozenset(
    {
        "identifier", "field_identifier", "type_identifier", "qualified_identifier", "destructor_name", "operator_name",
        "operator_cast", "template_function",
    }
)  # fmt: skip
_BUILTINS = frozenset(
    """
    size_t ssize_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t uintptr_t bool FILE NULL
    """.split()  # noqa: SIM905
)


def declared_name(node: Node, data: bytes) -> tuple[Node | None, bool]:
    """The node of the name that a declaration declares, and whether it declares a function."""
    is_function = False
    at = node.child_by_field_name("declarator")
    while at is not None and at.type not in _NAMES:
        if at.type == "function_declarator":
            # `int (*handler)(int)` is a variable: parentheses and a star stand between the name and the parameters.
            inner = at.child_by_field_name("declarator")
            is_function = (
                inner is None
                or inner.type != "parenthesized_declarator"
                or b"(*" not in data[inner.start_byte : inner.end_byte][:8]
            )
        following = at.child_by_field_name("declarator")
        if following is None:
            named = [child for child in at.named_children if child.type.endswith("declarator") or child.type in _NAMES]
            following = named[0] if named else None
        at = following
    return at, is_function


def describe(capture: str, node: Node, data: bytes) -> Definition | None:
    match node.type:
        case "function_definition" | "declaration" | "field_declaration" | "type_definition":
            name, is_function = declared_name(node, data)
            # A prototype is not the function; what it promises is defined elsewhere.
            if name is None or (node.type == "declaration" and is_function and capture == "constant"):
                return None
            text, owner = text_of(name, data), ""
            if name.type == "qualified_identifier":
                owner, _, text = _without_arguments(text).rpartition("::")
                owner = ".".join(part.strip() for part in owner.split("::") if part.strip())
            if name.type == "operator_cast":
                text = " ".join(text.partition("(")[0].split())
            elif name.type == "template_function":
                text = _without_arguments(text)
            body = node.child_by_field_name("body")
            if node.type == "type_definition":
                kind = node.child_by_field_name("type")
                body = None if kind is None else kind.child_by_field_name("body")
            end = node.end_byte if body is None else body.start_byte
            return Definition(text.strip(), name.start_byte, name.end_byte, end, owner)
        case "struct_specifier" | "union_specifier" | "enum_specifier":
            parent = node.parent
            # `typedef struct node {...} node_t` is one type under the name that the typedef gives.
            if parent is not None and parent.type == "type_definition":
                return None
    return describe_by_fields(capture, node, data)


def _without_arguments(text: str) -> str:
    """A qualified name without template arguments; operators such as `operator<` keep theirs."""
    if "operator" in text:
        return text
    kept, depth = [], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if depth == 0 and character != ">":
            kept.append(character)
    return "".join(kept)


def imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    path = node.child_by_field_name("path")
    if path is not None:
        yield Import("*", text_of(path, data).strip('"<>'), "*", line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_c.language())
    return CodeLanguage(
        "c", grammar, Query(grammar, SHARED_QUERY), describe, imports, separators=("->",), builtins=_BUILTINS
    )


LANGUAGES = {"c": _language()}
