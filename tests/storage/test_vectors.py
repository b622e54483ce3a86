"""The vector cache: what goes in comes out, whatever happens to the file and whoever else uses it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nm_lsp.base.errors import InternalError
from nm_lsp.storage.vectors import VectorCache, Vectors

DAY_S = 86_400


class Clock:
    def __init__(self) -> None:
        self.now = 20_000.0 * DAY_S

    def __call__(self) -> float:
        return self.now


def keys(n: int, *, start: int = 0) -> list[bytes]:
    return [hashlib.sha256(str(i).encode()).digest() for i in range(start, start + n)]


def matrix(n: int, *, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).standard_normal((n, 384)).astype(np.float32)


def test_found_positions_and_rows_belong_together(tmp_path: Path) -> None:
    cache = VectorCache.open(tmp_path / "vectors.db")
    stored = matrix(600)
    cache.put_many(keys(600), stored)
    asked = [keys(1, start=9999)[0], keys(600)[7], keys(600)[599], keys(1, start=8888)[0], keys(600)[7]]
    positions, found = cache.get_many(asked)
    assert positions.tolist() == [1, 2, 4]
    assert np.array_equal(found, stored[[7, 599, 7]])
    assert found.dtype == np.float32
    found[0] = 0  # the caller may write into it
    cache.close()


def test_nothing_asked_and_nothing_found_have_the_right_shape(tmp_path: Path) -> None:
    cache = VectorCache.open(tmp_path / "vectors.db")
    for asked in ([], keys(3)):
        positions, found = cache.get_many(asked)
        assert positions.shape == (0,)
        assert found.shape == (0, 384)
    cache.put_many([], np.empty((0, 384), dtype=np.float32))
    cache.close()


def test_what_is_stored_is_kept_and_survives_reopening(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    cache = VectorCache.open(path)
    cache.put_many(keys(2), matrix(2))
    cache.put_many(keys(3), matrix(3, seed=1))
    cache.close()
    again = VectorCache.open(path)
    _, found = again.get_many(keys(3))
    assert np.array_equal(found[:2], matrix(2))
    assert np.array_equal(found[2], matrix(3, seed=1)[2])
    again.close()


@pytest.mark.parametrize("bad", [np.ones((2, 384)), np.ones((1, 383)), np.full((1, 384), np.nan)])
def test_vectors_that_do_not_fit_are_refused(tmp_path: Path, bad: Vectors) -> None:
    cache = VectorCache.open(tmp_path / "vectors.db")
    with pytest.raises(InternalError):
        cache.put_many(keys(1), bad)
    cache.close()


def damage_zeros(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\0" * 4096)


def damage_text(path: Path) -> None:
    path.write_text("not a database\n" * 100)


def damage_truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def damage_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [damage_zeros, damage_text, damage_truncated, damage_folder])
def test_a_damaged_file_is_set_aside_and_begun_anew(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "vectors.db"
    cache = VectorCache.open(path)
    cache.put_many(keys(200), matrix(200))
    cache.close()
    assert callable(damage)
    damage(path)
    cache = VectorCache.open(path)
    positions, found = cache.get_many(keys(200))
    assert np.array_equal(found, matrix(200)[positions])
    cache.put_many(keys(200), matrix(200))
    positions, found = cache.get_many(keys(200))
    assert positions.tolist() == list(range(200))
    assert np.array_equal(found, matrix(200))
    assert cache.set_aside is not None
    assert cache.set_aside.exists()
    assert cache.set_aside.name.startswith("vectors.db.corrupt-")
    cache.close()


def test_a_row_with_other_bytes_than_stored_counts_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    cache = VectorCache.open(path)
    stored = matrix(5)
    cache.put_many(keys(5), stored)
    cache.close()
    raw = path.read_bytes()
    at = raw.index(stored[3].tobytes())
    path.write_bytes(raw[:at] + b"\xff" * 8 + raw[at + 8 :])
    cache = VectorCache.open(path)
    positions, found = cache.get_many(keys(5))
    assert positions.tolist() == [0, 1, 2, 4]
    cache.put_many(keys(5), stored)
    positions, found = cache.get_many(keys(5))
    assert np.array_equal(found, stored)
    cache.close()


def test_prune_drops_the_longest_unused_first(tmp_path: Path) -> None:
    clock = Clock()
    cache = VectorCache.open(tmp_path / "vectors.db", clock=clock)
    cache.put_many(keys(100), matrix(100))
    clock.now += 10 * DAY_S
    cache.get_many(keys(30))
    clock.now += 10 * DAY_S
    cache.put_many(keys(20, start=500), matrix(20))
    assert [n for _, n in cache.usage().by_last_use] == [20, 30, 70]
    before = cache.usage().n_bytes
    assert cache.prune(unused_for_s=15 * DAY_S) == 70
    assert cache.usage().n_bytes < before
    assert cache.get_many(keys(100))[0].tolist() == list(range(30))
    clock.now += DAY_S
    cache.get_many(keys(20, start=500))
    assert cache.prune(max_bytes=20 * 1600) == 30
    assert cache.get_many(keys(20, start=500))[0].size == 20
    cache.close()


def test_several_processes_fill_one_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "vectors.db"
    program = """
import hashlib, sys, numpy as np
from pathlib import Path
from nm_lsp.storage.vectors import VectorCache
cache = VectorCache.open(Path(sys.argv[1]))
for start in range(0, 400, 20):
    keys = [hashlib.sha256(str(i).encode()).digest() for i in range(start, start + 40)]
    cache.get_many(keys)
    cache.put_many(keys, np.full((40, 384), 1.5, dtype=np.float32))
cache.close()
"""
    runs = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(3)]
    assert [run.wait(timeout=60) for run in runs] == [0, 0, 0]
    cache = VectorCache.open(path)
    positions, found = cache.get_many(keys(420))
    assert positions.size == 420
    assert (found == 1.5).all()
    assert cache.set_aside is None
    cache.close()
