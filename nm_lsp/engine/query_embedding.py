"""The question's vector: the model is loaded at the first question and shared by all folders."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nm_lsp.base.errors import ModelProblem
from nm_lsp.engine.requests import Problem
from nm_lsp.engine.settings import Settings
from nm_lsp.models.tokenizer import WordPieces
from nm_lsp.models.weights import ModelFiles, model_status
from nm_lsp.search.token_count import TokenCount, counted_tokens, estimated_tokens

_REMEMBERED = 256
_COUNTED = 20_000


class QueryEmbedder:
    """Thread-safe. Answers None, once and for every question, where there is no usable model."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._lock = threading.Lock()
        self._files: ModelFiles | None = None
        self._embedder: object | None = None
        self._count: TokenCount | None = None
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    def configure(self, *, enabled: bool) -> None:
        self._enabled = enabled

    @property
    def files(self) -> ModelFiles | None:
        """The model in use; looked for again as long as there is none, so that an install needs no restart."""
        if not self._enabled:
            return None
        if self._files is None:
            self._files = model_status().files
        return self._files

    def embed(self, text: str) -> NDArray[np.float32] | None:
        """The vector (384, length 1) of `text`, or None without a model."""
        files = self.files
        if files is None:
            return None
        with self._lock:
            known = self._vectors.get(text)
            if known is not None:
                self._vectors.move_to_end(text)
                return known
            # Imported late: the runtime costs a third of a second that no other request should pay.
            from nm_lsp.models.embedder import Embedder

            try:
                if self._embedder is None:
                    self._embedder = Embedder.open(files)
                assert isinstance(self._embedder, Embedder)
                vector: NDArray[np.float32] = self._embedder.embed([text])[0]
            except ModelProblem:
                self._enabled = False
                return None
            self._vectors[text] = vector
            if len(self._vectors) > _REMEMBERED:
                self._vectors.popitem(last=False)
            return vector

    def token_count(self) -> TokenCount:
        """The cost of a text, by the model's word pieces where there is a tokenizer."""
        files = self.files
        if files is None:
            return estimated_tokens
        if self._count is None:
            # Answers say the same lines again and again: titles, signatures, the summary.
            self._count = lru_cache(maxsize=_COUNTED)(counted_tokens(WordPieces(files.tokenizer).count))
        return self._count


def model_problems(embedder: QueryEmbedder, settings: Settings) -> tuple[Problem, ...]:
    """Says what is wrong with the model, if anything is and it is wanted."""
    if not settings.model.enabled or embedder.files is not None:
        return ()
    status = model_status()
    message = status.problem or "There are no model weights, so search goes by words and the graph alone."
    return (Problem("model", message, status.hint),)
