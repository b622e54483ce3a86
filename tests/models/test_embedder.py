"""Vectors against the committed reference, and their independence of batches and threads."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, ModelProblem
from nm_lsp.models import embedder as embedder_module
from nm_lsp.models.embedder import BATCH_TEXTS, BATCH_TOKENS, Embedder, batches
from nm_lsp.models.weights import ModelFiles, WeightsFormat, model_status


@pytest.fixture(scope="module")
def vectors(embedder, reference_texts):
    return embedder.embed(reference_texts)


def test_vectors_are_those_of_the_reference(vectors, reference):
    expected = reference["vectors"].astype(np.float64)
    found = vectors.astype(np.float64)
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert vectors.dtype == np.float32
    assert vectors.shape == (50, 384)
    assert cosines.min() >= 0.99999
    # What is measured is far closer; an approximate operator would show here.
    assert np.abs(found - expected).max() < 1e-6


def test_rows_have_length_one(vectors):
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_its_batch_mates(embedder, vectors, reference_texts):
    alone = np.concatenate([embedder.embed([text]) for text in reference_texts[::3]])
    np.testing.assert_allclose(alone, vectors[::3], atol=1e-6)
    np.testing.assert_allclose(embedder.embed(reference_texts[::-1])[::-1], vectors, atol=1e-6)


def test_threads_share_one_embedder(embedder, vectors, reference_texts):
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(embedder.embed, [reference_texts[:40]] * 4):
            np.testing.assert_allclose(found, vectors[:40], atol=1e-6)


def test_windows_join_in_order(embedder, vectors, reference_texts, monkeypatch):
    monkeypatch.setattr(embedder_module, "WINDOW_TEXTS", 7)
    np.testing.assert_allclose(embedder.embed(reference_texts[:20]), vectors[:20], atol=1e-6)


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 384)


def test_a_withdrawn_request_stops(embedder):
    cancel = Cancellation()
    cancel.cancel()
    with pytest.raises(Cancelled):
        embedder.embed(["text"], cancel)


@given(st.lists(st.integers(2, 256), max_size=300))
def test_batches_cover_every_row_once_within_the_caps(lengths):
    groups = list(batches(lengths))
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) <= BATCH_TEXTS
        assert len(group) == 1 or len(group) * max(lengths[row] for row in group) <= BATCH_TOKENS
    longest = [max(lengths[row] for row in group) for group in groups]
    assert longest == sorted(longest, reverse=True)


def test_weights_behind_a_link_of_another_name(model_files, tmp_path, vectors, reference_texts):
    """As content-addressed stores lay files out."""
    store = tmp_path / "store"
    store.mkdir()
    shutil.copy(model_files.weights, store / "53aa5117")
    staged = tmp_path / "staged"
    staged.mkdir()
    (staged / "model.safetensors").symlink_to(store / "53aa5117")
    (staged / "tokenizer.json").symlink_to(model_files.tokenizer)
    status = model_status(home=tmp_path, environment={"NEURALMIND_ONNX_MODEL_DIR": str(staged)})
    assert status.files is not None
    found = Embedder.open(status.files).embed(reference_texts[3:6])
    np.testing.assert_allclose(found, vectors[3:6], atol=1e-6)


def test_a_graph_staged_for_others_is_pooled_and_said_to_be_unpinned(model_files, tmp_path):
    """It ends at the last hidden state and wants token types. Here hidden = id · direction + token type."""
    direction = np.linspace(-1, 1, 384, dtype=np.float32)
    make = helper.make_node
    nodes = [
        make("Cast", ["input_ids"], ["ids"], to=TensorProto.FLOAT),
        make("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        make("Add", ["ids", "types"], ["sum"]),
        make("Unsqueeze", ["sum", "last"], ["column"]),
        make("Mul", ["column", "direction"], ["last_hidden_state"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 384])
    constants = [
        helper.make_tensor("last", TensorProto.INT64, [1], [2]),
        helper.make_tensor("direction", TensorProto.FLOAT, [384], direction),
    ]
    graph = helper.make_graph(nodes, "staged", inputs, [output], constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx"
    )
    shutil.copy(model_files.tokenizer, tmp_path)
    status = model_status(home=tmp_path, environment={"NEURALMIND_ONNX_MODEL_DIR": str(tmp_path)})
    assert status.present
    assert not status.pinned
    assert status.files is not None
    opened = Embedder.open(status.files)
    assert not opened.pinned
    assert opened.model_id.startswith("unpinned:")
    expected = direction / np.linalg.norm(direction)
    np.testing.assert_allclose(opened.embed(["one", "one two three"]), [expected, expected], atol=1e-5)


def test_a_file_that_is_no_model_is_a_model_problem(model_files, tmp_path):
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"not a model")
    files = ModelFiles(broken, model_files.tokenizer, WeightsFormat.ONNX, False, "unpinned:x")
    with pytest.raises(ModelProblem, match="cannot be loaded"):
        Embedder.open(files)
