"""A segment: everything the index knows of a set of files, as immutable columns.

A row of `doc.*` is a node of the code graph, rows of one file are contiguous and in source order; row numbers are
local to the segment. A segment is built once, may be memory-mapped, and is never changed: a file that changes is
written into a new segment and its old rows are declared dead by the manifest. It keeps no source text.

    file.*   one row a file      path, hash (16 bytes), size, mtime (ns), language, flags, first_doc, first_import
    doc.*    one row a node      kind, parent, span, name_span (byte, byte, line, col, line, col), name, qualified,
                                 ordinal, signature, text, rationale, content (16 bytes), key (32 bytes), length
    term.*   sorted terms        text, first (into posting.*)
    posting.*                    doc, tf: ascending by doc within a term
    name.*   definition index    hash of the lower-cased name (sorted), doc
    ref.*    uses, by source     source, kind, target (into pool), line; tail.*: hash of the last name (sorted), ref
    import.* by file             alias, module, symbol (into pool), line
    pool                         strings shared by ref.* and import.*
"""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.model import EdgeKind, Import, Node, NodeId, NodeKind, ParsedFile, Reference, Span

Columns = Mapping[str, NDArray[Any]]

KINDS: tuple[NodeKind, ...] = tuple(NodeKind)
EDGE_KINDS: tuple[EdgeKind, ...] = tuple(EdgeKind)
KEY_BYTES = 32
NO_KEY = bytes(KEY_BYTES)

GENERATED, ASCII = 1, 2  # bits of file.flags

_KIND_ROW = {kind: row for row, kind in enumerate(KINDS)}
_EDGE_ROW = {kind: row for row, kind in enumerate(EDGE_KINDS)}


