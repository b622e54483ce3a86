"""What a person sees when they say that a decision holds: the bytes of every governed file, on the screen first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from nm_lsp.base.errors import NotFound, Refused
from nm_lsp.decisions.model import (
    N_ANCESTORS,
    Anchor,
    AnchorKind,
    Confirmation,
    Content,
    SeenFile,
    Sighting,
    pack_ancestors,
    pack_text,
)
from nm_lsp.engine.decisions import without_git
from nm_lsp.engine.decisions.anchoring import governed, is_blob
from nm_lsp.engine.decisions.code import Grammars
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.worker.sources import Unreadable, read_bytes

MAX_SYMBOL_FILE = 10_000_000

ScreenBytes = Callable[[str], bytes | None]
"""The bytes that saving an open, changed buffer of a repository path would write; None where none is open."""


def confirm(tree: WorkTree, anchors: Sequence[Anchor], screen: ScreenBytes) -> Confirmation:
    """The confirmation of `anchors` as they are now. Raises `NotFound` for a symbol that is not there."""
    commit = tree.head_commit()
    files = {anchor: _files_of(tree, anchor) for anchor in anchors}
    paths = list(dict.fromkeys(path for group in files.values() for path in group))
    seen = seen_contents(tree, paths, screen)
    base = tree.git.contents(commit, paths) if tree.git is not None and commit is not None else {}
    sightings = []
    for anchor, group in files.items():
        rows = tuple(SeenFile(path, seen[path], base.get(path)) for path in group)
        text = None
        if anchor.kind is AnchorKind.SYMBOL:
            text = pack_text(_symbol_text(tree, anchor, rows[0], screen))
        sightings.append(Sighting(anchor, rows, text))
    ancestors = ""
    if tree.git is not None and commit is not None:
        ancestors = pack_ancestors(tree.git.first_parents(commit, N_ANCESTORS))
    return Confirmation(commit, tuple(sightings), ancestors)


def _files_of(tree: WorkTree, anchor: Anchor) -> list[str]:
    if anchor.kind in {AnchorKind.FOLDER, AnchorKind.GLOB}:
        return governed(tree, anchor)
    return [anchor.path]


def seen_contents(tree: WorkTree, paths: Iterable[str], screen: ScreenBytes) -> dict[str, Content | None]:
    """What `git add` would store of each path now, taking open buffers for saved."""
    wanted = list(paths)
    if tree.git is not None:
        found: dict[str, Content | None] = dict(tree.git.working_contents(wanted))
    else:
        found = {path: without_git.content_of(tree.root / path) for path in wanted}
    for path in wanted:
        data = screen(path)
        if data is not None and (found[path] is None or is_blob(found[path])):
            found[path] = tree.git.hash_text(path, data) if tree.git is not None else without_git.blob_id(data)
    return found


def _symbol_text(tree: WorkTree, anchor: Anchor, row: SeenFile, screen: ScreenBytes) -> bytes:
    data = stored_bytes(tree, row, screen)
    if data is None:
        raise NotFound(f"{anchor.path} cannot be read.", hint="Check that the file is there and can be opened.")
    assert anchor.symbol is not None
    text = Grammars().symbol_text(anchor.path, anchor.symbol, data)
    if text is None:
        raise NotFound(
            f"There is no {anchor.symbol} in {anchor.path}.",
            hint="Name the symbol as Class.method, or govern the whole file.",
        )
    return text


def stored_bytes(tree: WorkTree, row: SeenFile, screen: ScreenBytes) -> bytes | None:
    """The seen bytes of a file as git stores them, to compare with blobs, whatever filters did to the disk."""
    if tree.git is not None and row.fp is not None and (row.fp == row.base or row.fp in tree.git.present([row.fp])):
        return tree.git.blob(row.fp)
    data = screen(row.path)
    if data is None:
        data = _disk_bytes(tree.root, row.path)
    return as_stored(tree, row.path, data, row.fp) if data is not None else None


def as_stored(tree: WorkTree, path: str, data: bytes, content: Content | None) -> bytes:
    """`data`, from the disk or the screen, as git stores it under the id `content`, whatever its filters change."""
    if tree.git is None or without_git.blob_id(data) == content:
        return data
    unix = data.replace(b"\r\n", b"\n")
    return unix if without_git.blob_id(unix) == content else tree.git.as_stored(path, data)


def _disk_bytes(root: Path, path: str) -> bytes | None:
    try:
        return read_bytes(root, path, MAX_SYMBOL_FILE)
    except Unreadable:
        return None


def refuse_uncommitted(tree: WorkTree, anchors: Sequence[Anchor], screen: ScreenBytes, what: str) -> None:
    """Raise `Refused` where a governed file differs from HEAD on disk or on the screen (rule 6)."""
    if tree.git is None:
        return
    commit = tree.head_commit()
    if commit is None:
        return
    paths = list(dict.fromkeys(path for anchor in anchors for path in _files_of(tree, anchor)))
    committed: Mapping[str, Content] = tree.git.contents(commit, paths)
    seen = seen_contents(tree, paths, screen)
    for path in paths:
        if seen[path] != committed.get(path):
            state = "is not committed" if path not in committed else "has changes that are not committed"
            raise Refused(
                f"{path} {state}, so nobody could tell later what was {what}.",
                hint="Commit or undo the changes first; if the decision itself changed, amend it.",
            )
