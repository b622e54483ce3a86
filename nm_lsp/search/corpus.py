"""The searchable whole: live rows of many segments under one numbering, plus the overlay's.

A `Corpus` is immutable; a new generation of the index or a changed buffer makes a new one. Building it concatenates
a few small columns (microseconds per thousand rows); postings and texts stay where they are. A "doc" is a node of the
code graph, numbered 0 … n_docs − 1; rows of replaced files keep their numbers but are not `live` and never returned.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.model import Import, Node, NodeKind, Reference
from nm_lsp.graph.resolve import ModuleIndex, Resolver, Target
from nm_lsp.search.segment import GENERATED, KINDS, FileStamp, Segment, node_id, split_node_id
from nm_lsp.search.topics import Topic


class Corpus:
    """`parts` are (segment, dead local files) in manifest order; of two rows for a path, the later one must be live."""

    def __init__(self, parts: Sequence[tuple[Segment, frozenset[int]]], topics: Sequence[Topic] = ()) -> None:
        self.segments = tuple(segment for segment, _ in parts)
        self._doc_base = [0]
        self._file_base = [0]
        live_files = []
        for segment, dead in parts:
            self._doc_base.append(self._doc_base[-1] + segment.n_docs)
            self._file_base.append(self._file_base[-1] + segment.n_files)
            alive = np.ones(segment.n_files, np.bool_)
            alive[list(dead)] = False
            live_files.append(alive)
        self.n_docs = self._doc_base[-1]
        self.n_files = self._file_base[-1]
        self.live_file: NDArray[np.bool_] = _joined(live_files, np.bool_)
        self.kind: NDArray[np.uint8] = _joined([s.kind for s in self.segments], np.uint8)
        self.length: NDArray[np.float32] = _joined([s.length for s in self.segments], np.float32)
        self.parent: NDArray[np.int32] = _joined(
            [np.where(s.parent >= 0, s.parent + base, -1) for s, base in self._with_base()], np.int32
        )
        first_docs = [s.first_doc[:-1] + base for s, base in self._with_base()]
        self._first_doc: NDArray[np.int64] = np.append(_joined(first_docs, np.int64), self.n_docs)
        counts = self._first_doc[1:] - self._first_doc[:-1]
        self.file: NDArray[np.int32] = np.repeat(np.arange(self.n_files, dtype=np.int32), counts)
        self.live: NDArray[np.bool_] = np.repeat(self.live_file, counts)
        self._all_live = bool(self.live_file.all())
        self.n_live = int(self.live.sum())
        self.n_live_files = int(self.live_file.sum())
        self.average_length = float(self.length[self.live].mean()) if self.n_live else 1.0
        self.topics = tuple(topics)

    def _with_base(self) -> list[tuple[Segment, int]]:
        return list(zip(self.segments, self._doc_base, strict=False))

    # -- terms ------------------------------------------------------------------------------------------------------

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Live docs that contain `term`, ascending, and their weighted term frequencies."""
        docs, frequencies = [], []
        for segment, base in self._with_base():
            local, tf = segment.postings(term)
            if len(local):
                docs.append(local + np.int32(base))
                frequencies.append(tf)
        found: NDArray[np.int32] = _joined(docs, np.int32)
        weights: NDArray[np.float32] = _joined(frequencies, np.float32)
        if self._all_live or not len(found):
            return found, weights
        alive = self.live[found]
        return found[alive], weights[alive]

    # -- nodes ------------------------------------------------------------------------------------------------------

    def node(self, doc: int) -> Node:
        segment, local = self._local(doc)
        return segment.node(local, int(self.file[doc]) - self._file_base[self._part(doc)])

    def name(self, doc: int) -> str:
        segment, local = self._local(doc)
        return segment.names[local]

    def qualified_name(self, doc: int) -> str:
        segment, local = self._local(doc)
        return segment.qualified[local]

    def id(self, doc: int) -> str:
        segment, local = self._local(doc)
        return node_id(self.path(doc), segment.qualified[local], int(segment.columns["doc.ordinal"][local]))

    def path(self, doc: int) -> str:
        return self.file_path(int(self.file[doc]))

    def start_byte(self, doc: int) -> int:
        segment, local = self._local(doc)
        return int(segment.columns["doc.span"][local, 0])

    def key(self, doc: int) -> bytes:
        """The 32-byte key of the doc's vector; zeros where it has none."""
        segment, local = self._local(doc)
        return bytes(segment.key[local].tobytes())

    def find(self, identifier: str) -> int | None:
        """The live doc with this node id, or None."""
        path, qualified, ordinal = split_node_id(identifier)
        file = self.file_numbers.get(path)
        if file is None:
            return None
        for doc in self.file_docs(file):
            segment, local = self._local(doc)
            if segment.qualified[local] == qualified and max(int(segment.columns["doc.ordinal"][local]), 1) == ordinal:
                return doc
        return None

    def defined(self, name: str) -> NDArray[np.int32]:
        """Live docs whose name equals `name` without regard to case."""
        found: NDArray[np.int32] = _joined([s.defined(name) + base for s, base in self._with_base()], np.int32)
        return found[self.live[found]]

    # -- files ------------------------------------------------------------------------------------------------------

    @cached_property
    def file_numbers(self) -> dict[str, int]:
        """Path of every live file to its number."""
        alive = self.live_file.tolist()
        return {path: file for file, path in enumerate(self._paths) if alive[file]}

    @cached_property
    def _paths(self) -> list[str]:
        return [path for segment in self.segments for path in segment.paths.all()]

    def file_path(self, file: int) -> str:
        return self._paths[file]

    def stamp(self, path: str) -> FileStamp | None:
        """What the disk said of a live file when it was read; None for a path that is not here."""
        file = self.file_numbers.get(path)
        if file is None:
            return None
        part = bisect_right(self._file_base, file) - 1
        return self.segments[part].stamp(file - self._file_base[part])

    def file_docs(self, file: int) -> range:
        return range(int(self._first_doc[file]), int(self._first_doc[file + 1]))

    def file_language(self, file: int) -> str:
        part = bisect_right(self._file_base, file) - 1
        return self.segments[part].file_language[file - self._file_base[part]]

    def file_is_generated(self, file: int) -> bool:
        return bool(self._flags(file) & GENERATED)

    def _flags(self, file: int) -> int:
        part = bisect_right(self._file_base, file) - 1
        return int(self.segments[part].flags[file - self._file_base[part]])

    def file_imports(self, file: int) -> list[Import]:
        part = bisect_right(self._file_base, file) - 1
        return self.segments[part].imports_of(file - self._file_base[part])

    # -- edges, resolved at read ------------------------------------------------------------------------------------

    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(_Definitions(self), ModuleIndex((file, path) for path, file in self.file_numbers.items()))

    def references_from(self, doc: int) -> list[tuple[Reference, list[Target]]]:
        """The uses inside `doc`, each with the definitions it means."""
        return [(reference, self.resolver.resolve(doc, reference)) for reference in self._raw_references(doc)]

    def references_to(self, doc: int, limit: int = 200) -> list[tuple[int, Target]]:
        """Docs that use `doc`, with how; at most `limit` uses of its name are looked at."""
        found: dict[int, Target] = {}
        name, looked_at = self.name(doc), 0
        for segment, base in self._with_base():
            for row in segment.references_named(name):
                looked_at += 1
                if looked_at > limit:
                    return list(found.items())
                reference = segment.reference(row)
                source = base + reference.source
                if source == doc or source in found or not self.live[source]:
                    continue
                for target in self.resolver.resolve(source, reference):
                    if target.doc == doc:
                        found[source] = target
        return list(found.items())

    def _raw_references(self, doc: int) -> list[Reference]:
        segment, local = self._local(doc)
        return segment.references_of(local)

    # -- communities ------------------------------------------------------------------------------------------------

    @cached_property
    def topic_of_file(self) -> dict[int, int]:
        """File number to position in `topics`."""
        numbers = self.file_numbers
        return {numbers[path]: row for row, topic in enumerate(self.topics) for path in topic.files if path in numbers}

    # -- numbering --------------------------------------------------------------------------------------------------

    def _part(self, doc: int) -> int:
        return bisect_right(self._doc_base, doc) - 1

    def _local(self, doc: int) -> tuple[Segment, int]:
        part = bisect_right(self._doc_base, doc) - 1
        return self.segments[part], doc - self._doc_base[part]


