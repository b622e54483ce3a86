"""The index as its writer sees it: segments are joined, and what a disk has changed is used no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nm_lsp.storage.index_store import IndexStore
from nm_lsp.worker import folder as worker_folder
from nm_lsp.worker.folder import MAX_SMALL_SEGMENTS, FolderIndex, Options

Make = Callable[[int], FolderIndex]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """An index of so many files of two symbols each (module and function), every file in a segment of its own."""

    def make(n_files: int) -> FolderIndex:
        folder = tmp_path / "project"
        folder.mkdir()
        for n in range(n_files):
            (folder / f"m{n}.py").write_text(f"def f{n}():\n    return {n}\n")
        store = IndexStore(tmp_path / "index")
        store.prepare(folder)
        index = FolderIndex(folder, store, Options((), 1_000_000, 1_000, "git"))
        for item in index.scan(None, ()).to_read:
            for _ in index.read_chunk([item]):
                pass
        return index

    return make


def sizes(index: FolderIndex) -> list[int]:
    return [index.store.segment(entry.name).n_docs for entry in index.manifest.segments]


def test_many_small_segments_become_one(made: Make) -> None:
    index = made(12)
    for _ in index.merge():
        pass
    assert sizes(index) == [24]
    assert set(index.corpus().file_numbers) == {f"m{n}.py" for n in range(12)}


def test_no_merge_takes_more_than_its_limit(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_folder, "MAX_MERGED_DOCS", 20)
    index = made(60)
    for _ in index.merge():
        pass
    assert max(sizes(index)) <= 20
    assert sum(1 for size in sizes(index) if size < 10) <= MAX_SMALL_SEGMENTS
    assert len(index.corpus().file_numbers) == 60
    assert not index.scan(None, ()).gone
    assert not list(index.merge())


def test_a_segment_is_made_anew_once_half_of_it_is_dead(made: Make) -> None:
    index = made(12)
    for _ in index.merge():
        pass
    index.remove([f"m{n}.py" for n in range(7)], ())
    for _ in index.merge():
        pass
    assert sizes(index) == [10]


def test_vectors_that_a_disk_changed_are_used_no_more_nor_what_was_built_of_them(made: Make) -> None:
    index = made(2)
    store, draft = index.store, index.store.folder / "draft"
    names = [store.write_vectors(np.arange(1, 3, dtype=np.uint64), np.ones((2, 384), np.float32)) for _ in range(2)]
    draft.write_bytes(b"trees")
    annoy = store.take_annoy(draft)
    index.update(vectors=tuple(names), annoy=annoy)

    def reopened() -> tuple[tuple[str, ...], str | None]:
        again = FolderIndex(index.folder, IndexStore(store.folder), index.options).manifest
        return again.vectors, again.annoy

    assert reopened() == (tuple(names), annoy)
    change_a_byte(store.folder / names[1])
    assert reopened() == ((names[0],), annoy)
    change_a_byte(store.folder / annoy)
    assert reopened() == ((names[0],), None)
    index.update(annoy=annoy)
    change_a_byte(store.folder / annoy)
    change_a_byte(store.folder / names[0])
    assert reopened() == ((), None)


def change_a_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
