"""Texts to vectors: all-MiniLM-L6-v2 on the CPU.

A text's vector depends on the text and the model alone: not on its batch mates (up to 1e-6), nor on the number of
threads. Importing this module loads onnxruntime (about 70 ms), so it is imported where vectors are needed and not
before; opening a model takes about 40 ms, since the weights are mapped and not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import ModelProblem
from nm_lsp.models.runtime import ort
from nm_lsp.models.tokenizer import WordPieces
from nm_lsp.models.weights import DIMENSIONS, WEIGHTS, ModelFiles, WeightsFormat

GRAPH_PATH: Final = Path(__file__).with_name("minilm.onnx")

BATCH_TEXTS: Final = 32
BATCH_TOKENS: Final = 512
"""Padding included. Larger batches are no faster, since their intermediates leave the processor's caches, and take more
memory."""

WINDOW_TEXTS: Final = 4096
"""Texts sorted by length together. Bounds the token ids held in memory."""

Vectors = npt.NDArray[np.float32]


class Embedder:
    """One loaded model. Thread-safe; `embed` on several threads at once shares the weights."""

    __slots__ = ("_session", "_with_token_types", "_words", "model_id", "pinned")

    def __init__(self, session: Any, words: WordPieces, *, model_id: str, pinned: bool) -> None:
        self._session = session
        self._words = words
        self._with_token_types = any(value.name == "token_type_ids" for value in session.get_inputs())
        self.model_id = model_id
        self.pinned = pinned

    @classmethod
    def open(cls, files: ModelFiles, *, threads: int = 1) -> Embedder:
        """Load a model whose files `weights.require_model` has verified. Raises `ModelProblem`."""
        words = WordPieces(files.tokenizer)
        try:
            session = _open_session(files, threads)
        # The runtime's exceptions have no common base of their own.
        except Exception as error:
            raise ModelProblem(
                f"{files.weights} cannot be loaded: {error}.", hint="Run `nm-lsp model install` to fetch it again."
            ) from error
        return cls(session, words, model_id=files.model_id, pinned=files.pinned)

    def embed(self, texts: Sequence[str], cancel: Cancellation | None = None) -> Vectors:
        """[len(texts), 384] rows of length 1, in the order of `texts`. Only the first 256 tokens of a text count.

        Polls `cancel` between batches (at most some 150 ms apart) and raises `Cancelled`.
        """
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(texts), WINDOW_TEXTS):
            tokens = self._words.encode(texts[start : start + WINDOW_TEXTS])
            for rows in batches([len(ids) for ids in tokens]):
                if cancel is not None:
                    cancel.check()
                vectors[[start + row for row in rows]] = self._run([tokens[row] for row in rows])
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `WordPieces.count_tokens`."""
        return self._words.count_tokens(texts)

    def _run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        longest = max(len(ids) for ids in tokens)
        ids = np.zeros((len(tokens), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, row_ids in enumerate(tokens):
            ids[row, : len(row_ids)] = row_ids
            mask[row, : len(row_ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask}
        if self._with_token_types:
            feeds["token_type_ids"] = np.zeros_like(ids)
        output = np.asarray(self._session.run(None, feeds)[0], dtype=np.float32)
        return output if output.ndim == 2 else _pool(output, mask)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers grouped by like length, longest first: at most `BATCH_TEXTS` rows and, beyond one row,
    `BATCH_TOKENS` tokens with padding. Longest first shows the peak of memory at once."""
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    start = 0
    while start < len(order):
        longest = max(lengths[order[start]], 1)
        size = max(1, min(BATCH_TEXTS, BATCH_TOKENS // longest))
        yield order[start : start + size]
        start += size


def _open_session(files: ModelFiles, threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # The arena and memory patterns keep the largest batch's memory for ever and gain nothing measurable.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    # A waiting thread must not burn the core that the editor needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers = ["CPUExecutionProvider"]
    if files.weights_format is WeightsFormat.ONNX:
        return ort.InferenceSession(str(files.weights), options, providers=providers)
    # Our graph is fused by hand; only its constants are left to fold.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    weights = files.weights.resolve()
    if weights.name == WEIGHTS.name:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(weights.parent))
    else:
        # A link to a file of another name (a content-addressed store, say): the runtime refuses to follow links out
        # of the folder, so the file is handed over in memory, without shared pages.
        data = weights.read_bytes()
        options.add_external_initializers_from_files_in_memory([WEIGHTS.name], [data], [len(data)])
    return ort.InferenceSession(GRAPH_PATH.read_bytes(), options, providers=providers)


def _pool(hidden: Vectors, mask: npt.NDArray[np.int64]) -> Vectors:
    """Mean over the tokens that are not padding, then L2, for graphs that end at the last hidden state."""
    total = np.einsum("bsh,bs->bh", hidden, mask.astype(np.float32))
    norms = np.linalg.norm(total, axis=1, keepdims=True)
    return np.asarray(total / np.maximum(norms, np.float32(1e-12)), dtype=np.float32)
