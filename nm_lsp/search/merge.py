"""Merging segments: many small ones, with dead rows, become one without them.

Column by column and without a Python object a row, except for the distinct terms and pooled strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nm_lsp.search.segment import Columns, Segment, SegmentBuilder, pack_strings

_FILE_TEXTS = ("file.path", "file.language")
_DOC_TEXTS = ("doc.name", "doc.qualified", "doc.signature", "doc.text", "doc.rationale")
_FILE_ROWS = ("file.hash", "file.size", "file.mtime", "file.flags")
_DOC_ROWS = ("doc.kind", "doc.ordinal", "doc.span", "doc.name_span", "doc.content", "doc.key", "doc.length")
_REF_ROWS = ("ref.kind", "ref.line")
_POOLED = ("ref.target", "import.alias", "import.module", "import.symbol")

Rows = NDArray[np.int64]


def merge_segments(parts: Sequence[tuple[Segment, NDArray[np.bool_]]], check: Callable[[], None]) -> Segment:
    """One segment with the live files of all `parts` (segment, live mask over its files), in order.

    `check` is called between parts and may raise to abandon the merge.
    """
    if not parts:
        return SegmentBuilder().build()
    columns: dict[str, list[NDArray[Any]]] = {}
    merger = _Merger(columns)
    for segment, live in parts:
        check()
        merger.add(segment, np.flatnonzero(live))
    return Segment(merger.finish())


class _Merger:
    def __init__(self, columns: dict[str, list[NDArray[Any]]]) -> None:
        self._columns = columns
        self._lengths: dict[str, list[NDArray[np.int64]]] = {}
        self._pool: dict[bytes, int] = {}
        self._terms: dict[bytes, int] = {}
        self._n_docs = 0
        self._n_imports = 0

    def _put(self, name: str, values: NDArray[Any]) -> None:
        self._columns.setdefault(name, []).append(values)

    def add(self, segment: Segment, files: Rows) -> None:
        source = segment.columns
        first_doc = source["file.first_doc"].astype(np.int64)
        docs = _ranges(first_doc[files], first_doc[files + 1])
        new_of = np.full(segment.n_docs, -1, np.int32)
        new_of[docs] = np.arange(len(docs), dtype=np.int32) + self._n_docs
        self._put("file.first_doc", _starts(first_doc[files + 1] - first_doc[files]) + self._n_docs)
        for name in _FILE_ROWS:
            self._put(name, source[name][files])
        for name in _DOC_ROWS:
            self._put(name, source[name][docs])
        for name in _FILE_TEXTS:
            self._take_texts(source, name, files)
        for name in _DOC_TEXTS:
            self._take_texts(source, name, docs)
        parent = source["doc.parent"][docs]
        self._put("doc.parent", np.where(parent < 0, -1, new_of[parent]).astype(np.int32))
        by_doc = np.empty(segment.n_docs, np.uint64)
        by_doc[source["name.doc"]] = source["name.hash"]
        self._put("name.hash", by_doc[docs])
        self._add_uses(segment, files, new_of)
        self._add_postings(segment, new_of)
        self._n_docs += len(docs)

    def _take_texts(self, source: Columns, name: str, rows: Rows) -> None:
        offsets = source[name + ".offsets"].astype(np.int64)
        lengths = offsets[rows + 1] - offsets[rows]
        self._put(name, source[name][_ranges(offsets[rows], offsets[rows + 1])])
        self._lengths.setdefault(name, []).append(lengths)

    def _add_uses(self, segment: Segment, files: Rows, new_of: NDArray[np.int32]) -> None:
        source = segment.columns
        sources = new_of[source["ref.source"]]
        refs = np.flatnonzero(sources >= 0)
        self._put("ref.source", sources[refs])
        for name in _REF_ROWS:
            self._put(name, source[name][refs])
        by_ref = np.empty(len(sources), np.uint64)
        by_ref[source["tail.ref"]] = source["tail.hash"]
        self._put("tail.hash", by_ref[refs])
        first = source["file.first_import"].astype(np.int64)
        imports = _ranges(first[files], first[files + 1])
        self._put("file.first_import", _starts(first[files + 1] - first[files]) + self._n_imports)
        self._put("import.line", source["import.line"][imports])
        self._n_imports += len(imports)
        pool = segment.strings("pool")
        translated: NDArray[np.int32] = np.full(len(pool), -1, np.int32)
        for name in _POOLED:
            used = source[name][refs if name.startswith("ref.") else imports]
            for row in np.unique(used).tolist():
                if translated[row] < 0:
                    translated[row] = self._pool.setdefault(pool.raw(row), len(self._pool))
            self._put(name, translated[used])

    def _add_postings(self, segment: Segment, new_of: NDArray[np.int32]) -> None:
        source = segment.columns
        first = source["term.first"].astype(np.int64)
        counts: NDArray[np.int64] = first[1:] - first[:-1]
        docs = new_of[source["posting.doc"]]
        alive = docs >= 0
        rows = np.repeat(np.arange(len(counts)), counts)[alive]
        translated = np.full(len(counts), 0, np.int64)
        for row in np.unique(rows).tolist():
            translated[row] = self._terms.setdefault(segment.terms.raw(row), len(self._terms))
        self._put("posting.term", translated[rows])
        self._put("posting.doc", docs[alive])
        self._put("posting.tf", source["posting.tf"][alive])

    def finish(self) -> dict[str, NDArray[Any]]:
        merged = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        for name in (*_FILE_TEXTS, *_DOC_TEXTS):
            lengths = np.concatenate(self._lengths[name])
            merged[name + ".offsets"] = np.append(_starts(lengths), lengths.sum()).astype(np.uint32)
        merged["file.first_doc"] = np.append(merged["file.first_doc"], self._n_docs).astype(np.int32)
        merged["file.first_import"] = np.append(merged["file.first_import"], self._n_imports).astype(np.int32)
        merged["pool"], merged["pool.offsets"] = pack_strings(
            raw.decode("utf-8", "surrogatepass") for raw in self._pool
        )
        ordered = sorted(self._terms)
        rank = np.zeros(len(ordered), np.int64)
        for row, term in enumerate(ordered):
            rank[self._terms[term]] = row
        rows = rank[merged.pop("posting.term")]
        order = np.argsort(rows, kind="stable")
        merged["posting.doc"] = merged["posting.doc"][order]
        merged["posting.tf"] = merged["posting.tf"][order]
        merged["term.text"], merged["term.text.offsets"] = pack_strings(
            term.decode("utf-8", "surrogatepass") for term in ordered
        )
        merged["term.first"] = np.zeros(len(ordered) + 1, np.uint32)
        np.cumsum(np.bincount(rows, minlength=len(ordered)), out=merged["term.first"][1:])
        for hashes, target in (("name.hash", "name.doc"), ("tail.hash", "tail.ref")):
            order = np.argsort(merged[hashes], kind="stable")
            merged[hashes], merged[target] = merged[hashes][order], order.astype(np.int32)
        return merged


def _starts(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Exclusive prefix sums: where each run begins."""
    ends: NDArray[np.int64] = np.cumsum(lengths, dtype=np.int64)
    starts: NDArray[np.int64] = ends - lengths
    return starts


def _ranges(starts: NDArray[Any], ends: NDArray[Any]) -> Rows:
    """All integers of the half-open ranges, one range after the other."""
    lengths = (ends - starts).astype(np.int64)
    total = int(lengths.sum())
    if not total:
        return np.zeros(0, np.int64)
    shifts = np.repeat(starts.astype(np.int64) - _starts(lengths), lengths)
    return np.arange(total, dtype=np.int64) + shifts
