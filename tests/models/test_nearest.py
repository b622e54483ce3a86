"""Exact search against a plain oracle; Annoy against exact search."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled
from nm_lsp.models import nearest
from nm_lsp.models.nearest import ANNOY_THRESHOLD, ExactRows, best, open_nearest, wants_annoy

DIMENSIONS = 64


def unit(matrix: np.ndarray) -> np.ndarray:
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


def clusters(n: int, dimensions: int, seed: int = 0, n_clusters: int = 60) -> np.ndarray:
    """Points around centres, as texts of one code base lie."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((n_clusters, dimensions))
    return unit(centres[random.integers(0, n_clusters, n)] + 0.8 * random.standard_normal((n, dimensions)))


def queries(matrix: np.ndarray, n: int) -> np.ndarray:
    random = np.random.default_rng(1)
    near = matrix[random.integers(0, len(matrix), n)]
    return unit(near + 0.03 * random.standard_normal(near.shape))


def oracle(parts, query, k, allowed):
    rows = [(-round(float(row @ query), 6), number) for number, row in enumerate(np.concatenate(parts))]
    return [number for _, number in sorted(row for row in rows if allowed is None or allowed[row[1]])[:k]]


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    k=st.integers(0, 12),
    seed=st.integers(0, 1000),
    masked=st.booleans(),
)
def test_exact_search_is_the_sorted_list(lengths, k, seed, masked):
    random = np.random.default_rng(seed)
    # Few directions, so that most scores tie; powers of two, so that every sum is exact.
    parts = [random.choice([-0.5, 0.0, 0.5], (n, 3)).astype(np.float32) for n in lengths]
    query = np.array([0.5, 0.25, -0.5], dtype=np.float32)
    allowed = random.random(sum(lengths)) < 0.5 if masked else None
    found = ExactRows(parts).search(query, k, allowed)
    assert found.rows.tolist() == oracle(parts, query, k, allowed)
    np.testing.assert_allclose(found.scores, np.concatenate(parts)[found.rows] @ query, atol=1e-6)


def test_blocks_and_parts_change_nothing(monkeypatch):
    matrix = clusters(1000, 32)
    query = queries(matrix, 1)[0]
    whole = ExactRows([matrix]).search(query, 25)
    monkeypatch.setattr(nearest, "BLOCK_ROWS", 7)
    pieces = ExactRows([matrix[:333], matrix[333:334], matrix[334:334], matrix[334:]]).search(query, 25)
    assert pieces.rows.tolist() == whole.rows.tolist()
    assert pieces.scores.tolist() == whole.scores.tolist()


def test_equal_vectors_come_by_row():
    matrix = np.repeat(clusters(1, 384), 1000, axis=0)
    assert ExactRows([matrix]).search(matrix[0], 5).rows.tolist() == [0, 1, 2, 3, 4]
    assert best(np.arange(4), np.array([0.5, 0.9, 0.5000001, 0.9], np.float32), 3).rows.tolist() == [1, 3, 0]


def test_memory_mapped_parts_are_searched_in_place(tmp_path):
    matrix = clusters(300, 384)
    np.save(tmp_path / "m.npy", matrix)
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r")
    query = queries(matrix, 1)[0]
    assert ExactRows([mapped]).search(query, 9).rows.tolist() == ExactRows([matrix]).search(query, 9).rows.tolist()


def test_no_rows_give_nothing():
    query = clusters(1, 384)[0]
    for parts in ([], [np.empty((0, 384), np.float32)]):
        assert open_nearest(parts).search(query, 5).rows.tolist() == []


def test_the_choice_goes_by_size(monkeypatch):
    monkeypatch.setattr(nearest, "annoy_available", lambda: True)
    assert not wants_annoy(ANNOY_THRESHOLD - 1)
    assert wants_annoy(ANNOY_THRESHOLD)
    monkeypatch.setattr(nearest, "annoy_available", lambda: False)
    assert not wants_annoy(ANNOY_THRESHOLD)


def test_without_the_extra_every_search_is_exact(monkeypatch, tmp_path):
    monkeypatch.setattr(nearest, "annoy_available", lambda: False)
    (tmp_path / "a.ann").write_bytes(b"x")
    assert isinstance(open_nearest([clusters(10, 384)], tmp_path / "a.ann"), ExactRows)


