"""TypeScript and TSX: JavaScript's shapes and, beyond them, interfaces, enums, type aliases, namespaces, signatures."""

from __future__ import annotations

import tree_sitter_typescript
from tree_sitter import Language, Query

from nm_lsp.graph.languages.javascript import BUILTINS, SHARED_QUERY, describe, imports
from nm_lsp.graph.languages.spec import CodeLanguage

_QUERY = (
    SHARED_QUERY
    + """
(class_declaration) @class
(abstract_class_declaration) @class
(interface_declaration) @class
(enum_declaration) @class
(type_alias_declaration) @class
(internal_module) @namespace
(module name: (identifier)) @namespace
(program (expression_statement (internal_module)) @wrapper)
(function_signature) @function
(abstract_method_signature) @method
(interface_body (method_signature) @method)
(class_body (method_signature) @method)
(public_field_definition name: (_) value: [(arrow_function) (function_expression)]) @method
(class_body (public_field_definition name: (_)) @constant)
(interface_body (property_signature) @constant)
(internal_module body: (statement_block (export_statement
  declaration: (lexical_declaration (variable_declarator name: (identifier)) @constant))))
(class_heritage (extends_clause value: [(identifier) (member_expression)] @base))
(implements_clause [(type_identifier) (nested_type_identifier)] @base)
(implements_clause (generic_type name: [(type_identifier) (nested_type_identifier)] @base))
(extends_type_clause [(type_identifier) (nested_type_identifier)] @base)
(extends_type_clause (generic_type name: [(type_identifier) (nested_type_identifier)] @base))
(type_annotation [(type_identifier) (nested_type_identifier)] @ref)
(type_annotation (array_type (type_identifier) @ref))
(generic_type name: [(type_identifier) (nested_type_identifier)] @ref)
(type_arguments [(type_identifier) (nested_type_identifier)] @ref)
(union_type (type_identifier) @ref)
(intersection_type (type_identifier) @ref)
(class_body (decorator) @lead)
"""
)
_JSX = """
(jsx_opening_element name: [(identifier) (member_expression)] @ref)
(jsx_self_closing_element name: [(identifier) (member_expression)] @ref)
"""


def _language(name: str, pointer: object, query: str) -> CodeLanguage:
    grammar = Language(pointer)
    return CodeLanguage(name, grammar, Query(grammar, query), describe, imports, separators=("?.",), builtins=BUILTINS)


LANGUAGES = {
    "typescript": _language("typescript", tree_sitter_typescript.language_typescript(), _QUERY),
    "tsx": _language("tsx", tree_sitter_typescript.language_tsx(), _QUERY + _JSX),
}
