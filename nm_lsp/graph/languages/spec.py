"""What one language tells the extraction: its grammar, one query and a few functions over syntax nodes.

The captures of a query mean:

    @class @function @method @constant   a definition; `describe` names it
    @namespace                           a node of the kind class whose functions are no methods
    @scope @impl                         qualify what is inside, are no nodes; functions in an `impl` are methods
    @wrapper                             its span is that of its last child, if the only one of its type (`export`)
    @lead                                stands before a definition and belongs to it (attributes)
    @comment @doc                        comments; string literals that are documentation
    @call @base @ref                     names used: calls and construction, inheritance, other references
    @mixin                               handed to `bases`, which finds the names inherited from
    @invocation                          a call whose callee is not one node: see `callee_field`
    @import                              handed to `imports`

Patterns have no predicates (`#eq?`), and no node is asked for its `text`: py-tree-sitter (0.25, 0.26) never gives up
what it reads for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tree_sitter import Language, Node, Query

from nm_lsp.graph.model import Import


@dataclass(frozen=True, slots=True)
class Definition:
    """What is defined at a captured node. `name_span` are byte offsets; the signature ends at `signature_end`."""

    name: str
    name_start: int
    name_end: int
    signature_end: int
    owner: str = ""  # dotted; set where the type that a method belongs to does not enclose it


type_of_describe = Callable[[str, Node, bytes], Definition | None]
type_of_bases = Callable[[Node, bytes], Iterable[Node]]
type_of_imports = Callable[[Node, bytes, int], Iterable[Import]]


def describe_by_fields(_capture: str, node: Node, data: bytes) -> Definition | None:
    """Name and body from the fields `name` and `body`, as most grammars call them."""
    name = node.child_by_field_name("name")
    if name is None:
        return None
    body = node.child_by_field_name("body")
    return Definition(
        data[name.start_byte : name.end_byte].decode("utf-8", "replace"),
        name.start_byte,
        name.end_byte,
        node.end_byte if body is None else body.start_byte,
    )


def text_of(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def no_bases(_node: Node, _data: bytes) -> Iterable[Node]:
    return ()


def no_imports(_node: Node, _data: bytes, _line: int) -> Iterable[Import]:
    return ()


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """`separators` are what the language writes where a dotted name has a dot; `builtins` are never references."""

    name: str
    grammar: Language
    query: Query
    describe: type_of_describe = describe_by_fields
    imports: type_of_imports = no_imports
    bases: type_of_bases = no_bases
    separators: tuple[str, ...] = ()
    builtins: frozenset[str] = frozenset()
    callee_field: str = ""  # of an `@invocation`: what is called runs from its start to this field's end
    constructor: str = ""  # what a construction adds to the name of the class
    plain_names: bool = False  # only plain names are references
