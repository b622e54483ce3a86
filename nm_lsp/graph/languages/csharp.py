"""C#: types, members and properties. Namespaces are packages here and no part of a qualified name."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_c_sharp
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_TYPE = "[(identifier) (qualified_name)]"
_QUERY = f"""
(class_declaration) @class
(interface_declaration) @class
(struct_declaration) @class
(record_declaration) @class
(enum_declaration) @class
(delegate_declaration) @class
(method_declaration) @method
(constructor_declaration) @method
(destructor_declaration) @method
(operator_declaration) @method
(indexer_declaration) @method
(local_function_statement) @function
(property_declaration) @constant
(event_field_declaration (variable_declaration (variable_declarator) @constant))
(field_declaration (variable_declaration (variable_declarator) @constant))
(variable_declaration (variable_declarator)) @wrapper
(field_declaration) @wrapper
(event_field_declaration) @wrapper
(base_list {_TYPE} @base)
(base_list (generic_name . (identifier) @base))
(base_list (primary_constructor_base_type . {_TYPE} @base))
(invocation_expression function: [(identifier) (member_access_expression) (generic_name)] @call)
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (identifier) @call)))
(object_creation_expression type: {_TYPE} @call)
(object_creation_expression type: (generic_name . (identifier) @call))
(attribute name: (_) @ref)
(variable_declaration type: {_TYPE} @ref)
(variable_declaration type: (generic_name . (identifier) @ref))
(parameter type: {_TYPE} @ref)
(parameter type: (generic_name . (identifier) @ref))
(method_declaration returns: {_TYPE} @ref)
(property_declaration type: {_TYPE} @ref)
(type_argument_list {_TYPE} @ref)
(type_parameter_constraint type: {_TYPE} @ref)
(using_directive) @import
(comment) @comment
"""
_BUILTINS = frozenset("string object var Task List Dictionary IEnumerable nameof typeof String Object T".split())  # noqa: SIM905


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    match node.type:
        case "indexer_declaration":
            return Definition("this", node.start_byte, node.start_byte, _end(node))
        case "operator_declaration":
            operator = node.child_by_field_name("operator")
            name = "operator" + ("" if operator is None else text_of(operator, data))
            return Definition(name, node.start_byte, node.start_byte, _end(node))
        case "destructor_declaration":
            found = describe_by_fields(capture, node, data)
            return found and Definition(f"~{found.name}", found.name_start, found.name_end, found.signature_end)
        case "property_declaration":
            found = describe_by_fields(capture, node, data)
            accessors = node.child_by_field_name("accessors") or node.child_by_field_name("value")
            if found is None or accessors is None:
                return found
            return Definition(found.name, found.name_start, found.name_end, accessors.start_byte)
    return describe_by_fields(capture, node, data)


def _end(node: Node) -> int:
    body = (
        node.child_by_field_name("body") or node.child_by_field_name("accessors") or node.child_by_field_name("value")
    )
    return node.end_byte if body is None else body.start_byte


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    written = " ".join(text_of(node, data).removesuffix(";").split())
    words = written.removeprefix("global ").removeprefix("using ")
    if words.startswith("static "):
        yield Import("*", words.removeprefix("static "), "*", line)
    elif "=" in words:
        alias, _, target = (part.strip() for part in words.partition("="))
        module, _, symbol = target.rpartition(".")
        yield Import(alias, module, symbol, line)
    else:
        yield Import("*", words, "*", line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_c_sharp.language())
    return CodeLanguage(
        "csharp", grammar, Query(grammar, _QUERY), _describe, _imports, separators=("?.", "::"), builtins=_BUILTINS
    )


LANGUAGES = {"csharp": _language()}
