"""A corpus built in this process from a folder or from texts, for benchmarks and tests of the ranking alone.

The real server reads files through git, in a child process, and keeps segments on disk; here a folder becomes one
segment in memory, with the same parser, terms and embedding texts.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.extract import Unparsable, parse_file
from nm_lsp.graph.model import ParsedFile
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.embedding_text import EMBEDDING_TEXT_VERSION, embedding_text
from nm_lsp.search.segment import FileStamp, IndexedFile, Segment, SegmentBuilder
from nm_lsp.search.tokens import TOKENS_VERSION, terms_of

Embed = Callable[[list[str]], NDArray[np.float32]]
VectorLeg = Callable[[str, int], tuple[NDArray[np.int32], NDArray[np.float32]]]

MAX_BYTES = 1_000_000
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".tox", "locale"})


@dataclass(frozen=True)
class Built:
    corpus: Corpus
    texts: dict[str, str]
    embedding_texts: dict[int, str]  # doc to the text of its vector


def read_folder(root: Path) -> dict[str, str]:
    """Relative path to text, for every readable file that is not huge."""
    texts: dict[str, str] = {}
    for file in sorted(root.rglob("*")):
        relative = file.relative_to(root)
        if not file.is_file() or file.is_symlink() or not SKIPPED_FOLDERS.isdisjoint(relative.parts):
            continue
        if file.stat().st_size <= MAX_BYTES:
            data = file.read_bytes()
            if b"\0" not in data[:4096]:
                texts[relative.as_posix()] = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return texts


def own_texts(parsed: ParsedFile, text: str) -> list[str]:
    """Per node the text of its span that belongs to no child."""
    data = text.encode("utf-8", "replace")
    children: dict[int, list[tuple[int, int]]] = {}
    for node in parsed.nodes:
        if node.parent is not None:
            children.setdefault(node.parent, []).append((node.span.start_byte, node.span.end_byte))
    owned = []
    for row, node in enumerate(parsed.nodes):
        pieces, position = [], node.span.start_byte
        for start, end in sorted(children.get(row, ())):
            pieces.append(data[position : max(start, position)])
            position = max(position, end)
        pieces.append(data[position : node.span.end_byte])
        owned.append(b"\n".join(pieces).decode("utf-8", "replace"))
    return owned


def parse_all(texts: Mapping[str, str]) -> Iterable[ParsedFile]:
    for path, text in texts.items():
        try:
            yield parse_file(path, text)
        except Unparsable:
            continue


def build(texts: Mapping[str, str]) -> Built:
    builder = SegmentBuilder()
    embedded: dict[int, str] = {}
    for parsed in parse_all(texts):
        owned = own_texts(parsed, texts[parsed.path])
        first = builder.n_docs
        builder.add(
            IndexedFile(
                parsed=parsed,
                stamp=FileStamp(hashlib.blake2b(texts[parsed.path].encode(), digest_size=16).digest(), 0, 0),
                is_ascii=texts[parsed.path].isascii(),
                terms=[terms_of(node, own, parsed.path) for node, own in zip(parsed.nodes, owned, strict=True)],
                keys=[bytes(32)] * len(parsed.nodes),
            )
        )
        if not parsed.is_generated:
            for row, node in enumerate(parsed.nodes):
                dense = embedding_text(node)
                if dense is not None:
                    embedded[first + row] = dense
    corpus = Corpus([(builder.build(), frozenset())])
    return Built(corpus, dict(texts), embedded)


def cached_build(texts: Mapping[str, str], cache: Path | None) -> Built:
    """`build`, or the same from `cache`, keyed by the texts and the versions of what is made of them."""
    if cache is None:
        return build(texts)
    digest = hashlib.blake2b(repr((TOKENS_VERSION, EMBEDDING_TEXT_VERSION)).encode(), digest_size=16)
    for path, text in texts.items():
        digest.update(path.encode() + b"\0" + text.encode("utf-8", "replace") + b"\0")
    file = cache / f"{digest.hexdigest()}.segment"
    if file.exists():
        columns, embedded = pickle.loads(file.read_bytes())
        return Built(Corpus([(Segment(columns), frozenset())]), dict(texts), embedded)
    built = build(texts)
    cache.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps((dict(built.corpus.segments[0].columns), built.embedding_texts)))
    return built


def vector_leg(built: Built, embed: Embed, cache: Path | None = None) -> VectorLeg:
    """Exact cosine search over the vectors of `built`."""
    docs = np.array(sorted(built.embedding_texts), np.int32)
    texts = [built.embedding_texts[doc] for doc in docs.tolist()]
    vectors = _cached_vectors(texts, embed, cache)
    memo: dict[str, NDArray[np.float32]] = {}

    def search(query: str, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if query not in memo:
            memo[query] = embed([query])[0]
        cosine = vectors @ memo[query]
        best = np.argsort(-cosine, kind="stable")[:k]
        return docs[best], cosine[best]

    return search


def _cached_vectors(texts: list[str], embed: Embed, cache: Path | None) -> NDArray[np.float32]:
    if cache is None:
        return embed(texts)
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / f"{hashlib.blake2b(chr(0).join(texts).encode('utf-8', 'replace'), digest_size=16).hexdigest()}.npy"
    if not file.exists():
        np.save(file, embed(texts))
    return np.load(file)


def open_embedder(folder: Path) -> tuple[Embed, Callable[[str], int]]:
    """An embedder and a token counter over staged weights (`model.safetensors`, `tokenizer.json`)."""
    from nm_lsp.models.embedder import Embedder
    from nm_lsp.models.weights import require_model

    embedder = Embedder.open(require_model(environment={"NEURALMIND_ONNX_MODEL_DIR": str(folder)}), threads=2)
    return embedder.embed, lambda text: embedder.count_tokens([text])[0]
