"""C++: C's shapes, and namespaces, classes, templates, methods defined out of line (`ns::Class::m` is `ns.Class.m`)."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_cpp
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages import c
from nm_lsp.graph.languages.spec import CodeLanguage, Definition, text_of
from nm_lsp.graph.model import Import

_QUERY = (
    c.SHARED_QUERY
    + """
(class_specifier name: (_) body: (_)) @class
(concept_definition) @class
(alias_declaration) @class
(template_declaration) @wrapper
(namespace_definition name: (_)) @scope
(declaration_list (declaration) @constant)
(field_declaration_list (field_declaration) @method)
(field_declaration_list (field_declaration default_value: (_)) @constant)
(field_declaration_list (declaration) @method)
(base_class_clause [(type_identifier) (qualified_identifier)] @base)
(base_class_clause (template_type name: (_) @base))
(call_expression function: (qualified_identifier) @call)
(call_expression function: (template_function name: (_) @call))
(new_expression type: [(type_identifier) (qualified_identifier)] @call)
(new_expression type: (template_type name: (_) @call))
(declaration type: [(type_identifier) (qualified_identifier)] @ref)
(parameter_declaration type: (qualified_identifier) @ref)
(using_declaration) @import
"""
)


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    if capture == "scope":
        name = node.child_by_field_name("name")
        if name is None:
            return None
        text = text_of(name, data).replace("::", ".").replace("inline ", "")
        return Definition("".join(text.split()), name.start_byte, name.end_byte, name.end_byte)
    if node.type in ("field_declaration", "declaration") and capture != "function":
        name, is_function = c.declared_name(node, data)
        if name is None or is_function != (capture == "method"):
            return None
        # Constants of a class are worth a name of their own; plain fields belong to their class.
        if (
            node.type == "field_declaration"
            and not is_function
            and b"static" not in data[node.start_byte : name.start_byte]
        ):
            return None
    found = c.describe(capture, node, data)
    if found is not None and found.name.startswith("~") is False and node.type == "function_definition":
        declarator = node.child_by_field_name("declarator")
        initializers = [child for child in node.named_children if child.type == "field_initializer_list"]
        if declarator is not None and initializers:
            return Definition(found.name, found.name_start, found.name_end, initializers[0].start_byte, found.owner)
    return found


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    if node.type == "preproc_include":
        yield from c.imports(node, data, line)
        return
    written = text_of(node, data).removeprefix("using").strip().removesuffix(";").strip()
    if written.startswith("namespace "):
        yield Import("*", written.removeprefix("namespace ").strip(), "*", line)
    else:
        module, _, symbol = written.rpartition("::")
        yield Import(symbol, module, symbol, line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_cpp.language())
    return CodeLanguage(
        "cpp", grammar, Query(grammar, _QUERY), _describe, _imports, separators=("::", "->"),
        builtins=frozenset({"size_t", "T", "std", "std.string", "std.move", "std.forward"}),
    )  # fmt: skip


LANGUAGES = {"cpp": _language()}
