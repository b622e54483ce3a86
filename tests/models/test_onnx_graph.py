"""The committed graph is what the script makes, and refers to the tensors where they lie."""

from __future__ import annotations

import json

import onnx

from nm_lsp.models.embedder import GRAPH_PATH
from nm_lsp.models.onnx_graph import HEADER_BYTES, build_graph, tensor_places
from nm_lsp.models.weights import WEIGHTS


def test_the_committed_graph_is_the_built_one():
    committed, built = onnx.load_from_string(GRAPH_PATH.read_bytes()), build_graph()
    assert committed.graph == built.graph
    assert list(committed.opset_import) == list(built.opset_import)
    assert committed.ir_version == built.ir_version


def test_the_graph_carries_no_weights():
    assert len(GRAPH_PATH.read_bytes()) < 100_000


def test_only_exact_operators_are_used():
    operators = {node.op_type for node in build_graph().graph.node}
    assert operators.isdisjoint({"FastGelu", "QuickGelu", "DynamicQuantizeLinear", "MatMulInteger"})


def test_the_last_tensor_ends_where_the_pinned_file_ends():
    assert max(place.offset + place.length for place in tensor_places().values()) == WEIGHTS.size


def test_tensors_lie_where_the_header_of_the_file_says(model_files):
    with model_files.weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    assert 8 + length == HEADER_BYTES
    found = {
        name: (tuple(entry["shape"]), HEADER_BYTES + entry["data_offsets"][0], HEADER_BYTES + entry["data_offsets"][1])
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }
    ours = {place.name: (place.shape, place.offset, place.offset + place.length) for place in tensor_places().values()}
    assert ours == found
