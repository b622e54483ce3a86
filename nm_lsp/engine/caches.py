"""What is kept in the user's cache folder and can be made again: indexes, the vectors they share, pages.

Guarantees: nothing else is ever removed (decisions, what was learned, the audit chain and backups lie elsewhere), and
nothing that a running process uses.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from nm_lsp.engine import leftovers
from nm_lsp.engine.decisions.pages import remove_left_behind
from nm_lsp.storage.index_store import IndexStore
from nm_lsp.storage.locations import index_folder, index_root, page_folder, vector_cache_file
from nm_lsp.storage.times import utc_text
from nm_lsp.storage.vectors import VectorCache

DAY_S = 86_400.0
END_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class WorkspaceCache:
    """The caches of one workspace folder, in bytes. `workspace` is None for an index of an older version, which did not
    note it; `exists` is False where the folder is gone."""

    index: str
    workspace: str | None
    exists: bool
    index_bytes: int
    vector_bytes: int
    page_bytes: int
    last_used: str
    in_use: bool

    @property
    def n_bytes(self) -> int:
        """Of all its caches."""
        return self.index_bytes + self.vector_bytes + self.page_bytes


@dataclass(frozen=True, slots=True)
class SharedVectors:
    """The vectors that all workspaces share; `unused` were asked for by nobody since the day that was asked about."""

    file: str
    vectors: int
    bytes: int
    unused: int


@dataclass(frozen=True, slots=True)
class CacheList:
    """`bytes` is the sum of all."""

    workspaces: tuple[WorkspaceCache, ...]
    shared: SharedVectors
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or with a dry run would be. `kept` are caches that a running process uses, `leftovers` what
    processes that were killed left behind (pages, tokens of servers)."""

    removed: tuple[WorkspaceCache, ...]
    kept: tuple[WorkspaceCache, ...]
    vectors: int
    leftovers: int
    bytes: int
    dry_run: bool


def cache_list(unused_for_s: float | None = None, clock: Callable[[], float] = time.time) -> CacheList:
    """Everything, the longest unused first."""
    root = index_root()
    stores = [IndexStore(path) for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    rows = sorted((_workspace(store) for store in stores), key=lambda row: (row.last_used, row.index))
    shared = _shared(unused_for_s, clock)
    total = shared.bytes + sum(row.n_bytes for row in rows)
    return CacheList(tuple(rows), shared, total)


def prune(unused_days: int, *, dry_run: bool, clock: Callable[[], float] = time.time) -> Pruned:
    """Remove the caches of folders that are gone, and whatever was not used for `unused_days`.

    Raises `StoreProblem` where the shared vectors cannot be opened.
    """
    unused_for_s = unused_days * DAY_S
    before = cache_list(unused_for_s, clock)
    oldest = utc_text(clock() - unused_for_s)
    wanted = [row for row in before.workspaces if (row.workspace and not row.exists) or row.last_used < oldest]
    kept = [row for row in wanted if row.in_use]
    removed, n_bytes = [], 0
    for row in wanted:
        if not row.in_use and (dry_run or _remove(row)):
            removed.append(row)
            n_bytes += row.n_bytes
    n_left = _remove_leftovers(dry_run=dry_run)
    n_vectors = before.shared.unused
    if n_vectors and not dry_run:
        n_vectors, freed = _prune_vectors(unused_for_s, clock)
        n_bytes += freed
    elif n_vectors:
        n_bytes += before.shared.bytes * n_vectors // before.shared.vectors
    return Pruned(tuple(removed), tuple(kept), n_vectors, n_left, n_bytes, dry_run)


def forget(folder: Path) -> bool:
    """Remove the caches of one workspace folder whose processes are ending; say whether they are gone.

    The shared vectors stay: the same texts lie elsewhere, too.
    """
    store = IndexStore(index_folder(folder))
    return not store.folder.is_dir() or _remove(_workspace(store), END_WITHIN_S)


def _remove_leftovers(*, dry_run: bool) -> int:
    tokens, pages = leftovers.dead_tokens(), leftovers.dead_pages()
    if not dry_run:
        for path in tokens:
            path.unlink(missing_ok=True)
        for path in pages:
            shutil.rmtree(path, ignore_errors=True)
    return len(tokens) + len(pages)


def _workspace(store: IndexStore) -> WorkspaceCache:
    workspace, used_at = store.workspace()
    sizes = {True: 0, False: 0}
    for path in store.folder.iterdir():
        sizes[path.name.startswith(("vectors-", "annoy-"))] += _size(path)
    pages = page_folder(workspace) if workspace is not None else None
    page_bytes = sum(_size(path) for path in pages.rglob("*")) if pages is not None and pages.is_dir() else 0
    exists = workspace is not None and workspace.is_dir()
    name = str(workspace) if workspace is not None else None
    return WorkspaceCache(
        store.folder.name, name, exists, sizes[False], sizes[True], page_bytes, utc_text(used_at), _is_in_use(store)
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _is_in_use(store: IndexStore) -> bool:
    lock = store.writer_lock()
    try:
        with lock.acquire(timeout=0):
            return False
    except (Timeout, OSError):
        return True


def _remove(row: WorkspaceCache, wait_s: float = 0.0) -> bool:
    """Whether it was removed; a process that uses it for longer than `wait_s` keeps it."""
    store = IndexStore(index_root() / row.index)
    try:
        with store.writer_lock().acquire(timeout=wait_s):
            # Without a manifest nothing of it is an index any more, whatever stops the rest.
            (store.folder / "manifest.json").unlink(missing_ok=True)
            shutil.rmtree(store.folder, ignore_errors=True)
    except (Timeout, OSError):
        return False
    if row.workspace is not None:
        pages = page_folder(Path(row.workspace))
        remove_left_behind(pages)
        if pages.is_dir() and not any(pages.iterdir()):
            pages.rmdir()
    return True


def _shared(unused_for_s: float | None, clock: Callable[[], float]) -> SharedVectors:
    path = vector_cache_file()
    if not path.exists():
        return SharedVectors(str(path), 0, 0, 0)
    cache = VectorCache.open(path, clock=clock)
    try:
        usage = cache.usage()
    finally:
        cache.close()
    first_day = (clock() - unused_for_s) // DAY_S * DAY_S if unused_for_s is not None else 0.0
    n_unused = sum(n for day, n in usage.by_last_use if day < first_day)
    return SharedVectors(str(path), usage.n_vectors, usage.n_bytes, n_unused)


def _prune_vectors(unused_for_s: float, clock: Callable[[], float]) -> tuple[int, int]:
    cache = VectorCache.open(vector_cache_file(), clock=clock)
    try:
        n_bytes = cache.usage().n_bytes
        n_dropped = cache.prune(unused_for_s=unused_for_s)
        return n_dropped, max(n_bytes - cache.usage().n_bytes, 0)
    finally:
        cache.close()
