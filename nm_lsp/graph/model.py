"""What a code graph is made of: plain, frozen data.

Columns are UTF-8 byte offsets within a line, lines count from 0, `byte` offsets count from the start of the
file's text encoded as UTF-8 (without a byte-order mark). Faces convert them to what their client speaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NewType

NodeId = NewType("NodeId", str)
"""`path` for a module or file, `path::Qualified.name` for what is inside (`#2`, `#3` for homonyms)."""


class NodeKind(Enum):
    MODULE = "module"
    CLASS = "class"  # also struct, interface, trait, enum, union, type alias, record
    FUNCTION = "function"
    METHOD = "method"
    CONSTANT = "constant"  # a named module- or class-level value
    SECTION = "section"  # a heading of Markdown or reStructuredText with its text
    FILE = "file"  # a file taken as a whole: TOML, YAML, JSON


class EdgeKind(Enum):
    CONTAINS = "contains"
    IMPORTS = "imports"
    CALLS = "calls"
    INSTANTIATES = "instantiates"
    INHERITS = "inherits"
    REFERENCES = "references"
    DOCUMENTS = "documents"


class Confidence(Enum):
    """How an edge found its target."""

    RESOLVED = "resolved"  # through an import, or inside the same file or class
    UNIQUE = "unique"  # the only definition of that name
    AMBIGUOUS = "ambiguous"  # one of several definitions of that name


@dataclass(frozen=True, slots=True)
class Span:
    start_byte: int
    end_byte: int
    start_line: int
    start_col: int
    end_line: int
    end_col: int


@dataclass(frozen=True, slots=True)
class Node:
    """One symbol. `span` covers decorators and leading documentation comments; `name_span` the name alone."""

    id: NodeId
    kind: NodeKind
    name: str
    qualified_name: str
    path: str
    language: str
    span: Span
    name_span: Span
    signature: str  # one line, without the body
    doc: str  # docstring or leading comment, dedented, markers removed; "" when there is none
    rationale: tuple[str, ...]  # comments that begin WHY:, NOTE:, HACK:, TODO:, DECISION:
    content_hash: bytes  # 16 bytes, BLAKE2b of the span's text
    parent: int | None  # index into ParsedFile.nodes


@dataclass(frozen=True, slots=True)
class Reference:
    """A name used inside a node, as written and dotted (`self.close`, `np.array`, `Base`): resolved at read.

    Dotted in every language (`a::b`, `a->b`, `a?.b` and PHP's `\\` become `a.b`; PHP's `$` is left out, as are Ruby's
    `.new` and type arguments). A receiver that is no plain name is `?`: `f().close()` calls `?.close`; Python's
    `super().close()` calls `super.close`. Each name once per node and kind, at the line of its first use.
    """

    source: int  # index into ParsedFile.nodes: the innermost node around the use
    kind: EdgeKind  # CALLS (also construction: resolution turns it into INSTANTIATES), INHERITS, REFERENCES, DOCUMENTS
    target: str
    line: int


@dataclass(frozen=True, slots=True)
class Import:
    """`alias` is the name bound in this file ("*" for a wildcard); `module` as written in a normal form.

    Python: dotted, with leading dots for relative imports; `symbol` is what `from module import symbol` names.
    JavaScript/TypeScript, Ruby, PHP, C, Bash: the path or package string. Go: the import path. Rust: `a::b` becomes
    module `a::b`. Java/C#: the dotted package with the class as `symbol` where one is named.
    Where one thing of a module is named it is `symbol` in every language, and `symbol` is "*" with a wildcard (a C
    header, a Ruby or Bash file, Go's dot import) and "" where the module itself is bound. An import that binds nothing
    (`import "x"`) has alias "".
    """

    alias: str
    module: str
    symbol: str
    line: int


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """Everything the graph knows of one file. `nodes[0]` is its module or file node; nodes are in source order.

    `problem` says in plain words why a file that was read could only be understood in part ("syntax errors"), or None.
    """

    path: str
    language: str
    nodes: tuple[Node, ...]
    references: tuple[Reference, ...]
    imports: tuple[Import, ...]
    is_generated: bool
    problem: str | None


@dataclass(frozen=True, slots=True)
class Edge:
    source: NodeId
    target: NodeId
    kind: EdgeKind
    confidence: Confidence
