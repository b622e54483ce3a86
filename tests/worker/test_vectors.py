"""Vectors are made on a thread: what is saved meanwhile comes next, and nothing is left out."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.storage.index_store import IndexStore
from nm_lsp.worker import embedding, vectors
from nm_lsp.worker.folder import FolderIndex, Options
from nm_lsp.worker.vectors import VectorsDone, VectorWork

PATIENCE_S = 20.0


class Model:
    """Instead of the model: says which texts it got, and goes on when it is told to."""

    model_id = "model"

    def __init__(self) -> None:
        self.given: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        self.go_on = threading.Semaphore(0)

    def open(self, _files: object, *, threads: int) -> Model:
        assert threads == 1
        return self

    def embed(self, texts: Sequence[str], cancel: Cancellation) -> np.ndarray[Any, np.dtype[np.float32]]:
        self.given.put(list(texts))
        assert self.go_on.acquire(timeout=PATIENCE_S)
        cancel.check()
        return np.ones((len(texts), 384), np.float32)

    def next(self) -> str:
        """The text that it got, one at a time."""
        (text,) = self.given.get(timeout=PATIENCE_S)
        return text


class Work:
    """A folder, its index, and what the thread has posted."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.model = model
        self.posted: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.folder = folder / "project"
        self.folder.mkdir()
        store = IndexStore(folder / "index")
        store.prepare(self.folder)
        self.index = FolderIndex(self.folder, store, Options((), 1_000_000, 1_000, "git"))
        self.vectors = VectorWork(1, folder / "cache" / "vectors.db", 1, self.posted.put)

    def save(self, *names: str) -> bool:
        """Files with one function each, read by the index; whether vectors are made now."""
        for name in names:
            (self.folder / f"{name}.py").write_text(f'def {name}():\n    """Do {name}."""\n')
        for _ in self.index.read_chunk(self.index.scan(None, ()).to_read):
            pass
        return self.vectors.start(self.index, ())

    def take(self) -> bool:
        """Take the next block; whether it was the last."""
        block = self.posted.get(timeout=PATIENCE_S)
        assert isinstance(block, VectorsDone)
        assert block.error is None
        return self.vectors.take(self.index, block)

    @property
    def n_missing(self) -> int:
        names = self.index.manifest.vectors
        keys = [self.index.store.vectors(name).keys for name in names]
        have = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
        return int((~np.isin(embedding.wanted_keys(self.index.corpus()), have)).sum())


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    model = Model()
    monkeypatch.setattr(embedding, "Embedder", model)
    monkeypatch.setattr(embedding, "TEXT_BLOCK", 1)
    monkeypatch.setattr(vectors, "model_status", lambda: type("Status", (), {"files": model}))
    work = Work(tmp_path, model)
    yield work
    work.vectors.stop()
    model.go_on.release(100)


def test_what_is_saved_meanwhile_comes_next_and_nothing_is_begun_anew(work: Work) -> None:
    assert work.save("first", "second", "third")
    begun = work.model.next()
    assert work.save("urgent")
    work.model.go_on.release(100)
    rest = [work.model.next() for _ in range(3)]
    assert "urgent" in rest[0]
    assert len({begun, *rest}) == 4
    assert not work.take()
    assert work.take()
    assert work.n_missing == 0
    assert work.vectors.run == 1


def test_what_is_saved_when_the_thread_has_looked_for_the_last_time_is_made_too(work: Work) -> None:
    assert work.save("first")
    work.model.next()
    work.model.go_on.release()
    assert not work.take()
    last = work.posted.get(timeout=PATIENCE_S)
    assert isinstance(last, VectorsDone)
    assert work.save("urgent")
    assert not work.vectors.take(work.index, last)
    assert "urgent" in work.model.next()
    work.model.go_on.release()
    assert not work.take()
    assert work.take()
    assert work.n_missing == 0


def test_a_great_change_begins_anew(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "QUIET_TEXTS", 1)
    assert work.save("first")
    assert "first" in work.model.next()
    assert work.save("second", "third")
    assert work.vectors.run == 2
    work.model.go_on.release(100)
    while not work.take():
        pass
    assert work.n_missing == 0
