"""graph.json: what goes out comes back, and what breaks the contract is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest

from nm_lsp.base.errors import InvalidInput
from nm_lsp.graph.communities import Community
from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.interchange import Graph, from_json, to_json, validate
from nm_lsp.graph.model import Confidence, Edge, EdgeKind, NodeId

_A = 'class Ä:\n    """Doc."""\n\n    def f(self):\n        # WHY: because\n        def g(): ...\n'


def _graph() -> Graph:
    a = parse_file("a.py", _A)
    b = parse_file("docs/b.md", "# Title\n\n`Ä.f`\n\n## Sub\n")
    edges = (Edge(NodeId("docs/b.md::Title"), NodeId("a.py::Ä.f"), EdgeKind.DOCUMENTS, Confidence.UNIQUE),)
    communities = (Community(1, "all", ("a.py", "docs/b.md")),)
    return Graph((*a.nodes, *b.nodes), edges, communities)


def test_round_trip_is_lossless() -> None:
    graph = _graph()
    data = to_json(graph)
    assert from_json(json.loads(json.dumps(data))) == graph
    assert validate(data) == []
    assert to_json(from_json(data)) == data


def test_an_empty_graph_is_sound() -> None:
    assert from_json(to_json(Graph((), (), ()))) == Graph((), (), ())


def _set(path: str, value: object) -> Callable[[dict], None]:
    def change(data: dict) -> None:
        at: object = data
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in steps:
            at = at[step]  # type: ignore[index]
        at[last] = value  # type: ignore[index]

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_set("schema", "other"), 'schema: must be "nm-lsp.graph"'),
        (_set("version", 2), "version: must be 1; this program reads no other version"),
        (_set("version", True), "version: must be 1; this program reads no other version"),
        (_set("extra", 1), "extra: is not a field of the graph"),
        (_set("edges", {}), "edges: must be a list"),
        (_set("nodes.0", "x"), "nodes[0]: must be an object"),
        (_set("nodes.1.colour", "x"), "nodes[1].colour: is not a field of it"),
        (
            _set("nodes.1.kind", "klass"),
            "nodes[1].kind: must be one of module, class, function, method, constant, section, file",
        ),
        (_set("nodes.1.name", 3), "nodes[1].name: must be text"),
        (_set("nodes.1.rationale", [1]), "nodes[1].rationale: must be a list of texts"),
        (_set("nodes.1.contentHash", "00"), "nodes[1].contentHash: must be 32 hexadecimal digits"),
        (
            _set("nodes.1.span", [1, 2]),
            "nodes[1].span: must be six whole numbers: start and end byte, start line and column, end line and column",
        ),
        (_set("nodes.1.span", [5, 2, 0, 5, 0, 2]), "nodes[1].span: must not end before it starts"),
        (_set("nodes.1.id", "b.py::x"), 'nodes[1].id: must be "a.py" or begin with "a.py::"'),
        (_set("nodes.2.id", "a.py::Ä"), 'nodes[2].id: "a.py::Ä" is already the id of another node'),
        (_set("nodes.2.parent", "docs/b.md"), 'nodes[2].parent: "docs/b.md" is no node of the same file'),
        (_set("edges.0.target", "gone"), 'edges[0].target: "gone" is no node of this graph'),
        (_set("edges.0.confidence", None), "edges[0].confidence: must be one of resolved, unique, ambiguous"),
        (_set("communities.0.files", ["z.py"]), 'communities[0].files: "z.py" has no node in this graph'),
        (_set("communities.0.id", -1), "communities[0].id: must be a whole number, 0 or more"),
    ],
)
def test_what_breaks_the_contract_is_named(change: Callable[[dict], None], problem: str) -> None:
    data = copy.deepcopy(to_json(_graph()))
    change(data)
    assert problem in [str(found) for found in validate(data)]
    with pytest.raises(InvalidInput):
        from_json(data)


def test_a_missing_field_is_named() -> None:
    data = copy.deepcopy(to_json(_graph()))
    del data["nodes"][3]["doc"]  # type: ignore[index]
    assert [str(found) for found in validate(data)] == ["nodes[3].doc: is missing"]


@pytest.mark.parametrize("data", [None, [], 3, "x"])
def test_other_json_is_no_graph(data: object) -> None:
    assert [str(found) for found in validate(data)] == ["graph: must be an object"]


def test_the_nodes_of_a_file_stand_together() -> None:
    data = copy.deepcopy(to_json(_graph()))
    nodes = data["nodes"]
    assert isinstance(nodes, list)
    nodes.append(nodes.pop(1))
    assert any("must stand together" in str(found) for found in validate(data))
