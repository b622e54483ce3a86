"""Java: types of every kind, constructors, fields; documentation is the Javadoc above."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_java
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, text_of
from nm_lsp.graph.model import Import

_QUERY = """
(class_declaration) @class
(interface_declaration) @class
(enum_declaration) @class
(record_declaration) @class
(annotation_type_declaration) @class
(method_declaration) @method
(constructor_declaration) @method
(compact_constructor_declaration) @method
(annotation_type_element_declaration) @method
(field_declaration declarator: (variable_declarator) @constant)
(field_declaration) @wrapper
(constant_declaration declarator: (variable_declarator) @constant)
(superclass [(type_identifier) (scoped_type_identifier)] @base)
(superclass (generic_type . [(type_identifier) (scoped_type_identifier)] @base))
(type_list [(type_identifier) (scoped_type_identifier)] @base)
(type_list (generic_type . [(type_identifier) (scoped_type_identifier)] @base))
(method_invocation) @invocation
(object_creation_expression type: [(type_identifier) (scoped_type_identifier)] @call)
(object_creation_expression type: (generic_type . [(type_identifier) (scoped_type_identifier)] @call))
(method_reference . (identifier) @ref)
(marker_annotation name: (_) @ref)
(annotation name: (_) @ref)
(type_identifier) @ref
(scoped_type_identifier) @ref
(import_declaration) @import
(line_comment) @comment
(block_comment) @comment
"""
_BUILTINS = frozenset(
    """
    String Object Integer Long Double Float Boolean Character Byte Short Number Void Override Deprecated
    SuppressWarnings FunctionalInterface SafeVarargs T E K V R U
    """.split()  # noqa: SIM905
)


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    written = text_of(node, data).removeprefix("import").strip().removesuffix(";").strip()
    name = "".join(written.removeprefix("static ").split())
    module, _, symbol = name.rpartition(".")
    yield Import(symbol, module, symbol, line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_java.language())
    return CodeLanguage(
        "java", grammar, Query(grammar, _QUERY), imports=_imports, callee_field="name", builtins=_BUILTINS
    )


LANGUAGES = {"java": _language()}