class _Definitions:
    """The corpus as the resolver sees it. The corpus holds its resolver, so this must not hold the corpus: a ring would
    keep the files of each old generation open until a full garbage collection."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus: Corpus = weakref.proxy(corpus)
        self._found: dict[str, list[int]] = {}

    def defined(self, name: str) -> Sequence[int]:
        docs = self._found.get(name)
        if docs is None:
            docs = self._found[name] = self._corpus.defined(name).tolist()
        return docs

    def file_of(self, doc: int) -> int:
        return int(self._corpus.file[doc])

    def parent_of(self, doc: int) -> int:
        parent = int(self._corpus.parent[doc])
        # Top-level symbols hang on their module, which is no scope of its own here.
        return parent if parent >= 0 and self._corpus.parent[parent] >= 0 else -1

    def kind_of(self, doc: int) -> NodeKind:
        return KINDS[int(self._corpus.kind[doc])]

    def name_of(self, doc: int) -> str:
        return self._corpus.name(doc)

    def module_of(self, file: int) -> int:
        return self._corpus.file_docs(file).start

    def imports_of(self, file: int) -> Sequence[Import]:
        return self._corpus.file_imports(file)

    def language_of(self, file: int) -> str:
        return self._corpus.file_language(file)

    def path_of(self, file: int) -> str:
        return self._corpus.file_path(file)

    def references_of(self, doc: int) -> Sequence[Reference]:
        return self._corpus._raw_references(doc)


def _joined(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype)
