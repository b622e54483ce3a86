"""The vector cache: what the embedding model said about a text, shared by all clones and branches of a user.

A key is the SHA-256 of model id and embedding text (32 bytes; no source text is kept), a value `dimensions`
float32 numbers. Several processes use one file at once. It is a cache: a damaged file is set aside and a new one
begun, a damaged row counts as absent, and the last commits may be lost in a power cut.

Cost, 100,000 vectors stored: 25,000 read in about 0.15 s, 500 written in about 10 ms.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nm_lsp.base.errors import InternalError, StoreProblem
from nm_lsp.storage.database import Database, Options, open_anew_if_damaged, set_damaged_aside
from nm_lsp.storage.migrations import Migration, Schema

Vectors = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

_KEY_BYTES = 32
_DAY_S = 86_400

SCHEMA = Schema(
    name="vector cache",
    application_id=0x6E6D4C76,  # "nmLv"
    migrations=(
        Migration(
            "keys apart from vectors",
            (
                # Vectors are appended and never move; the random keys and the day of last use, which reads
                # change, stay in a table of small rows.
                "CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT",
                """CREATE TABLE keys (
                    key BLOB PRIMARY KEY,
                    vector_id INTEGER NOT NULL,
                    checksum INTEGER NOT NULL,
                    used_day INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID""",
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """`by_last_use`: (Unix time of the day's start, vectors last used on it), newest first."""

    path: Path
    n_vectors: int
    n_bytes: int
    by_last_use: tuple[tuple[int, int], ...]


class VectorCache:
    """`set_aside` is where a damaged file went when this one was opened, if it was."""

    def __init__(self, database: Database, set_aside: Path | None, dimensions: int, clock: Callable[[], float]) -> None:
        self._database = database
        self.set_aside = set_aside
        self.dimensions = dimensions
        self._clock = clock

    @classmethod
    def open(cls, path: Path, *, dimensions: int = 384, clock: Callable[[], float] = time.time) -> VectorCache:
        """Open or create the cache file. Raises `StoreProblem` where the folder cannot be used at all."""
        database, aside = open_anew_if_damaged(path, SCHEMA, _OPTIONS, clock())
        return cls(database, aside, dimensions, clock)

    def get_many(self, keys: Sequence[bytes]) -> tuple[Positions, Vectors]:
        """The cached vectors among `keys`.

        Returns `(positions, matrix)`: `positions` (int64, ascending) index `keys`, and `matrix[i]` (float32, shape
        `(len(positions), dimensions)`, writable) is the vector of `keys[positions[i]]`. A key given twice is
        answered twice; what is not in `positions` is not in the cache.
        """
        try:
            found = self._read(keys)
        except StoreProblem as error:
            if error.reason != "damaged":
                raise
            self._begin_anew()
            found = {}
        positions = np.array([i for i, key in enumerate(keys) if key in found], dtype=np.int64)
        joined = b"".join([found[keys[i]] for i in positions.tolist()])
        matrix = np.frombuffer(joined, dtype="<f4").reshape(-1, self.dimensions).astype(np.float32)
        return positions, matrix

    def put_many(self, keys: Sequence[bytes], matrix: Vectors) -> None:
        """Store `matrix[i]` under `keys[i]`; a key that is there keeps its vector unless that one is damaged.

        `matrix` has shape `(len(keys), dimensions)` and finite values. Raises `StoreProblem` (locked, full, …), after
        which the caller may go on: the vectors are embedded again next time.
        """
        if matrix.shape != (len(keys), self.dimensions) or not np.isfinite(matrix).all():
            raise InternalError(f"vectors of shape {matrix.shape}, or not finite, offered for {len(keys)} keys")
        if any(len(key) != _KEY_BYTES for key in keys):
            raise InternalError("a key of the vector cache has 32 bytes")
        rows = [row.tobytes() for row in np.ascontiguousarray(matrix, dtype="<f4")]
        try:
            self._write(keys, rows)
        except StoreProblem as error:
            if error.reason not in {"damaged", "replaced"}:
                raise
            self._begin_anew()
            self._write(keys, rows)

    def usage(self) -> CacheUsage:
        """How much is kept, and when it was last used (`nm-lsp cache list`)."""
        with self._database.reading() as connection:
            days = connection.execute(_BY_DAY).fetchall()
        n_bytes = sum(f.stat().st_size for f in (self._database.path, Path(f"{self._database.path}-wal")) if f.exists())
        by_last_use = tuple((int(day) * _DAY_S, int(n)) for day, n in days)
        return CacheUsage(self._database.path, sum(n for _, n in by_last_use), n_bytes, by_last_use)

    def prune(self, *, max_bytes: int | None = None, unused_for_s: float | None = None) -> int:
        """Drop what was not used for `unused_for_s`, then the longest unused until the vectors take at most
        `max_bytes`; return how many went. The file shrinks at once."""
        n_dropped = 0
        with self._database.atomic() as connection:
            if unused_for_s is not None:
                before = int((self._clock() - unused_for_s) // _DAY_S)
                n_dropped += connection.execute(_DROP_UNUSED, (before,)).rowcount
            if max_bytes is not None:
                n_kept = max_bytes // (self.dimensions * 4 + 2 * _KEY_BYTES)
                n_dropped += connection.execute(_DROP_OLDEST, (n_kept,)).rowcount
            connection.execute(_DROP_ORPHANS)
        if n_dropped:
            self._database.shrink()
        return n_dropped

    def close(self) -> None:
        self._database.close()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        today = int(self._clock() // _DAY_S)
        n_bytes = self.dimensions * 4
        found: dict[bytes, bytes] = {}
        used_before: list[bytes] = []
        with self._database.reading() as connection:
            for chunk in _chunks(keys):
                query = _GET.format(",".join("?" * len(chunk)))
                for key, vector, checksum, used_day in connection.execute(query, chunk):
                    if len(vector) == n_bytes and zlib.crc32(vector) == checksum:
                        found[key] = vector
                        if used_day < today:
                            used_before.append(key)
        if used_before:
            # Another process at work is no reason to fail a read: the day is noted with the next one.
            with contextlib.suppress(StoreProblem), self._database.atomic() as connection:
                connection.executemany(_USE, [(today, key) for key in used_before])
        return found

    def _write(self, keys: Sequence[bytes], rows: Sequence[bytes]) -> None:
        today = int(self._clock() // _DAY_S)
        with self._database.atomic() as connection:
            there: dict[bytes, bool] = {}
            for chunk in _chunks(keys):
                query = _GET.format(",".join("?" * len(chunk)))
                for key, vector, checksum, _ in connection.execute(query, chunk):
                    there[key] = zlib.crc32(vector) == checksum
            next_id = int(connection.execute(_NEXT_ID).fetchone()[0])
            new: dict[bytes, bytes] = {k: row for k, row in zip(keys, rows, strict=True) if not there.get(k, False)}
            connection.executemany(_PUT_VECTOR, enumerate(new.values(), next_id))
            # In the order of the keys, so that neighbours are written to one page.
            ids = {key: next_id + i for i, key in enumerate(new)}
            connection.executemany(_PUT_KEY, [(key, ids[key], zlib.crc32(new[key]), today) for key in sorted(new)])

    def _begin_anew(self) -> None:
        self._database.close()
        path = self._database.path
        # Opening alone would not see the damage: it skips the check of the whole file.
        aside = set_damaged_aside(path, SCHEMA, self._clock())
        self._database, opened_aside = open_anew_if_damaged(path, SCHEMA, _OPTIONS, self._clock())
        self.set_aside = aside or opened_aside


# The quick check reads the whole file, seconds for a large cache; rows carry checksums instead.
_OPTIONS = Options(synchronous="OFF", check_integrity=False)

_GET = (
    "SELECT k.key, v.vector, k.checksum, k.used_day FROM keys AS k JOIN vectors AS v ON v.id = k.vector_id "
    "WHERE k.key IN ({})"
)
_USE = "UPDATE keys SET used_day = ? WHERE key = ?"
_NEXT_ID = "SELECT coalesce(max(id), 0) + 1 FROM vectors"
_PUT_VECTOR = "INSERT INTO vectors (id, vector) VALUES (?, ?)"
_PUT_KEY = "INSERT OR REPLACE INTO keys (key, vector_id, checksum, used_day) VALUES (?, ?, ?, ?)"
_BY_DAY = "SELECT used_day, count(*) FROM keys GROUP BY used_day ORDER BY used_day DESC"
_DROP_UNUSED = "DELETE FROM keys WHERE used_day < ?"
_DROP_OLDEST = """
DELETE FROM keys WHERE key IN (SELECT key FROM keys ORDER BY used_day DESC, vector_id DESC LIMIT -1 OFFSET ?)
"""
_DROP_ORPHANS = "DELETE FROM vectors WHERE id NOT IN (SELECT vector_id FROM keys)"

_CHUNK = 500  # bound parameters at once; old builds of SQLite allow 999


def _chunks(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    left = iter(dict.fromkeys(keys))
    while chunk := list(islice(left, _CHUNK)):
        yield chunk
