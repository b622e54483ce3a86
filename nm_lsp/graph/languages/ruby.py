"""Ruby: modules and classes, methods of either kind, constants; mixing a module in counts as inheritance."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_ruby
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_QUERY = """
(class) @class
(module) @class
(method) @function
(singleton_method) @function
(program (assignment left: (constant)) @constant)
(body_statement (assignment left: (constant)) @constant)
(call arguments: (argument_list . [(method) (singleton_method)] .)) @wrapper
(call arguments: (argument_list . (call arguments: (argument_list . [(method) (singleton_method)] .)) .)) @wrapper
(superclass [(constant) (scope_resolution)] @base)
(call method: (identifier) arguments: (argument_list [(constant) (scope_resolution)])) @mixin
(call) @invocation
(call !receiver method: (identifier) arguments: (argument_list . (string) .)) @import
(rescue (exceptions [(constant) (scope_resolution)] @ref))
(comment) @comment
"""
_BUILTINS = frozenset(
    """
    puts print p raise require require_relative load include extend prepend attr_reader attr_writer attr_accessor
    private protected public lambda proc loop format sprintf freeze private_constant module_function
    """.split()  # noqa: SIM905
)


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    if capture == "constant":
        left = node.child_by_field_name("left")
        return left and Definition(text_of(left, data), left.start_byte, left.end_byte, node.end_byte)
    found = describe_by_fields(capture, node, data)
    if found is None:
        return None
    end = found.signature_end
    if node.type in ("method", "singleton_method"):
        last = node.child_by_field_name("parameters")
        end = found.name_end if last is None else last.end_byte
    elif node.type in ("class", "module"):
        last = node.child_by_field_name("superclass")
        end = found.name_end if last is None else last.end_byte
    return Definition(found.name.replace("::", "."), found.name_start, found.name_end, end)


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    method, arguments = node.child_by_field_name("method"), node.child_by_field_name("arguments")
    if method is None or arguments is None:
        return
    word = text_of(method, data)
    path = arguments.named_child(0)
    if word not in ("require", "require_relative", "load") or path is None:
        return
    module = text_of(path, data)[1:-1]
    # What `require_relative` names is a path beside this file, as `./` says elsewhere.
    yield Import("*", f"./{module}" if word == "require_relative" and not module.startswith(".") else module, "*", line)


def _mixed_in(node: Node, data: bytes) -> Iterator[Node]:
    method, arguments = node.child_by_field_name("method"), node.child_by_field_name("arguments")
    if method is not None and arguments is not None and text_of(method, data) in ("include", "extend", "prepend"):
        yield from (child for child in arguments.named_children if child.type in ("constant", "scope_resolution"))


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_ruby.language())
    return CodeLanguage(
        "ruby", grammar, Query(grammar, _QUERY), _describe, _imports, separators=("::", "&."), builtins=_BUILTINS,
        callee_field="method", constructor=".new", bases=_mixed_in,
    )  # fmt: skip


LANGUAGES = {"ruby": _language()}
