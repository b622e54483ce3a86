"""Vectors for the docs of one index: from the shared cache where they are known, else computed, most useful first.

Runs on a thread of the child beside the parser, which it never waits for. What is done is handed on in blocks, so that
a search has it within seconds.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import StoreProblem
from nm_lsp.models.embedder import Embedder
from nm_lsp.models.weights import ModelFiles
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.embedding_text import embedding_text
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.segment import short_keys
from nm_lsp.storage.vectors import VectorCache

CACHE_BLOCK = 4_096
TEXT_BLOCK = 256
PUBLISH_S = 3.0
"""Computed vectors are handed on at least this often."""

Keys = NDArray[np.uint64]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pending:
    """A text that has no vector yet. `short` is the first 8 bytes of its key, as the index stores it."""

    short: int
    text: str


def wanted_keys(corpus: Corpus) -> Keys:
    """The distinct short keys of all live docs, ascending."""
    parts = [short_keys(segment.key) for segment in corpus.segments]
    keys = np.concatenate(parts)[corpus.live] if parts else np.zeros(0, np.uint64)
    distinct: Keys = np.unique(keys[keys != 0])
    return distinct


def pending_texts(corpus: Corpus, known: Keys, preferred: Sequence[str]) -> list[Pending]:
    """Texts without a vector, most useful first: open files, documented definitions outside tests, then the rest."""
    parts = [short_keys(segment.key) for segment in corpus.segments]
    keys = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    missing = np.flatnonzero(corpus.live & (keys != 0) & ~np.isin(keys, known))
    opened, seen = set(preferred), set()
    rows: list[tuple[tuple[bool, ...], int, Pending]] = []
    for doc in missing.tolist():
        short = int(keys[doc])
        if short in seen:
            continue
        seen.add(short)
        node = corpus.node(doc)
        text = embedding_text(node)
        if text is None:
            continue
        is_test = role_of(node.path) is Role.TEST
        rank = (node.path not in opened, is_test, not node.doc, node.name.startswith("_"))
        rows.append((rank, len(rows), Pending(short, text)))
    rows.sort(key=lambda row: row[:2])
    return [row[2] for row in rows]


def cache_key(model_id: str, text: str) -> bytes:
    """SHA-256 of model id and text: the key of the cache that clones and branches share."""
    return hashlib.sha256(model_id.encode() + b"\0" + text.encode("utf-8", "surrogatepass")).digest()


def embed_pending(
    pending: Sequence[Pending],
    late: deque[Pending],
    files: ModelFiles,
    cache_path: Path,
    *,
    threads: int,
    fresh: bool,
    hand_on: Callable[[Keys, Matrix], None],
    cancel: Cancellation,
) -> None:
    """Find or compute all vectors and hand them on in blocks. `fresh`: compute even what the cache holds.

    What another thread appends to `late` meanwhile comes next; what it appends at the very end may stay there.
    Raises `Cancelled`, `ModelProblem`. A cache that cannot be used costs time and nothing else.
    """
    cache = _open_cache(cache_path)
    try:
        todo = list(pending)
        if cache is not None and not fresh:
            todo = _take_cached(cache, pending, files.model_id, hand_on, cancel)
        _compute(cache, todo, late, files, threads=threads, hand_on=hand_on, cancel=cancel)
    finally:
        if cache is not None:
            cache.close()


def _compute(
    cache: VectorCache | None,
    todo: Sequence[Pending],
    late: deque[Pending],
    files: ModelFiles,
    *,
    threads: int,
    hand_on: Callable[[Keys, Matrix], None],
    cancel: Cancellation,
) -> None:
    if not todo and not late:
        return
    embedder = Embedder.open(files, threads=threads)
    done: list[Pending] = []
    blocks: list[Matrix] = []
    handed_on = time.monotonic()

    def publish() -> None:
        matrix = np.concatenate(blocks)
        hand_on(np.array([item.short for item in done], np.uint64), matrix)
        _remember(cache, [cache_key(files.model_id, item.text) for item in done], matrix)

    for block in _blocks(todo, late):
        blocks.append(embedder.embed([item.text for item in block], cancel))
        done += block
        if time.monotonic() - handed_on >= PUBLISH_S:
            publish()
            done, blocks, handed_on = [], [], time.monotonic()
    if done:
        publish()


def _blocks(todo: Sequence[Pending], late: deque[Pending]) -> Iterator[list[Pending]]:
    at = 0
    while late or at < len(todo):
        if late:
            yield [late.popleft() for _ in range(min(len(late), TEXT_BLOCK))]
        else:
            yield list(todo[at : at + TEXT_BLOCK])
            at += TEXT_BLOCK


def _open_cache(path: Path) -> VectorCache | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return VectorCache.open(path)
    except (StoreProblem, OSError):
        return None


def _take_cached(
    cache: VectorCache,
    pending: Sequence[Pending],
    model_id: str,
    hand_on: Callable[[Keys, Matrix], None],
    cancel: Cancellation,
) -> list[Pending]:
    """Hands on what the cache holds; returns what it does not."""
    missing: list[Pending] = []
    for start in range(0, len(pending), CACHE_BLOCK):
        cancel.check()
        block = pending[start : start + CACHE_BLOCK]
        try:
            positions, matrix = cache.get_many([cache_key(model_id, item.text) for item in block])
        except StoreProblem:
            return [*missing, *pending[start:]]
        found = positions.tolist()
        known = set(found)
        missing += [item for row, item in enumerate(block) if row not in known]
        if found:
            hand_on(np.array([block[row].short for row in found], np.uint64), matrix)
    return missing


def _remember(cache: VectorCache | None, keys: Sequence[bytes], matrix: Matrix) -> None:
    if cache is None:
        return
    try:
        cache.put_many(keys, matrix)
    except StoreProblem:
        # They are in the index; only the next clone has to compute them again.
        return