def name_hash(name: str) -> int:
    """64-bit hash of a lower-cased name, the same in every process."""
    return int.from_bytes(
        hashlib.blake2b(name.lower().encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What the disk said of a file when it was read: enough to know, without reading it, that it is unchanged."""

    content_hash: bytes  # 16 bytes, BLAKE2b of the bytes on disk
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One file on its way into a segment. `terms` and `keys` run parallel to `parsed.nodes`.

    `keys[i]` is the 32-byte key of the node's embedding text in the vector store, `NO_KEY` where it gets no vector.
    """

    parsed: ParsedFile
    stamp: FileStamp
    is_ascii: bool
    terms: Sequence[Mapping[str, int]]
    keys: Sequence[bytes]


class Strings:
    """A column of strings: one UTF-8 blob and n + 1 offsets."""

    __slots__ = ("_blob", "_offsets")

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.uint32]) -> None:
        self._blob = blob
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> str:
        return self.raw(row).decode("utf-8", "surrogatepass")

    def raw(self, row: int) -> bytes:
        return self._blob[int(self._offsets[row]) : int(self._offsets[row + 1])].tobytes()

    def all(self) -> list[str]:
        blob, ends = self._blob.tobytes(), self._offsets.tolist()
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(ends)]

    def find(self, text: str) -> int:
        """Row of `text` in a sorted column, or -1. O(log n)."""
        wanted = text.encode("utf-8", "surrogatepass")
        row = self.lower_bound(wanted)
        return row if row < len(self) and self.raw(row) == wanted else -1

    def lower_bound(self, wanted: bytes) -> int:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.raw(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low


def pack_strings(texts: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.uint32)
    if encoded:
        np.cumsum(np.fromiter(map(len, encoded), np.uint32, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


class Segment:
    """Read access to the columns. Arrays are those given: memory-mapped ones stay on disk until touched."""

    def __init__(self, columns: Columns) -> None:
        """Raises `KeyError` with the name of a column that is not there."""
        missing = COLUMNS - columns.keys()
        if missing:
            raise KeyError(min(missing))
        self.columns = columns
        self.n_files = len(columns["file.size"])
        self.n_docs = len(columns["doc.kind"])
        self.paths = self.strings("file.path")
        self.file_language = self.strings("file.language")
        self.names = self.strings("doc.name")
        self.qualified = self.strings("doc.qualified")
        self.terms = self.strings("term.text")
        self._signature = self.strings("doc.signature")
        self._text = self.strings("doc.text")
        self._rationale = self.strings("doc.rationale")
        self._pool = self.strings("pool")
        self.kind: NDArray[np.uint8] = columns["doc.kind"]
        self.parent: NDArray[np.int32] = columns["doc.parent"]
        self.length: NDArray[np.float32] = columns["doc.length"]
        self.first_doc: NDArray[np.int32] = columns["file.first_doc"]
        self.flags: NDArray[np.uint8] = columns["file.flags"]
        self.key: NDArray[np.uint8] = columns["doc.key"]

    def strings(self, column: str) -> Strings:
        return Strings(self.columns[column], self.columns[column + ".offsets"])

    @cached_property
    def _row_of_path(self) -> dict[str, int]:
        return {path: row for row, path in enumerate(self.paths.all())}

    def row_of(self, path: str) -> int | None:
        """The local number of a file, whether live or not."""
        return self._row_of_path.get(path)

    def stamp(self, file: int) -> FileStamp:
        columns = self.columns
        return FileStamp(
            columns["file.hash"][file].tobytes(), int(columns["file.size"][file]), int(columns["file.mtime"][file])
        )

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Local docs that hold `term`, ascending, and their weighted term frequencies."""
        row = self.terms.find(term)
        if row < 0:
            return _NO_DOCS, _NO_TF
        first = self.columns["term.first"]
        window = slice(int(first[row]), int(first[row + 1]))
        return self.columns["posting.doc"][window], self.columns["posting.tf"][window]

    def defined(self, name: str) -> NDArray[np.int32]:
        """Local docs whose name equals `name` without regard to case."""
        rows = _equal_range(self.columns["name.hash"], name_hash(name))
        docs = self.columns["name.doc"][rows]
        wanted = name.lower()
        return np.array([doc for doc in docs.tolist() if self.names[doc].lower() == wanted], np.int32)

    def node(self, doc: int, file: int) -> Node:
        columns = self.columns
        path, qualified = self.paths[file], self.qualified[doc]
        first, parent = int(self.first_doc[file]), int(self.parent[doc])
        ordinal = int(columns["doc.ordinal"][doc])
        rationale = self._rationale[doc]
        return Node(
            id=node_id(path, qualified, ordinal),
            kind=KINDS[int(self.kind[doc])],
            name=self.names[doc],
            qualified_name=qualified,
            path=path,
            language=self.file_language[file],
            span=Span(*columns["doc.span"][doc].tolist()),
            name_span=Span(*columns["doc.name_span"][doc].tolist()),
            signature=self._signature[doc],
            doc=self._text[doc],
            rationale=tuple(rationale.split("\n")) if rationale else (),
            content_hash=columns["doc.content"][doc].tobytes(),
            parent=parent - first if parent >= 0 else None,
        )

    def references_of(self, doc: int) -> list[Reference]:
        sources = self.columns["ref.source"]
        rows = range(*np.searchsorted(sources, [doc, doc + 1]).tolist())
        return [self.reference(row) for row in rows]

    def reference(self, row: int) -> Reference:
        columns = self.columns
        return Reference(
            source=int(columns["ref.source"][row]),
            kind=EDGE_KINDS[int(columns["ref.kind"][row])],
            target=self._pool[int(columns["ref.target"][row])],
            line=int(columns["ref.line"][row]),
        )

    def references_named(self, name: str) -> list[int]:
        """Rows of the uses whose last name equals `name` without regard to case."""
        rows = _equal_range(self.columns["tail.hash"], name_hash(name))
        return [int(row) for row in self.columns["tail.ref"][rows]]

    def imports_of(self, file: int) -> list[Import]:
        columns = self.columns
        first = columns["file.first_import"]
        pool = self._pool
        return [
            Import(
                alias=pool[int(columns["import.alias"][row])],
                module=pool[int(columns["import.module"][row])],
                symbol=pool[int(columns["import.symbol"][row])],
                line=int(columns["import.line"][row]),
            )
            for row in range(int(first[file]), int(first[file + 1]))
        ]


def node_id(path: str, qualified: str, ordinal: int) -> NodeId:
    """`path`, `path::Qualified.name` or `path::Qualified.name#ordinal`; ordinal 0 and 1 are the first of the name."""
    if not qualified:
        return NodeId(path)
    return NodeId(f"{path}::{qualified}#{ordinal}" if ordinal > 1 else f"{path}::{qualified}")


def split_node_id(identifier: str) -> tuple[str, str, int]:
    """Inverse of `node_id`: path, qualified name ("" for a module) and ordinal (1 for the first)."""
    path, _, rest = identifier.partition("::")
    qualified, mark, ordinal = rest.rpartition("#")
    if mark and ordinal.isdecimal():
        return path, qualified, int(ordinal)
    return path, rest, 1


def _equal_range(hashes: NDArray[np.uint64], wanted: int) -> slice:
    value = np.uint64(wanted)
    return slice(int(np.searchsorted(hashes, value, "left")), int(np.searchsorted(hashes, value, "right")))


_NO_DOCS: NDArray[np.int32] = np.zeros(0, np.int32)
_NO_TF: NDArray[np.uint16] = np.zeros(0, np.uint16)


def short_keys(keys: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The first 8 bytes of each 32-byte key as a number; 0 where there is none."""
    first: NDArray[np.uint64] = np.ascontiguousarray(keys[:, :8]).view(np.uint64).reshape(-1)
    return first


class SegmentBuilder:
    """Collects files and packs them into columns. Cost is linear in nodes and distinct terms a node."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {name: [] for name in _TEXT_COLUMNS}
        self._numbers: dict[str, array[int]] = {name: array(code) for name, code in _NUMBER_COLUMNS.items()}
        self._bytes: dict[str, bytearray] = {name: bytearray() for name in _BYTE_COLUMNS}
        self._pool: dict[str, int] = {}
        self._terms: dict[str, int] = {}
        self._posting_term = array("I")
        self._n_docs = 0

    @property
    def n_files(self) -> int:
        return len(self._texts["file.path"])

    @property
    def n_docs(self) -> int:
        return self._n_docs

    def add(self, file: IndexedFile) -> None:
        parsed, texts, numbers = file.parsed, self._texts, self._numbers
        first = self._n_docs
        texts["file.path"].append(parsed.path)
        texts["file.language"].append(parsed.language)
        self._bytes["file.hash"] += file.stamp.content_hash
        numbers["file.size"].append(file.stamp.size)
        numbers["file.mtime"].append(file.stamp.mtime_ns)
        numbers["file.flags"].append(GENERATED * parsed.is_generated | ASCII * file.is_ascii)
        numbers["file.first_doc"].append(first)
        numbers["file.first_import"].append(len(numbers["import.line"]))
        for node, terms, key in zip(parsed.nodes, file.terms, file.keys, strict=True):
            self._add_node(node, first, terms, key)
        for reference in sorted(parsed.references, key=_by_source):
            numbers["ref.source"].append(first + reference.source)
            numbers["ref.kind"].append(_EDGE_ROW[reference.kind])
            numbers["ref.target"].append(self._pooled(reference.target))
            numbers["ref.line"].append(reference.line)
        for item in parsed.imports:
            numbers["import.alias"].append(self._pooled(item.alias))
            numbers["import.module"].append(self._pooled(item.module))
            numbers["import.symbol"].append(self._pooled(item.symbol))
            numbers["import.line"].append(item.line)

    def _add_node(self, node: Node, first: int, terms: Mapping[str, int], key: bytes) -> None:
        texts, numbers, doc = self._texts, self._numbers, self._n_docs
        texts["doc.name"].append(node.name)
        _, qualified, ordinal = split_node_id(node.id)
        texts["doc.qualified"].append(qualified)
        texts["doc.signature"].append(node.signature)
        texts["doc.text"].append(node.doc)
        texts["doc.rationale"].append("\n".join(line.replace("\n", " ") for line in node.rationale))
        numbers["doc.kind"].append(_KIND_ROW[node.kind])
        numbers["doc.parent"].append(-1 if node.parent is None else first + node.parent)
        numbers["doc.ordinal"].append(min(ordinal, 65_535))
        for name, span in (("doc.span", node.span), ("doc.name_span", node.name_span)):
            numbers[name].extend(
                (span.start_byte, span.end_byte, span.start_line, span.start_col, span.end_line, span.end_col)
            )
        self._bytes["doc.content"] += node.content_hash
        self._bytes["doc.key"] += key
        numbers["doc.length"].append(sum(terms.values()))
        ids = self._terms
        self._posting_term.extend([ids.setdefault(term, len(ids)) for term in terms])
        numbers["posting.tf"].extend([tf if tf < 65_536 else 65_535 for tf in terms.values()])
        numbers["posting.doc"].extend([doc] * len(terms))
        self._n_docs += 1

    def _pooled(self, text: str) -> int:
        return self._pool.setdefault(text, len(self._pool))

    def build(self) -> Segment:
        return Segment(self.columns())

    def columns(self) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {}
        for name, values in self._texts.items():
            columns[name], columns[name + ".offsets"] = pack_strings(values)
        for name, numbers in self._numbers.items():
            columns[name] = np.frombuffer(numbers, dtype=numbers.typecode) if numbers else np.zeros(0, numbers.typecode)
        for name, width in _BYTE_COLUMNS.items():
            columns[name] = np.frombuffer(bytes(self._bytes[name]), np.uint8).reshape(-1, width)
        columns["doc.span"] = columns["doc.span"].reshape(-1, 6)
        columns["doc.name_span"] = columns["doc.name_span"].reshape(-1, 6)
        columns["doc.length"] = columns["doc.length"].astype(np.float32)
        columns["file.first_doc"] = np.append(columns["file.first_doc"], self._n_docs).astype(np.int32)
        columns["file.first_import"] = np.append(columns["file.first_import"], len(columns["import.line"])).astype(
            np.int32
        )
        columns["pool"], columns["pool.offsets"] = pack_strings(self._pool)
        self._pack_postings(columns)
        _index_names(columns, self._texts["doc.name"], list(self._pool))
        return columns

    def _pack_postings(self, columns: dict[str, NDArray[Any]]) -> None:
        terms = sorted(self._terms, key=lambda term: term.encode("utf-8", "surrogatepass"))
        rank = np.zeros(len(terms), np.uint32)
        for row, term in enumerate(terms):
            rank[self._terms[term]] = row
        rows = rank[np.frombuffer(self._posting_term, np.uint32)] if self._posting_term else np.zeros(0, np.uint32)
        order = np.argsort(rows, kind="stable")
        columns["posting.doc"] = columns["posting.doc"][order]
        columns["posting.tf"] = columns["posting.tf"][order]
        columns["term.text"], columns["term.text.offsets"] = pack_strings(terms)
        columns["term.first"] = np.zeros(len(terms) + 1, np.uint32)
        np.cumsum(np.bincount(rows, minlength=len(terms)), out=columns["term.first"][1:])


_TEXT_COLUMNS = (
    "file.path",
    "file.language",
    "doc.name",
    "doc.qualified",
    "doc.signature",
    "doc.text",
    "doc.rationale",
)
_BYTE_COLUMNS = {"file.hash": 16, "doc.content": 16, "doc.key": KEY_BYTES}
_NUMBER_COLUMNS = {
    "file.size": "q",
    "file.mtime": "q",
    "file.flags": "B",
    "file.first_doc": "i",
    "file.first_import": "i",
    "doc.kind": "B",
    "doc.parent": "i",
    "doc.ordinal": "H",
    "doc.span": "i",
    "doc.name_span": "i",
    "doc.length": "I",
    "posting.doc": "i",
    "posting.tf": "H",
    "ref.source": "i",
    "ref.kind": "B",
    "ref.target": "i",
    "ref.line": "i",
    "import.alias": "i",
    "import.module": "i",
    "import.symbol": "i",
    "import.line": "i",
}


_STRINGS = (*_TEXT_COLUMNS, "pool", "term.text")
_DERIVED = ("term.first", "name.hash", "name.doc", "tail.hash", "tail.ref")
COLUMNS = frozenset({*_STRINGS, *(f"{name}.offsets" for name in _STRINGS), *_NUMBER_COLUMNS, *_BYTE_COLUMNS, *_DERIVED})
"""The names of all columns of a segment."""


def _by_source(reference: Reference) -> int:
    return reference.source


def tail_of(target: str) -> str:
    """The last name of a dotted target."""
    return target.rpartition(".")[2]


def _index_names(columns: dict[str, NDArray[Any]], names: Sequence[str], pool: Sequence[str]) -> None:
    """Fills name.* and tail.*: lookups by hashed name without reading a string."""
    hashed: dict[str, int] = {}

    def hash_of(name: str) -> int:
        value = hashed.get(name)
        if value is None:
            value = hashed[name] = name_hash(name)
        return value

    by_doc = np.fromiter(map(hash_of, names), np.uint64, len(names))
    order = np.argsort(by_doc, kind="stable")
    columns["name.hash"], columns["name.doc"] = by_doc[order], order.astype(np.int32)
    by_pool = np.fromiter((hash_of(tail_of(text)) for text in pool), np.uint64, len(pool))
    by_reference = by_pool[columns["ref.target"]] if len(pool) else np.zeros(0, np.uint64)
    order = np.argsort(by_reference, kind="stable")
    columns["tail.hash"], columns["tail.ref"] = by_reference[order], order.astype(np.int32)
