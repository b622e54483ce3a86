"""Rust: methods are named by the type of their `impl`, traits inherit and are implemented, `use` trees are unfolded."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_rust
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_QUERY = """
(function_item) @function
(function_signature_item) @function
(struct_item) @class
(enum_item) @class
(union_item) @class
(trait_item) @class
(type_item) @class
(mod_item body: (_)) @namespace
(impl_item) @impl
(macro_definition) @function
(const_item) @constant
(static_item) @constant
(attribute_item) @lead
(trait_bounds [(type_identifier) (scoped_type_identifier)] @ref)
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier)] @base))
(impl_item trait: [(type_identifier) (scoped_type_identifier)] @base)
(impl_item trait: (generic_type type: (_) @base))
(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(call_expression function: (generic_function function: (_) @call))
(struct_expression name: [(type_identifier) (scoped_type_identifier)] @call)
(macro_invocation macro: [(identifier) (scoped_identifier)] @call)
(token_tree (identifier) @call . (token_tree))
(scoped_type_identifier) @ref
(type_identifier) @ref
(use_declaration) @import
(extern_crate_declaration) @import
(line_comment) @comment
(block_comment) @comment
"""
_BUILTINS = frozenset(
    """
    Self String Vec Option Result Box Some None Ok Err T U E K V F Clone Copy Debug Send Sync Sized Drop Default println
    print eprintln eprint format vec write writeln panic assert assert_eq assert_ne debug_assert todo unimplemented
    unreachable matches
    """.split()  # noqa: SIM905
)
# `use` trees nest; a hostile file may nest them without end.
_MAX_USES = 500


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    if capture != "impl":
        return describe_by_fields(capture, node, data)
    kind = node.child_by_field_name("type")
    if kind is None:
        return None
    name = text_of(kind, data).partition("<")[0].lstrip("&").replace("::", ".").strip()
    if not name.replace(".", "_").isidentifier():
        return None
    return Definition(name, kind.start_byte, kind.end_byte, kind.end_byte)


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    if node.type == "extern_crate_declaration":
        name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
        if name is not None:
            yield Import(text_of(alias or name, data), text_of(name, data), "", line)
        return
    argument = node.child_by_field_name("argument")
    open_trees = [("", argument)] if argument is not None else []
    left = _MAX_USES
    while open_trees and left:
        left -= 1
        prefix, tree = open_trees.pop()
        match tree.type:
            case "use_list":
                open_trees += [(prefix, child) for child in reversed(tree.named_children)]
            case "scoped_use_list":
                path, inner = tree.child_by_field_name("path"), tree.child_by_field_name("list")
                if inner is not None:
                    open_trees.append((_join(prefix, text_of(path, data) if path else ""), inner))
            case "use_wildcard":
                yield Import("*", _join(prefix, text_of(tree, data).removesuffix("*").removesuffix("::")), "*", line)
            case "use_as_clause":
                path, alias = tree.child_by_field_name("path"), tree.child_by_field_name("alias")
                if path is not None and alias is not None:
                    yield _import(text_of(alias, data), _join(prefix, text_of(path, data)), line)
            case "self":
                yield _import(prefix.rpartition("::")[2], prefix, line)
            case _:
                full = _join(prefix, text_of(tree, data))
                yield _import(full.rpartition("::")[2], full, line)


def _import(alias: str, full: str, line: int) -> Import:
    module, _, symbol = full.rpartition("::")
    return Import(alias, module, symbol, line) if module else Import(alias, symbol, "", line)


def _join(prefix: str, path: str) -> str:
    path = "".join(path.split())
    return f"{prefix}::{path}" if prefix and path else prefix or path


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_rust.language())
    return CodeLanguage(
        "rust", grammar, Query(grammar, _QUERY), _describe, _imports, separators=("::",), builtins=_BUILTINS
    )


LANGUAGES = {"rust": _language()}
