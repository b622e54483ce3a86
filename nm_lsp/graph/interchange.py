"""The graph as JSON that other tools can read: `graph.json`, schema-versioned, lossless.

    {"schema": "nm-lsp.graph", "version": 1,
     "nodes": [{"id", "kind", "name", "qualifiedName", "path", "language", "span", "nameSpan", "signature", "doc",
                "rationale", "contentHash", "parent"}],
     "edges": [{"source", "target", "kind", "confidence"}],
     "communities": [{"id", "title", "files"}]}

A span is [startByte, endByte, startLine, startColumn, endLine, endColumn]; `parent` is the id of the enclosing node of
the same file or null; `contentHash` is hexadecimal. `from_json(to_json(x))` equals x. Pure: no files are read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nm_lsp.base.errors import InvalidInput
from nm_lsp.graph.communities import Community
from nm_lsp.graph.model import Confidence, Edge, EdgeKind, Node, NodeId, NodeKind, Span

SCHEMA = "nm-lsp.graph"
VERSION = 1
_MAX_PROBLEMS = 1_000
_HASH = re.compile(r"[0-9a-f]{32}")

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Graph:
    """`nodes` are grouped by file, each file's in the order of its ParsedFile, so that parents are indices there."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    communities: tuple[Community, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file; `where` is a path into it such as `nodes[3].kind`."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def to_json(graph: Graph) -> Json:
    """Plain data, ready for `json.dumps`."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "nodes": list(_node_rows(graph.nodes)),
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "kind": edge.kind.value,
                "confidence": edge.confidence.value,
            }
            for edge in graph.edges
        ],
        "communities": [
            {"id": community.id, "title": community.title, "files": list(community.files)}
            for community in graph.communities
        ],
    }


def from_json(data: object) -> Graph:
    """The graph in plain data. Raises `InvalidInput` with the first problem that `validate` finds."""
    problems = validate(data)
    if problems:
        raise InvalidInput(problems[0].where, problems[0].message, hint="`graph validate` lists every problem.")
    assert isinstance(data, dict)
    first_of_path: dict[str, int] = {}
    index_in_file: dict[str, int] = {}
    for at, row in enumerate(data["nodes"]):
        first_of_path.setdefault(row["path"], at)
        index_in_file[row["id"]] = at - first_of_path[row["path"]]
    nodes = tuple(_node(row, index_in_file) for row in data["nodes"])
    edges = tuple(
        Edge(NodeId(row["source"]), NodeId(row["target"]), EdgeKind(row["kind"]), Confidence(row["confidence"]))
        for row in data["edges"]
    )
    communities = tuple(Community(row["id"], row["title"], tuple(row["files"])) for row in data["communities"])
    return Graph(nodes, edges, communities)


def validate(data: object) -> list[Problem]:
    """Everything by which plain data departs from the contract; empty when it is sound. 1,000 problems at most."""
    problems: list[Problem] = []
    for problem in _problems(data):
        problems.append(problem)
        if len(problems) == _MAX_PROBLEMS:
            break
    return problems


def _node_rows(nodes: Sequence[Node]) -> Iterator[Json]:
    first = 0
    for at, node in enumerate(nodes):
        if at and nodes[at - 1].path != node.path:
            first = at
        yield {
            "id": node.id,
            "kind": node.kind.value,
            "name": node.name,
            "qualifiedName": node.qualified_name,
            "path": node.path,
            "language": node.language,
            "span": _span_row(node.span),
            "nameSpan": _span_row(node.name_span),
            "signature": node.signature,
            "doc": node.doc,
            "rationale": list(node.rationale),
            "contentHash": node.content_hash.hex(),
            "parent": None if node.parent is None else nodes[first + node.parent].id,
        }


def _span_row(span: Span) -> list[int]:
    return [span.start_byte, span.end_byte, span.start_line, span.start_col, span.end_line, span.end_col]


def _node(row: Mapping[str, object], index_in_file: Mapping[str, int]) -> Node:
    def text(field: str) -> str:
        return str(row[field])

    span, name_span, rationale, parent = row["span"], row["nameSpan"], row["rationale"], row["parent"]
    assert isinstance(span, list)
    assert isinstance(name_span, list)
    assert isinstance(rationale, list)
    return Node(
        NodeId(text("id")), NodeKind(row["kind"]), text("name"), text("qualifiedName"), text("path"), text("language"),
        Span(*span), Span(*name_span), text("signature"), text("doc"), tuple(rationale),
        bytes.fromhex(text("contentHash")), None if parent is None else index_in_file[str(parent)],
    )  # fmt: skip


# The contract, field by field

_NODE_FIELDS: dict[str, str | list[str]] = {
    "id": "text", "kind": [kind.value for kind in NodeKind], "name": "text", "qualifiedName": "text", "path": "text",
    "language": "text", "span": "span", "nameSpan": "span", "signature": "text", "doc": "text", "rationale": "texts",
    "contentHash": "hash", "parent": "text or null",
}  # fmt: skip
_EDGE_FIELDS: dict[str, str | list[str]] = {
    "source": "text",
    "target": "text",
    "kind": [kind.value for kind in EdgeKind],
    "confidence": [confidence.value for confidence in Confidence],
}
_COMMUNITY_FIELDS: dict[str, str | list[str]] = {"id": "number", "title": "text", "files": "texts"}
_TOP_FIELDS = ("schema", "version", "nodes", "edges", "communities")


def _problems(data: object) -> Iterator[Problem]:
    if not isinstance(data, dict):
        yield Problem("graph", "must be an object")
        return
    if data.get("schema") != SCHEMA:
        yield Problem("schema", f'must be "{SCHEMA}"')
        return
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        yield Problem("version", f"must be {VERSION}; this program reads no other version")
        return
    for field in data:
        if field not in _TOP_FIELDS:
            yield Problem(str(field), "is not a field of the graph")
    sections = (("nodes", _NODE_FIELDS), ("edges", _EDGE_FIELDS), ("communities", _COMMUNITY_FIELDS))
    sound = True
    for section, fields in sections:
        rows = data.get(section)
        if not isinstance(rows, list):
            yield Problem(section, "must be a list")
            sound = False
            continue
        for at, row in enumerate(rows):
            for problem in _row_problems(f"{section}[{at}]", row, fields):
                sound = False
                yield problem
    # What refers to what is only worth asking of rows that are sound by themselves.
    if sound:
        yield from _reference_problems(data["nodes"], data["edges"], data["communities"])


def _row_problems(where: str, row: object, fields: Mapping[str, str | list[str]]) -> Iterator[Problem]:
    if not isinstance(row, dict):
        yield Problem(where, "must be an object")
        return
    for field in row:
        if field not in fields:
            yield Problem(f"{where}.{field}", "is not a field of it")
    for field, kind in fields.items():
        if field not in row:
            yield Problem(f"{where}.{field}", "is missing")
            continue
        fault = _fault(row[field], kind)
        if fault:
            yield Problem(f"{where}.{field}", fault)


def _fault(value: object, kind: str | list[str]) -> str:
    if isinstance(kind, list):
        return "" if value in kind else f"must be one of {', '.join(kind)}"
    match kind:
        case "text":
            sound, wanted = isinstance(value, str), "must be text"
        case "text or null":
            sound, wanted = value is None or isinstance(value, str), "must be text or null"
        case "texts":
            sound = isinstance(value, list) and all(isinstance(item, str) for item in value)
            wanted = "must be a list of texts"
        case "number":
            sound, wanted = _is_count(value), "must be a whole number, 0 or more"
        case "hash":
            sound = isinstance(value, str) and _HASH.fullmatch(value) is not None
            wanted = "must be 32 hexadecimal digits"
        case _:
            sound = isinstance(value, list) and len(value) == 6 and all(map(_is_count, value))
            wanted = "must be six whole numbers: start and end byte, start line and column, end line and column"
            if sound and isinstance(value, list) and (value[0] > value[1] or value[2:4] > value[4:6]):
                sound, wanted = False, "must not end before it starts"
    return "" if sound else wanted


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _reference_problems(nodes: Sequence[Json], edges: Sequence[Json], communities: Sequence[Json]) -> Iterator[Problem]:
    paths: dict[object, object] = {}
    closed_files: set[object] = set()
    last_path: object = None
    for at, node in enumerate(nodes):
        identifier, path = node["id"], node["path"]
        if path != last_path:
            if path in closed_files:
                yield Problem(f"nodes[{at}].path", "the nodes of one file must stand together")
            closed_files.add(path)
            last_path = path
        if identifier in paths:
            yield Problem(f"nodes[{at}].id", f'"{identifier}" is already the id of another node')
        paths[identifier] = path
        if identifier != path and not str(identifier).startswith(f"{path}::"):
            yield Problem(f"nodes[{at}].id", f'must be "{path}" or begin with "{path}::"')
    for at, node in enumerate(nodes):
        parent = node["parent"]
        if parent is not None and paths.get(parent) != node["path"]:
            yield Problem(f"nodes[{at}].parent", f'"{parent}" is no node of the same file')
    for at, edge in enumerate(edges):
        for end in ("source", "target"):
            if edge[end] not in paths:
                yield Problem(f"edges[{at}].{end}", f'"{edge[end]}" is no node of this graph')
    known_files, ids, held = set(paths.values()), set(), set()
    for at, community in enumerate(communities):
        if community["id"] in ids:
            yield Problem(f"communities[{at}].id", f"{community['id']} is already the id of another community")
        ids.add(community["id"])
        files = community["files"]
        assert isinstance(files, list)
        for path in files:
            if path not in known_files:
                yield Problem(f"communities[{at}].files", f'"{path}" has no node in this graph')
            elif path in held:
                yield Problem(f"communities[{at}].files", f'"{path}" is already in another community')
            held.add(path)
