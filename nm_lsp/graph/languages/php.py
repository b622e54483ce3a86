"""PHP: classes, traits, enums, functions; a `use` of a trait counts as inheritance; names keep no `$` and no `\\\\`."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_php
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_QUERY = """
(class_declaration) @class
(interface_declaration) @class
(trait_declaration) @class
(enum_declaration) @class
(function_definition) @function
(method_declaration) @method
(program (expression_statement
  (assignment_expression left: (variable_name) right: [(anonymous_function) (arrow_function)]) @function))
(const_declaration (const_element) @constant)
(const_declaration) @wrapper
(property_declaration) @wrapper
(property_declaration (property_element) @constant)
(base_clause [(name) (qualified_name)] @base)
(class_interface_clause [(name) (qualified_name)] @base)
(use_declaration [(name) (qualified_name)] @base)
(function_call_expression function: [(name) (qualified_name)] @call)
(member_call_expression) @invocation
(nullsafe_member_call_expression) @invocation
(scoped_call_expression) @invocation
(object_creation_expression [(name) (qualified_name)] @call)
(attribute [(name) (qualified_name)] @ref)
(named_type [(name) (qualified_name)] @ref)
(catch_clause type: (type_list (named_type (_) @ref)))
(namespace_use_clause) @import
(require_expression) @import
(require_once_expression) @import
(include_expression) @import
(include_once_expression) @import
(comment) @comment
"""
_BUILTINS = frozenset("self static parent isset empty count strlen array_map in_array sprintf define".split())  # noqa: SIM905


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    name: Node | None
    match node.type:
        case "const_element" | "property_element":
            name = node.named_child(0)
        case "assignment_expression":
            name = node.child_by_field_name("left")
        case _:
            return describe_by_fields(capture, node, data)
    if name is None:
        return None
    end = node.end_byte
    right = node.child_by_field_name("right")
    if right is not None:
        body = right.child_by_field_name("body")
        end = end if body is None else body.start_byte
    return Definition(text_of(name, data).lstrip("$"), name.start_byte, name.end_byte, end)


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    if node.type != "namespace_use_clause":
        for child in node.named_children:
            if child.type in ("string", "encapsed_string"):
                yield Import("*", text_of(child, data)[1:-1], "*", line)
        return
    if not node.named_child_count:
        return
    name = text_of(node.named_child(0), data).strip("\\")
    group = node.parent
    if group is not None and group.type == "namespace_use_group" and group.parent is not None:
        for child in group.parent.named_children:
            if child.type == "namespace_name":
                name = f"{text_of(child, data)}\\{name}"
    alias = node.child_by_field_name("alias")
    module, _, symbol = name.rpartition("\\")
    yield Import(symbol if alias is None else text_of(alias, data), module, symbol, line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_php.language_php())
    return CodeLanguage(
        "php", grammar, Query(grammar, _QUERY), _describe, _imports, separators=("?->", "->", "::", "\\", "$"),
        builtins=_BUILTINS, callee_field="name",
    )  # fmt: skip


LANGUAGES = {"php": _language()}
