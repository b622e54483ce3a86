"""Segments are joined: few to open, none too large to make, no file lost, stamps kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
