"""The file watcher as a reporter of edits, for programs that speak no LSP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from nm_lsp.search.corpus import Corpus
from nm_lsp.watch.folders import FolderWatch, watch_folder


def watch_for_memory(
    folder: Path, corpus: Callable[[], Corpus], report: Callable[[Sequence[str]], None]
) -> Callable[[], None]:
    """Report changed files of the index, and new ones beside them, until what is returned is called."""
    watch: list[FolderWatch] = []

    def changed(paths: frozenset[str]) -> None:
        known = corpus()
        # A directory that came or went stands for files that are looked at by name once they change.
        report([path for path in sorted(paths) if path in known.file_numbers or (folder / path).is_file()])
        watch[0].cover(_directories(known))

    watch.append(watch_folder(folder, changed))
    watch[0].cover(_directories(corpus()))
    return watch[0].close


def _directories(corpus: Corpus) -> set[str]:
    return {"", *(path.rpartition("/")[0] for path in corpus.file_numbers)}
