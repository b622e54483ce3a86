"""The symbols of the present git difference, and what usually changes with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NotFound, Refused
from nm_lsp.engine.decisions.anchoring import Prefix
from nm_lsp.engine.memory.learner import known_nodes
from nm_lsp.engine.memory.recall import Recall
from nm_lsp.engine.memory.shapes import Shapes
from nm_lsp.engine.memory_requests import ReviewHit
from nm_lsp.engine.requests import Place
from nm_lsp.git import Repository as GitRepository
from nm_lsp.search.corpus import Corpus
from nm_lsp.synapses.edits import changed_lines, symbols_at
from nm_lsp.synapses.pairs import files_of, path_of
from nm_lsp.worker.sources import Unreadable, decode, read_bytes

MAX_FILES = 200
MAX_BYTES = 2_000_000


def changed_symbols(
    git: GitRepository,
    prefix: Prefix,
    folder: Path,
    corpus: Corpus,
    shapes: Shapes,
    against: str | None,
    cancel: Cancellation,
) -> list[str]:
    """The symbols (folder-relative) whose text on disk differs from a commit, in path order; new files included.

    Raises `NotFound` for an `against` that names no commit, `Refused` for more than `MAX_FILES` files.
    """
    head = git.head()
    base = head.commit
    if against is not None:
        base = git.resolve(against)
        if base is None:
            raise NotFound(f"{against[:200]!r} names no commit here")
    names = git.uncommitted(head)
    if base is not None and base != head.commit and head.commit is not None:
        (difference,) = git.differences([(base, head.commit)])
        names |= {change.path for change in difference}
    names |= set(git.listing()) - git.names(head.commit) if head.commit is not None else set()
    inside = sorted(path for path in map(prefix.to_folder, names) if path is not None and path in corpus.file_numbers)
    if len(inside) > MAX_FILES:
        raise Refused(f"{len(inside)} files differ; at most {MAX_FILES} can be reviewed at once.")
    old = git.contents(base, [prefix.to_repository(path) for path in inside]) if base is not None else {}
    symbols: list[str] = []
    for path in inside:
        cancel.check()
        try:
            text = decode(read_bytes(folder, path, MAX_BYTES))
            content = old.get(prefix.to_repository(path))
            blob = git.blob(content) if content is not None else None
            before = decode(blob) if blob is not None else ""
        except (Unreadable, OSError):
            continue
        ranges = changed_lines(before, text)
        if ranges:
            symbols += symbols_at(shapes.of(path, text).symbols, ranges) or [path]
    return known_nodes(corpus, symbols)


def missing(recall: Recall, corpus: Corpus, changed: Sequence[str], limit: int) -> tuple[ReviewHit, ...]:
    """What usually changes with the symbols `changed`, or with their files, and lies in none of these files."""
    files = files_of(changed)
    rows = recall.spread(dict.fromkeys([*changed, *files], 1.0), top=limit * 4)
    # A file stands for itself only where none of its symbols is named.
    named = {path_of(row.id) for row in rows if "::" in row.id}
    found: list[ReviewHit] = []
    for row in rows:
        doc = corpus.find(row.id)
        # What lies in a changed file has been seen by whoever changed it.
        if doc is not None and path_of(row.id) not in files and row.id not in named and len(found) < limit:
            node = corpus.node(doc)
            found.append(ReviewHit(row.id, Place(node.path, node.span), round(row.energy, 4), row.source))
    return tuple(found)
