"""Symbols by a name as people type it, without path or class."""

from __future__ import annotations

from pathlib import Path

from nm_lsp.base.errors import StoreProblem
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.index_store import IndexStore
from nm_lsp.storage.locations import index_folder


def symbols_called(corpus: Corpus, text: str) -> list[str]:
    """The ids of the symbols whose name, with its classes or without, is `text`; sorted."""
    if not text:
        return []
    named = [corpus.id(doc) for doc in corpus.defined(text.rpartition(".")[2] or text).tolist()]
    return sorted(node for node in named if node.rpartition("::")[2].partition("#")[0].endswith(text))


def kept_symbols_called(folder: Path, text: str) -> list[str]:
    """The same from the index of `folder` as it lies on the disk, for who opens none; [] where there is none."""
    store = IndexStore(index_folder(folder))
    try:
        manifest = store.manifest()
        return symbols_called(Corpus(store.parts(manifest)), text) if manifest is not None else []
    except StoreProblem:
        # A hint is all that is lost.
        return []
