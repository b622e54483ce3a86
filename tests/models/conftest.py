"""The pinned model for tests: from the user's cache, installed there by the function behind `nm-lsp model install`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from nm_lsp.base.errors import ModelProblem
from nm_lsp.models.install import install
from nm_lsp.models.weights import ModelFiles

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def model_files() -> ModelFiles:
    # Test processes that run side by side take turns; all but the first find the model installed.
    with FileLock(Path(tempfile.gettempdir()) / "nm_lsp-tests-model.lock"):
        try:
            return install(lambda _done, _total: None)
        except ModelProblem as problem:
            pytest.skip(f"embedding model not to be had: {problem}")


@pytest.fixture(scope="session")
def embedder(model_files):
    from nm_lsp.models.embedder import Embedder

    return Embedder.open(model_files)


@pytest.fixture(scope="session")
def reference_texts() -> list[str]:
    entries = json.loads((HERE / "reference_texts.json").read_text(encoding="utf-8"))
    return [entry if isinstance(entry, str) else entry["repeat"] * entry["times"] for entry in entries]


@pytest.fixture(scope="session")
def reference() -> dict[str, np.ndarray]:
    with np.load(HERE / "reference_vectors.npz") as arrays:
        return dict(arrays)
