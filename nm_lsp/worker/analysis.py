"""One file from bytes to the row of a segment: decode, parse, count terms, key the embedding texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.model import Node
from nm_lsp.graph.syntax import Unparsable
from nm_lsp.search.embedding_text import EMBEDDING_TEXT_VERSION, embedding_text
from nm_lsp.search.segment import NO_KEY, FileStamp, IndexedFile
from nm_lsp.search.tokens import TOKENS_VERSION, terms_of
from nm_lsp.worker.sources import Candidate, Unreadable, decode, read_bytes

GRAPH_VERSION = 2
ANALYZER = f"graph {GRAPH_VERSION}, terms {TOKENS_VERSION}, texts {EMBEDDING_TEXT_VERSION}"
"""Changes whenever the same file would give other rows; an index of another analyzer is built anew."""


def content_hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def text_key(text: str) -> bytes:
    """The key of an embedding text inside an index: 32 bytes of SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def analyse_file(folder: Path, candidate: Candidate, max_bytes: int) -> IndexedFile:
    """Raises `Unreadable` with the reason why the file is skipped."""
    data = read_bytes(folder, candidate.path, max_bytes)
    stamp = FileStamp(content_hash(data), candidate.size, candidate.mtime_ns)
    return analyse_text(candidate.path, decode(data), stamp)


def analyse_text(path: str, text: str, stamp: FileStamp) -> IndexedFile:
    """Raises `Unreadable` with the reason why the text is not indexed."""
    try:
        parsed = parse_file(path, text)
    except Unparsable as problem:
        raise Unreadable(problem.message) from problem
    is_ascii = text.isascii()
    own = own_texts(parsed.nodes, text, is_ascii=is_ascii)
    terms = [terms_of(node, own_text, path) for node, own_text in zip(parsed.nodes, own, strict=True)]
    keys = []
    for node in parsed.nodes:
        sentence = None if parsed.is_generated else embedding_text(node)
        keys.append(NO_KEY if sentence is None else text_key(sentence))
    return IndexedFile(parsed, stamp, is_ascii, terms, keys)


def own_texts(nodes: Sequence[Node], text: str, *, is_ascii: bool) -> list[str]:
    """For each node the text of its span that belongs to none of its children: each character counts once."""
    pieces: list[list[str]] = [[] for _ in nodes]
    data = b"" if is_ascii else text.encode("utf-8", "replace")

    def cut(start: int, end: int) -> str:
        return text[start:end] if is_ascii else data[start:end].decode("utf-8", "replace")

    reached = [node.span.start_byte for node in nodes]
    for node in nodes:
        parent = node.parent
        if parent is not None:
            if node.span.start_byte > reached[parent]:
                pieces[parent].append(cut(reached[parent], node.span.start_byte))
            reached[parent] = max(reached[parent], node.span.end_byte)
    for row, node in enumerate(nodes):
        if node.span.end_byte > reached[row]:
            pieces[row].append(cut(reached[row], node.span.end_byte))
    return ["\n".join(parts) for parts in pieces]
