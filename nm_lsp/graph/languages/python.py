"""Python: docstrings, decorators, constants at module and class level, imports in dotted form."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_python
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, Definition, describe_by_fields, text_of
from nm_lsp.graph.model import Import

_CONSTANT = """
  (expression_statement (assignment left: (identifier)) @constant)
"""
_QUERY = f"""
(function_definition) @function
(class_definition) @class
(class_definition superclasses: (argument_list [(identifier) (attribute)] @base))
(class_definition superclasses: (argument_list (subscript value: [(identifier) (attribute)] @base)))
(class_definition superclasses: (argument_list (keyword_argument value: [(identifier) (attribute)] @ref)))
(decorated_definition definition: (_)) @wrapper
(module {_CONSTANT})
(module (if_statement consequence: (block {_CONSTANT})))
(module (if_statement alternative: (else_clause body: (block {_CONSTANT}))))
(module (try_statement body: (block {_CONSTANT})))
(module (try_statement (except_clause (block {_CONSTANT}))))
(class_definition body: (block {_CONSTANT}))
(module (type_alias_statement) @class)
(decorator [(identifier) (attribute)] @ref)
(call function: [(identifier) (attribute)] @call)
(type [(identifier) (attribute)] @ref)
(type (generic_type (identifier) @ref))
(type (subscript value: [(identifier) (attribute)] @ref))
(type (binary_operator [(identifier) (attribute)] @ref))
(raise_statement [(identifier) (attribute)] @ref)
(except_clause value: [(identifier) (attribute)] @ref)
(except_clause value: (tuple [(identifier) (attribute)] @ref))
(except_clause value: (as_pattern [(identifier) (attribute)] @ref))
(import_statement) @import
(import_from_statement) @import
(comment) @comment
(module . (comment)* . (expression_statement (string) @doc))
(function_definition body: (block . (expression_statement (string) @doc)))
(class_definition body: (block . (expression_statement (string) @doc)))
"""
_BUILTINS = frozenset(
    """
    str int float bool bytes bytearray complex object list dict set frozenset tuple type None True False Any Optional
    Union Callable Iterable Iterator Sequence Mapping List Dict Set Tuple Type Literal Self Final ClassVar property
    staticmethod classmethod len isinstance print super range getattr setattr hasattr repr sorted enumerate zip map
    filter any all min max sum abs iter next id hash open vars issubclass callable format round reversed
    """.split()  # noqa: SIM905
)


def _describe(capture: str, node: Node, data: bytes) -> Definition | None:
    if capture == "constant":
        name = node.child_by_field_name("left")
        assert name is not None
        text = text_of(name, data)
        if text == "__all__" or text == "_":
            return None
        return Definition(text, name.start_byte, name.end_byte, node.end_byte)
    if node.type == "type_alias_statement":
        left = node.child_by_field_name("left")
        if left is None:
            return None
        text = text_of(left, data).partition("[")[0].strip()
        return Definition(text, left.start_byte, left.start_byte + len(text.encode()), node.end_byte)
    return describe_by_fields(capture, node, data)


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    module_node = node.child_by_field_name("module_name")
    module = "" if module_node is None else "".join(text_of(module_node, data).split())
    names = node.children_by_field_name("name")
    if module_node is not None and not names:
        yield Import("*", module, "*", line)
    for name in names:
        if name.type == "aliased_import":
            original, alias = name.child_by_field_name("name"), name.child_by_field_name("alias")
            if original is None or alias is None:
                continue
            written, bound = text_of(original, data), text_of(alias, data)
        else:
            written = text_of(name, data)
            # `import a.b` binds `a`; that `a.b` is imported by it is what `module` says.
            bound = written if module_node is not None else written.partition(".")[0]
        if module_node is not None:
            yield Import(bound, module, written, line)
        else:
            yield Import(bound, written, "", line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_python.language())
    return CodeLanguage("python", grammar, Query(grammar, _QUERY), _describe, _imports, builtins=_BUILTINS)


LANGUAGES = {"python": _language()}
