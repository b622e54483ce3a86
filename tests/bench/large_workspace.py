"""A large workspace out of real sources: the files of some folders, copied again and again under other folders.

    python tests/bench/large_workspace.py TARGET SOURCE... [--files 50000] [--megabytes 100]

Files are taken in turn; one that would raise the mean size above megabytes / files waits for the next copy, so both
numbers are met. The same sources give the same workspace. `index_speed.py TARGET` measures it.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from nm_lsp.graph.languages import language_of
from nm_lsp.worker.sources import Refusal, walk

MAX_BYTES = 1_000_000
MAX_ENTRIES = 1_000_000


def sources_of(folders: Sequence[Path]) -> list[tuple[str, Path, int]]:
    """(relative path, file, bytes) of every file that would be indexed, in a stable order. The folders get plain names:
    a copy of `site-packages` must not be left out for its name."""
    found = []
    for number, folder in enumerate(folders, 1):
        for path in walk(folder, _ignore, MAX_ENTRIES):
            size = (folder / path).stat().st_size
            if language_of(path) and size <= MAX_BYTES:
                found.append((f"project_{number}/{path}", folder / path, size))
    return found


def _ignore(refusal: Refusal) -> None:
    """What cannot be read is not copied."""


def copies(sources: Sequence[tuple[str, Path, int]], n_files: int, n_bytes: int) -> Iterator[tuple[str, Path, int]]:
    """The first `n_files` copies; their sizes add up to about `n_bytes`, where the sources are large enough."""
    mean = n_bytes / n_files
    taken = total = 0
    for turn in itertools.count(1):
        for path, file, size in sources:
            # The smallest files are always within the mean, so every turn takes some.
            if size > mean and total + size > (taken + 1) * mean:
                continue
            yield f"copy_{turn:03}/{path}", file, size
            taken, total = taken + 1, total + size
            if taken == n_files:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--megabytes", type=float, default=100.0)
    options = parser.parse_args()
    n_bytes = int(options.megabytes * 1e6)
    sources = sources_of([folder.resolve() for folder in options.sources])
    if not any(size <= n_bytes / options.files for _, _, size in sources):
        parser.error("no source file is small enough for that many files in that many megabytes")
    options.target.mkdir(parents=True)
    n_files = total = 0
    for path, file, size in copies(sources, options.files, n_bytes):
        copy = options.target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        n_files, total = n_files + 1, total + size
    print(f"{n_files:,} files, {total / 1e6:.1f} MB out of {len(sources):,} sources")


if __name__ == "__main__":
    main()
