"""The network of all-MiniLM-L6-v2 as an ONNX graph without weights.

The graph is built from the shapes alone. Every weight is a reference into `model.safetensors` (offset and length), in
the layout that the file has, so that the runtime can map the file and share its pages between processes: no weight is
transposed, joined or copied by the graph. Mean pooling and L2 normalisation are its last nodes. All fused operators
compute the exact functions (`BiasGelu` is the erf form; the tanh form is not used).

The product is the package data `minilm.onnx`; `python -m nm_lsp.models.build_graph` writes it. Needs the `onnx` package
of the `test` extra, so nothing at run time imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import onnx
from onnx import TensorProto, helper

from nm_lsp.models.weights import WEIGHTS

LAYERS: Final = 6
HIDDEN: Final = 384
HEADS: Final = 12
INTERMEDIATE: Final = 1536
VOCABULARY: Final = 30522
POSITIONS: Final = 512
EPSILON: Final = 1e-12
"""Of every layer normalisation, as in the model's `config.json`."""

# model.safetensors begins with the header's length (8 bytes) and the header; then come the tensors without gaps.
HEADER_BYTES: Final = 8 + 11408
POSITION_IDS_BYTES: Final = POSITIONS * 8
FLOAT_BYTES: Final = 4

OPSET: Final = 17
IR_VERSION: Final = 8
FUSED: Final = "com.microsoft"


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where one float32 tensor lies in `model.safetensors`, in bytes from the beginning of the file."""

    name: str
    shape: tuple[int, ...]
    offset: int
    length: int


def tensor_places() -> dict[str, TensorPlace]:
    """Every float tensor of the pinned file by name. The 64-bit `position_ids` lie before them and are not used."""
    places: dict[str, TensorPlace] = {}
    offset = HEADER_BYTES + POSITION_IDS_BYTES
    for name, shape in sorted(_shapes().items()):
        length = FLOAT_BYTES
        for size in shape:
            length *= size
        places[name] = TensorPlace(name, shape, offset, length)
        offset += length
    return places


def build_graph() -> onnx.ModelProto:
    """The model: `input_ids` and `attention_mask` (int64, [batch, sequence], right-padded) → `embedding` (float32,
    [batch, 384], rows of length 1). The same bytes on every call."""
    graph = _Graph()
    ids = graph.node("Cast", ["input_ids"], "ids", to=TensorProto.INT32)
    mask = graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    # Token types are all zero here, and the operator needs them to add the embedding of type 0.
    token_types = graph.node("Sub", [ids, ids], "token_types")
    x, lengths = graph.nodes_out(
        "EmbedLayerNormalization",
        [
            ids,
            token_types,
            graph.weight("embeddings.word_embeddings.weight"),
            graph.weight("embeddings.position_embeddings.weight"),
            graph.weight("embeddings.token_type_embeddings.weight"),
            graph.weight("embeddings.LayerNorm.weight"),
            graph.weight("embeddings.LayerNorm.bias"),
            mask,
        ],
        ["embedded", "lengths"],
        domain=FUSED,
        epsilon=EPSILON,
    )
    for layer in range(LAYERS):
        x = _encoder_layer(graph, f"encoder.layer.{layer}", x, lengths)
    _pool(graph, x)
    return graph.model()


def _encoder_layer(graph: _Graph, layer: str, x: str, lengths: str) -> str:
    attention = f"{layer}.attention.self"
    parts = ("query", "key", "value")
    projections = [graph.linear(f"{attention}.{part}", x) for part in parts]
    # The operator takes the three biases as one vector; the runtime joins them once, at load.
    biases = graph.node(
        "Concat", [graph.weight(f"{attention}.{part}.bias") for part in parts], f"{attention}.bias", axis=0
    )
    attended = graph.node(
        "MultiHeadAttention",
        [*projections, biases, lengths],
        f"{attention}.out",
        domain=FUSED,
        num_heads=HEADS,
    )
    x = _add_and_normalise(graph, f"{layer}.attention.output", attended, x)
    wide = graph.linear(f"{layer}.intermediate.dense", x)
    active = graph.node(
        "BiasGelu",
        [wide, graph.weight(f"{layer}.intermediate.dense.bias")],
        f"{layer}.intermediate.out",
        domain=FUSED,
    )
    return _add_and_normalise(graph, f"{layer}.output", active, x)


def _add_and_normalise(graph: _Graph, block: str, x: str, residual: str) -> str:
    """LayerNorm(dense(x) + residual), the bias of the dense layer being added by the same operator."""
    return graph.node(
        "SkipLayerNormalization",
        [
            graph.linear(f"{block}.dense", x),
            residual,
            graph.weight(f"{block}.LayerNorm.weight"),
            graph.weight(f"{block}.LayerNorm.bias"),
            graph.weight(f"{block}.dense.bias"),
        ],
        f"{block}.out",
        domain=FUSED,
        epsilon=EPSILON,
    )


def _pool(graph: _Graph, x: str) -> None:
    """Mean over the tokens that are not padding, then L2. The division by their number is left out: normalisation
    takes any positive factor away, and no text has fewer than two tokens ([CLS] and [SEP])."""
    weights = graph.node("Cast", ["attention_mask"], "pool.mask", to=TensorProto.FLOAT)
    axis = graph.constant("pool.axis", [1])
    row = graph.node("Unsqueeze", [weights, axis], "pool.row")
    total = graph.node("MatMul", [row, x], "pool.sum3")
    flat = graph.node("Squeeze", [total, axis], "pool.sum")
    graph.node("LpNormalization", [flat], "embedding", axis=-1, p=2)


class _Graph:
    """Collects nodes and the weights that they name, in the order of use."""

    def __init__(self) -> None:
        self._places = tensor_places()
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}

    def node(self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: object) -> str:
        return self.nodes_out(operator, inputs, [output], domain=domain, **attributes)[0]

    def nodes_out(
        self, operator: str, inputs: list[str], outputs: list[str], *, domain: str = "", **attributes: object
    ) -> list[str]:
        made = helper.make_node(operator, inputs, outputs, name=f"{outputs[0]}/{operator}", domain=domain)
        # Sorted, so that the bytes of the model do not depend on the order of the keywords.
        made.attribute.extend(helper.make_attribute(key, attributes[key]) for key in sorted(attributes))
        self._nodes.append(made)
        return outputs

    def linear(self, dense: str, x: str) -> str:
        """x · Wᵀ, the weight being stored as [out, in]. The bias belongs to the operator that follows."""
        return self.node("FusedMatMul", [x, self.weight(f"{dense}.weight")], f"{dense}.product", domain=FUSED, transB=1)

    def weight(self, name: str) -> str:
        if name not in self._initializers:
            place = self._places[name]
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
            tensor.dims.extend(place.shape)
            for key, value in (("location", WEIGHTS.name), ("offset", place.offset), ("length", place.length)):
                tensor.external_data.add(key=key, value=str(value))
            self._initializers[name] = tensor
        return name

    def constant(self, name: str, values: list[int]) -> str:
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def model(self) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2", inputs, [output], list(self._initializers.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, producer_name="nm-lsp", ir_version=IR_VERSION)


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (VOCABULARY, HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
        "pooler.dense.weight": (HIDDEN, HIDDEN),
        "pooler.dense.bias": (HIDDEN,),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        dense = {
            f"{layer}.attention.self.query": (HIDDEN, HIDDEN),
            f"{layer}.attention.self.key": (HIDDEN, HIDDEN),
            f"{layer}.attention.self.value": (HIDDEN, HIDDEN),
            f"{layer}.attention.output.dense": (HIDDEN, HIDDEN),
            f"{layer}.intermediate.dense": (INTERMEDIATE, HIDDEN),
            f"{layer}.output.dense": (HIDDEN, INTERMEDIATE),
        }
        for name, shape in dense.items():
            shapes[f"{name}.weight"] = shape
            shapes[f"{name}.bias"] = shape[:1]
        for block in ("attention.output", "output"):
            shapes[f"{layer}.{block}.LayerNorm.weight"] = (HIDDEN,)
            shapes[f"{layer}.{block}.LayerNorm.bias"] = (HIDDEN,)
    return shapes
