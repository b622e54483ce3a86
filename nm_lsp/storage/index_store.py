"""The index on disk: immutable segments and vectors, and one manifest that is replaced atomically.

A cache: whatever is lost or damaged is built anew. Written only by the process that holds `writer_lock`; read by any
number of others, which take the newest manifest. No file is changed after it has a name in a manifest. A file that the
manifest no longer names is deleted, though never younger than `KEEP_S`; a reader that finds a named file gone reads the
manifest again.

    manifest.json               Manifest
    segment-<id>.safetensors    columns of `search.segment`
    vectors-<id>.safetensors    keys (n, uint64, ascending; first 8 bytes of the 32), matrix (n, 384, float32)
    topics-<id>.json            communities
    annoy-<id>.ann              nearest neighbours of the first vectors file
    writer.lock                 an OS lock; its content means nothing
    workspace                   the path of the folder that is indexed; its time is when it was last opened

The last eight digits of an id are the CRC-32 of the file, so that `is_intact` tells what a disk has changed since.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save

from nm_lsp.base.errors import StoreProblem
from nm_lsp.search.segment import Columns, Segment
from nm_lsp.search.topics import Topic

SCHEMA = 3
_KEPT = frozenset({"manifest.json", "writer.lock", "workspace", "suspects.json"})
KEEP_S = 60.0
"""No file is deleted before this age: its writer may not have named it yet."""

_BLOCK = 1 << 20

_DTYPES: Mapping[str, type[np.generic]] = {
    "U8": np.uint8,
    "U16": np.uint16,
    "I32": np.int32,
    "U32": np.uint32,
    "I64": np.int64,
    "U64": np.uint64,
    "F32": np.float32,
}


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment file and those of its files whose rows a later segment replaced."""

    name: str
    dead: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was looked at and not indexed, with its stamp, so that it is not looked at again."""

    path: str
    reason: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """`analyzer` names the versions that decide what an index holds; another value means: build anew.

    `complete` is False while the first build of this analyzer is under way. `model` is the model that made `vectors`.
    `read_ns` is when the newest of the files was read: a file whose mtime is not clearly older may have changed since.
    `touched` gives newer time stamps (ns) of files that were found to hold the bytes that were read.
    """

    analyzer: str
    generation: int = 0
    complete: bool = False
    segments: tuple[SegmentEntry, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    model: str | None = None
    vectors: tuple[str, ...] = ()
    annoy: str | None = None
    topics: str | None = None
    read_ns: int = 0
    touched: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class VectorRows:
    """`keys` ascending; `matrix[i]` is the vector of `keys[i]`, memory-mapped."""

    name: str
    keys: NDArray[np.uint64]
    matrix: NDArray[np.float32]


class IndexStore:
    """One index folder. Reading needs no lock and is safe while another process writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._segments: dict[str, Segment] = {}
        self._vectors: dict[str, VectorRows] = {}

    # -- reading ----------------------------------------------------------------------------------------------------

    def manifest_stamp(self) -> tuple[int, int] | None:
        """Changes whenever the manifest does; costs one `stat`."""
        try:
            status = (self.folder / "manifest.json").stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    def manifest(self) -> Manifest | None:
        """The newest manifest, or None where there is none that can be used."""
        try:
            data = json.loads((self.folder / "manifest.json").read_bytes())
            if data.pop("schema") != SCHEMA:
                return None
            data["segments"] = tuple(SegmentEntry(row["name"], tuple(row["dead"])) for row in data["segments"])
            data["skipped"] = tuple(SkippedFile(**row) for row in data["skipped"])
            data["vectors"] = tuple(data["vectors"])
            data["touched"] = tuple((path, mtime_ns) for path, mtime_ns in data["touched"])
            return Manifest(**data)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def segment(self, name: str) -> Segment:
        """Open (once) and map a segment. Raises `StoreProblem` for a damaged or missing one."""
        segment = self._segments.get(name)
        if segment is None:
            try:
                segment = self._segments[name] = Segment(self._map(name))
            except KeyError as error:
                raise StoreProblem(f"{name} lacks the column {error}", reason="damaged") from error
        return segment

    def vectors(self, name: str) -> VectorRows:
        rows = self._vectors.get(name)
        if rows is None:
            columns = self._map(name)
            try:
                rows = self._vectors[name] = VectorRows(name, columns["keys"], columns["matrix"])
            except KeyError as error:
                raise StoreProblem(f"{name} lacks the column {error}", reason="damaged") from error
        return rows

    def topics(self, name: str | None) -> tuple[Topic, ...]:
        """The communities of a manifest; () where there are none yet or the file is damaged."""
        if name is None:
            return ()
        try:
            rows = json.loads((self.folder / name).read_bytes())
            return tuple(Topic(row["id"], row["title"], tuple(row["files"]), tuple(row["symbols"])) for row in rows)
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def parts(self, manifest: Manifest) -> list[tuple[Segment, frozenset[int]]]:
        """What a corpus is made of: the segments of a manifest, each with its dead files. Raises as `segment`."""
        return [(self.segment(entry.name), frozenset(entry.dead)) for entry in manifest.segments]

    def is_intact(self, name: str) -> bool:
        """Whether a file is there and holds what was written; reads all of it, some 5 ms for 10 MB."""
        try:
            return name.partition(".")[0].endswith(f"{_checksum(self.folder / name):08x}")
        except OSError:
            return False

    def forget_except(self, manifest: Manifest) -> None:
        """Drop what is open and no longer named; mapped memory goes when its last reader does."""
        named = {entry.name for entry in manifest.segments}
        self._segments = {name: segment for name, segment in self._segments.items() if name in named}
        self._vectors = {name: rows for name, rows in self._vectors.items() if name in manifest.vectors}

    def size(self) -> int:
        """Bytes on disk."""
        total = 0
        for entry in self._entries():
            try:
                total += entry.stat().st_size
            except OSError:
                continue
        return total

    def _map(self, name: str) -> dict[str, NDArray[Any]]:
        try:
            with (self.folder / name).open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            length = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + length])
            columns = {}
            for column, entry in header.items():
                if column == "__metadata__":
                    continue
                start, end = entry["data_offsets"]
                dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
                count = int(np.prod(shape, dtype=np.int64))
                if count * dtype.itemsize != end - start or 8 + length + end > len(data):
                    raise ValueError(f"column {column} is cut")
                columns[column] = np.frombuffer(data, dtype, count, 8 + length + start).reshape(shape)
        except (OSError, ValueError, KeyError) as error:
            raise StoreProblem(f"the index file {name} cannot be read: {error}", reason="damaged") from error
        return columns

    # -- writing: only with the lock held ---------------------------------------------------------------------------

    def writer_lock(self) -> FileLock:
        """Held by at most one process on this machine; released by the system when that process ends."""
        return FileLock(self.folder / "writer.lock", is_singleton=False)

    def workspace(self) -> tuple[Path | None, float]:
        """The folder that is indexed here (None where an older version did not note it) and when it was last opened."""
        note = self.folder / "workspace"
        try:
            return Path(os.fsdecode(note.read_bytes())), note.stat().st_mtime
        except OSError:
            stamp = self.manifest_stamp()
            return None, stamp[0] / 1e9 if stamp is not None else 0.0

    def prepare(self, workspace: Path) -> None:
        """Make the folder and note that `workspace` is opened now. Raises `StoreProblem` where that is not possible."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._replace("workspace", os.fsencode(workspace))
        except OSError as error:
            raise StoreProblem(
                f"the index folder {self.folder} cannot be made: {error.strerror}", reason="read-only"
            ) from error

    def write_segment(self, columns: Columns) -> str:
        return self._write("segment", columns)

    def write_vectors(self, keys: NDArray[np.uint64], matrix: NDArray[np.float32]) -> str:
        """`keys` in any order; stored ascending."""
        order = np.argsort(keys, kind="stable")
        return self._write("vectors", {"keys": keys[order], "matrix": matrix[order]})

    def write_topics(self, topics: Iterable[Topic]) -> str:
        return self._put("topics", ".json", json.dumps([asdict(topic) for topic in topics]).encode())

    def take_annoy(self, draft: Path) -> str:
        """Make a file that was built elsewhere on the same disk one of the index's."""
        name = _name("annoy", ".ann", _checksum(draft))
        draft.replace(self.folder / name)
        return name

    def publish(self, manifest: Manifest) -> Manifest:
        """Make `manifest` the newest, one generation on; returns it as written."""
        written = replace(manifest, generation=manifest.generation + 1)
        self._replace("manifest.json", json.dumps({"schema": SCHEMA, **asdict(written)}).encode())
        return written

    def collect(self, manifest: Manifest) -> None:
        """Delete files that `manifest` does not name and nobody has been given for `KEEP_S`."""
        named = {entry.name for entry in manifest.segments} | set(manifest.vectors)
        named |= {manifest.topics or "", manifest.annoy or "", *_KEPT}
        oldest = time.time() - KEEP_S
        for entry in self._entries():
            try:
                if entry.name not in named and entry.stat().st_mtime < oldest:
                    entry.unlink()
            except OSError:
                # Another reader holds it (Windows) or it is gone: the next collection tries again.
                continue

    def _entries(self) -> list[Path]:
        try:
            return list(self.folder.iterdir())
        except OSError:
            return []

    def _write(self, kind: str, columns: Columns) -> str:
        try:
            data = save({key: np.ascontiguousarray(values) for key, values in columns.items()})
        except SafetensorError as error:
            raise StoreProblem(f"a {kind} file cannot be written: {error}", reason="failed") from error
        return self._put(kind, ".safetensors", data)

    def _put(self, kind: str, suffix: str, data: bytes) -> str:
        name = _name(kind, suffix, zlib.crc32(data))
        self._replace(name, data)
        return name

    def _replace(self, name: str, data: bytes) -> None:
        target = self.folder / name
        temporary = target.with_name(f".{name}.{os.getpid()}")
        try:
            temporary.write_bytes(data)
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StoreProblem(f"{target} cannot be written: {error.strerror}", reason="full") from error


def _name(kind: str, suffix: str, checksum: int) -> str:
    return f"{kind}-{secrets.token_hex(4)}{checksum:08x}{suffix}"


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum
