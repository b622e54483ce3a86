"""Caches are listed by workspace and pruned; what is no cache, or in use, is never touched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nm_lsp.cli import main
from nm_lsp.engine.caches import DAY_S, cache_list, prune
from nm_lsp.storage.index_store import IndexStore, Manifest
from nm_lsp.storage.locations import cache_root, index_folder, page_folder, vector_cache_file
from nm_lsp.storage.vectors import VectorCache

NOW = 1_800_000_000.0


def clock() -> float:
    return NOW


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """An index of a folder that was last opened so many days ago."""

    def make(name: str, days: float = 0, *, exists: bool = True, noted: bool = True) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        store = IndexStore(index_folder(folder))
        store.prepare(folder)
        vectors = store.write_vectors(np.arange(10, dtype=np.uint64), np.ones((10, 384), np.float32))
        store.publish(Manifest("x", vectors=(vectors,)))
        pages = page_folder(folder) / "999999999-1"
        pages.mkdir(parents=True)
        (pages / "page.md").write_text("p" * 1000)
        for path in store.folder.iterdir():
            os.utime(path, (NOW - days * DAY_S, NOW - days * DAY_S))
        if not exists:
            folder.rmdir()
        if not noted:
            (store.folder / "workspace").unlink()
        return store.folder

    return make


def test_every_cache_is_listed_with_its_parts(made: Callable[..., Path], tmp_path: Path) -> None:
    made("new")
    made("old", 100)
    made("gone", 1, exists=False)
    lists = cache_list(clock=clock)
    assert [(Path(str(row.workspace)).name, row.exists, row.in_use) for row in lists.workspaces] == [
        ("old", True, False), ("gone", False, False), ("new", True, False),
    ]  # fmt: skip
    for row in lists.workspaces:
        assert row.vector_bytes > 10 * 384 * 4
        assert 0 < row.index_bytes < 2000
        assert row.page_bytes == 1000
    assert lists.bytes == sum(row.index_bytes + row.vector_bytes + row.page_bytes for row in lists.workspaces)


def test_prune_takes_what_is_gone_or_long_unused(made: Callable[..., Path], tmp_path: Path) -> None:
    new, old, gone = made("new", 3), made("old", 100), made("gone", 1, exists=False)
    unknown_new, unknown_old = made("a", 3, noted=False), made("b", 100, noted=False)
    others = tmp_path / "XDG_STATE_HOME" / "nm_lsp" / "memory-20260101T000000Z-day.db"
    others.parent.mkdir(parents=True)
    others.write_text("a backup")
    tried = prune(90, dry_run=True, clock=clock)
    assert all(path.exists() for path in (new, old, gone, unknown_new, unknown_old)), "a dry run removes nothing"
    done = prune(90, dry_run=False, clock=clock)
    assert (tried.removed, tried.bytes) == (done.removed, done.bytes)
    assert [path.exists() for path in (new, old, gone, unknown_new, unknown_old)] == [True, False, False, True, False]
    assert not page_folder(tmp_path / "gone").exists()
    assert page_folder(tmp_path / "new").exists()
    assert others.read_text() == "a backup"
    assert prune(90, dry_run=False, clock=clock).removed == ()


def test_an_index_that_a_process_uses_stays(made: Callable[..., Path]) -> None:
    old = made("old", 100)
    with IndexStore(old).writer_lock():
        result = prune(90, dry_run=False, clock=clock)
    assert result.removed == ()
    assert [Path(str(row.workspace)).name for row in result.kept] == ["old"]
    assert old.exists()


def test_shared_vectors_go_by_their_last_use() -> None:
    now = NOW - 100 * DAY_S
    cache = VectorCache.open(vector_cache_file(), clock=lambda: now)
    cache.put_many([bytes([n]) * 32 for n in range(200)], np.ones((200, 384), np.float32))
    now = NOW
    cache.get_many([bytes([n]) * 32 for n in range(50)])
    cache.close()
    assert cache_list(90 * DAY_S, clock).shared.unused == 150
    tried = prune(90, dry_run=True, clock=clock)
    assert (tried.vectors, cache_list(clock=clock).shared.vectors) == (150, 200)
    done = prune(90, dry_run=False, clock=clock)
    assert (done.vectors, cache_list(clock=clock).shared.vectors) == (150, 50)
    assert done.bytes > 100 * 384 * 4


def test_nothing_cached_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["list"], ["prune", "--dry-run"]):
        with pytest.raises(SystemExit) as ended:
            main.run(["cache", *words])
        assert ended.value.code == 0
    assert "in all: 0.0 kB" in capsys.readouterr().out
    assert not cache_root().exists(), "looking makes nothing"


def test_the_commands_print_a_table_and_json(made: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    made("gone", exists=False)

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main.run(["cache", *words])
        assert ended.value.code == 0
        return capsys.readouterr().out

    shown = run("list").splitlines()
    assert shown[0].split() == ["last", "used", "index", "vectors", "pages", "folder"]
    assert "gone" in shown[1].split()
    (row,) = json.loads(run("list", "--json"))["workspaces"]
    assert (row["exists"], row["inUse"]) == (False, False)
    assert "1 index and 0 vectors would be removed" in run("prune", "--dry-run")
    told: dict[str, Any] = json.loads(run("prune", "--json"))
    assert (len(told["removed"]), told["dryRun"]) == (1, False)
    assert json.loads(run("list", "--json"))["workspaces"] == []
