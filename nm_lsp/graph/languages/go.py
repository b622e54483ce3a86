"""Go: methods are named by their receiver's type, embedded fields and interfaces inherit, packages are imports."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_go
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_QUERY = """
(function_declaration) @function
(method_declaration) @method
(type_spec) @class
(type_alias) @class
(type_declaration) @wrapper
(interface_type (method_elem) @method)
(source_file (const_declaration (const_spec) @constant))
(source_file (var_declaration (var_spec) @constant))
(source_file (var_declaration (var_spec_list (var_spec) @constant)))
(const_declaration) @wrapper
(var_declaration (var_spec)) @wrapper
(struct_type (field_declaration_list (field_declaration !name type: [(type_identifier) (qualified_type)] @base)))
(interface_type (type_elem . [(type_identifier) (qualified_type)] @base .))
(call_expression function: [(identifier) (selector_expression)] @call)
(composite_literal type: [(type_identifier) (qualified_type)] @call)
(composite_literal type: (generic_type type: (_) @call))
(qualified_type) @ref
(type_identifier) @ref
(import_spec) @import
(comment) @comment
"""
_BUILTINS = frozenset(
    """
    string int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 uintptr byte rune bool float32 float64 complex64
    complex128 error any comparable append cap clear close copy delete len make max min new panic print println recover
    """.split()  # noqa: SIM905
)


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    found = describe_by_fields(capture, node, data)
    if found is None or found.name == "_":
        return None
    if node.type == "type_spec":
        kind = node.child_by_field_name("type")
        if kind is not None and kind.type in ("struct_type", "interface_type"):
            return Definition(found.name, found.name_start, found.name_end, kind.start_byte + len(kind.type) - 5)
    receiver = node.child_by_field_name("receiver")
    if receiver is None:
        return found
    # `(s *Store[T])`: the last word before any type parameters.
    written = text_of(receiver, data).strip("()").partition("[")[0]
    owner = written.replace("*", " ").split()
    return Definition(found.name, found.name_start, found.name_end, found.signature_end, owner[-1] if owner else "")


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    path, name = node.child_by_field_name("path"), node.child_by_field_name("name")
    if path is None:
        return
    module = text_of(path, data).strip('"`')
    alias = module.rpartition("/")[2] if name is None else text_of(name, data)
    if alias == ".":
        yield Import("*", module, "*", line)
    else:
        yield Import("" if alias == "_" else alias, module, "", line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_go.language())
    return CodeLanguage("go", grammar, Query(grammar, _QUERY), _describe, _imports, builtins=_BUILTINS)


LANGUAGES = {"go": _language()}