def test_the_module_can_be_imported_without_the_extra():
    program = "import sys; sys.modules['annoy'] = None; import nm_lsp.models.annoy_index"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture(scope="module")
def annoy():
    pytest.importorskip("annoy", reason="the extra `annoy` is not installed")
    from nm_lsp.models import annoy_index

    return annoy_index


@pytest.fixture(scope="module")
def matrix():
    """Enough rows that the trees really leave most of them out."""
    return clusters(10_000, DIMENSIONS)


@pytest.fixture(scope="module")
def file(annoy, matrix, tmp_path_factory):
    path = tmp_path_factory.mktemp("annoy") / "rows.ann"
    annoy.build_annoy(matrix, path)
    return path


def recall(found, exact, matrix, k, allowed=None):
    hits = 0
    for query in queries(matrix, 50):
        a, b = found.search(query, k, allowed), exact.search(query, k, allowed)
        hits += len(set(a.rows.tolist()) & set(b.rows.tolist()))
    return hits / (50 * k)


@pytest.mark.parametrize("k", [1, 20, 100])
def test_recall(annoy, matrix, file, k):
    rows = open_nearest([matrix], file)
    assert isinstance(rows, annoy.AnnoyRows)
    assert recall(rows, ExactRows([matrix]), matrix, k) >= 0.97


def test_scores_are_exact(annoy, matrix, file):
    query = queries(matrix, 1)[0]
    found = open_nearest([matrix], file).search(query, 20)
    np.testing.assert_allclose(found.scores, matrix[found.rows] @ query, atol=1e-6)
    assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)


def test_rows_added_since_are_found_exactly(annoy, matrix, file):
    before, after = clusters(40, DIMENSIONS, seed=5), clusters(30, DIMENSIONS, seed=6)
    rows = open_nearest([before, matrix, after], file, annoy_part=1)
    assert rows.n_rows == 10_070
    for row in (0, 39, 40, 10_039, 10_040, 10_069):
        query = np.concatenate([before, matrix, after])[row]
        assert rows.search(query, 3).rows[0] == row


def test_removed_rows_are_not_found(annoy, matrix, file):
    allowed = np.random.default_rng(3).random(len(matrix)) < 0.7
    rows = open_nearest([matrix], file)
    for query in queries(matrix, 10):
        assert allowed[rows.search(query, 20, allowed).rows].all()
    assert recall(rows, ExactRows([matrix]), matrix, 20, allowed) >= 0.97


@pytest.mark.parametrize("n_left", [0, 3, 50])
def test_a_mask_that_leaves_few_rows_finds_them_all(annoy, matrix, file, n_left):
    allowed = np.zeros(len(matrix), dtype=bool)
    allowed[np.random.default_rng(4).choice(len(matrix), n_left, replace=False)] = True
    query = queries(matrix, 1)[0]
    found = open_nearest([matrix], file).search(query, 20, allowed)
    assert found.rows.tolist() == ExactRows([matrix]).search(query, 20, allowed).rows.tolist()


def test_same_matrix_same_file(annoy, matrix, file, tmp_path):
    annoy.build_annoy(matrix, tmp_path / "again.ann")
    query = queries(matrix, 1)[0]
    a, b = open_nearest([matrix], file), open_nearest([matrix], tmp_path / "again.ann")
    assert a.search(query, 50).rows.tolist() == b.search(query, 50).rows.tolist()
    assert (tmp_path / "again.ann").read_bytes() == file.read_bytes()


def test_a_file_that_does_not_fit_means_exact_search(annoy, matrix, file, tmp_path):
    cut = tmp_path / "cut.ann"
    cut.write_bytes(file.read_bytes()[:-100])
    empty = tmp_path / "empty.ann"
    empty.touch()
    for path in (tmp_path / "absent.ann", cut, empty):
        assert isinstance(open_nearest([matrix], path), ExactRows)
    assert isinstance(open_nearest([matrix[:-1]], file), ExactRows)


def test_a_withdrawn_build_leaves_nothing(annoy, matrix, tmp_path):
    cancel = Cancellation()
    cancel.cancel()
    with pytest.raises(Cancelled):
        annoy.build_annoy(matrix, tmp_path / "rows.ann", cancel)
    assert list(tmp_path.iterdir()) == []
