"""JavaScript, and what TypeScript shares with it: functions under any of their spellings, CommonJS and ES imports."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_javascript
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function)]"
_CONSTANT = """
  (lexical_declaration (variable_declarator name: (identifier)) @constant)
"""
SHARED_QUERY = f"""
(function_declaration) @function
(generator_function_declaration) @function
(method_definition) @method
(variable_declarator name: (identifier) value: {_FUNCTION_VALUE}) @function
(variable_declarator name: (identifier) value: (class)) @class
(assignment_expression left: (member_expression) right: {_FUNCTION_VALUE}) @function
(assignment_expression left: (member_expression) right: (class)) @class
(pair key: (property_identifier) value: {_FUNCTION_VALUE}) @method
(program {_CONSTANT})
(program (variable_declaration (variable_declarator name: (identifier)) @constant))
(program (export_statement declaration: {_CONSTANT}))
(export_statement declaration: (_)) @wrapper
(export_statement value: [(function_expression) (arrow_function)] @function)
(export_statement value: (class) @class)
(lexical_declaration) @wrapper
(variable_declaration) @wrapper
(program (expression_statement (assignment_expression)) @wrapper)
(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(decorator [(identifier) (member_expression)] @ref)
(import_statement) @import
(export_statement source: (string)) @import
(variable_declarator value: (call_expression function: (identifier))) @import
(variable_declarator value: (member_expression object: (call_expression function: (identifier)))) @import
(expression_statement (call_expression function: (identifier) arguments: (arguments . (string) .))) @import
(comment) @comment
"""
_QUERY = (
    SHARED_QUERY
    + f"""
(class_declaration) @class
(class_declaration (class_heritage [(identifier) (member_expression)] @base))
(class (class_heritage [(identifier) (member_expression)] @base))
(field_definition property: (_) value: {_FUNCTION_VALUE}) @method
(class_body (field_definition property: (_)) @constant)
(jsx_opening_element name: [(identifier) (member_expression)] @ref)
(jsx_self_closing_element name: [(identifier) (member_expression)] @ref)
"""
)
BUILTINS = frozenset(
    """
    Array Object String Number Boolean Symbol Promise Map Set WeakMap WeakSet Date RegExp Error Function Record Partial
    Readonly Required Pick Omit Exclude Extract ReturnType Awaited require parseInt parseFloat
    """.split()  # noqa: SIM905
)


def describe(capture: str, node: Node, data: bytes) -> Definition | None:
    match node.type:
        case "variable_declarator":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if capture == "constant" and value is not None and _is_require(value, data):
                return None
        case "assignment_expression":
            return _assigned(node, data)
        case "pair":
            name, value = node.child_by_field_name("key"), node.child_by_field_name("value")
        case "field_definition" | "public_field_definition":
            name = node.child_by_field_name("property") or node.child_by_field_name("name")
            value = node.child_by_field_name("value")
        case "function_expression" | "arrow_function" | "class":
            # Only reached for `export default`, whose importers call it by a name of their own.
            named = node.child_by_field_name("name")
            text = "default" if named is None else text_of(named, data)
            start = node.start_byte if named is None else named.start_byte
            end = node.start_byte if named is None else named.end_byte
            return Definition(text, start, end, _body_start(node))
        case _:
            return describe_by_fields(capture, node, data)
    if name is None:
        return None
    text = text_of(name, data)
    if name.type == "computed_property_name" or (name.type == "string" and not text[1:-1].isidentifier()):
        return None
    if name.type == "string":
        text = text[1:-1]
    end = node.end_byte if capture == "constant" or value is None else _body_start(value)
    return Definition(text, name.start_byte, name.end_byte, end)


def _assigned(node: Node, data: bytes) -> Definition | None:
    """`exports.x = function`, `Foo.prototype.bar = function`, `Foo.bar = function`; not `this.x` or `a[i]`."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return None
    parts = "".join(text_of(left, data).split()).split(".")
    if parts[0] == "this" or not all(part.replace("$", "_").isidentifier() for part in parts):
        return None
    name = left.child_by_field_name("property")
    start, end = (left.start_byte, left.end_byte) if name is None else (name.start_byte, name.end_byte)
    owner = [part for part in parts[:-1] if part not in ("exports", "module", "prototype", "window", "globalThis")]
    text = parts[-1]
    if text == "exports":
        named = right.child_by_field_name("name")
        text = "default"
        if named is not None:
            text, start, end = text_of(named, data), named.start_byte, named.end_byte
    return Definition(text, start, end, _body_start(right), ".".join(owner))


def _body_start(value: Node) -> int:
    body = value.child_by_field_name("body")
    return value.end_byte if body is None else body.start_byte


def _is_require(value: Node, data: bytes) -> bool:
    if value.type == "member_expression":
        inner = value.child_by_field_name("object")
        return inner is not None and _is_require(inner, data)
    if value.type != "call_expression":
        return False
    function = value.child_by_field_name("function")
    return function is not None and data[function.start_byte : function.end_byte] == b"require"


def imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    if node.type == "variable_declarator":
        yield from _required(node, data, line)
        return
    if node.type == "expression_statement":
        call = node.named_child(0)
        if call is not None and _is_require(call, data):
            yield Import("", _argument(call, data), "", line)
        return
    source = node.child_by_field_name("source")
    if source is None:
        for child in node.named_children:
            if child.type == "import_require_clause":
                path, name = child.child_by_field_name("source"), child.named_child(0)
                if path is not None and name is not None:
                    yield Import(text_of(name, data), text_of(path, data)[1:-1], "", line)
        return
    module = text_of(source, data)[1:-1]
    clauses = [
        child for child in node.named_children if child.type in ("import_clause", "export_clause", "namespace_export")
    ]
    if not clauses:
        # `import "x"` binds nothing; `export * from "x"` passes everything on.
        yield Import(
            "*" if node.type == "export_statement" else "", module, "*" if node.type == "export_statement" else "", line
        )
    for clause in clauses:
        yield from _clause(clause, module, data, line)


def _clause(clause: Node, module: str, data: bytes, line: int) -> Iterator[Import]:
    if clause.type == "namespace_export":
        yield Import(_last(clause, data), module, "", line)
        return
    for part in [clause] if clause.type == "export_clause" else clause.named_children:
        if part.type == "identifier":
            yield Import(text_of(part, data), module, "default", line)
        elif part.type == "namespace_import":
            yield Import(_last(part, data), module, "", line)
        else:
            for specifier in part.named_children:
                name, alias = specifier.child_by_field_name("name"), specifier.child_by_field_name("alias")
                if name is not None:
                    yield Import(text_of(alias or name, data), module, text_of(name, data), line)


def _required(node: Node, data: bytes, line: int) -> Iterator[Import]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None or not _is_require(value, data):
        return
    symbol = ""
    if value.type == "member_expression":
        member = value.child_by_field_name("property")
        symbol = "" if member is None else text_of(member, data)
        inner = value.child_by_field_name("object")
        if inner is None or inner.type != "call_expression":
            return
        value = inner
    module = _argument(value, data)
    if not module:
        return
    if name.type == "identifier":
        yield Import(text_of(name, data), module, symbol, line)
    elif name.type == "object_pattern":
        for part in name.named_children:
            if part.type == "shorthand_property_identifier_pattern":
                yield Import(text_of(part, data), module, text_of(part, data), line)
            elif part.type == "pair_pattern":
                key, bound = part.child_by_field_name("key"), part.child_by_field_name("value")
                if key is not None and bound is not None and bound.type == "identifier":
                    yield Import(text_of(bound, data), module, text_of(key, data), line)


def _argument(call: Node, data: bytes) -> str:
    arguments = call.child_by_field_name("arguments")
    first = arguments.named_child(0) if arguments is not None and arguments.named_child_count else None
    return text_of(first, data)[1:-1] if first is not None and first.type == "string" else ""


def _last(node: Node, data: bytes) -> str:
    return text_of(node.named_child(node.named_child_count - 1), data)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_javascript.language())
    return CodeLanguage(
        "javascript", grammar, Query(grammar, _QUERY), describe, imports, separators=("?.",), builtins=BUILTINS
    )


LANGUAGES = {"javascript": _language()}
