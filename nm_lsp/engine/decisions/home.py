"""Where the decision store of a repository lies."""

from __future__ import annotations

from pathlib import Path

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.git import Place, Repository

STORE_FOLDER = Path(".neuralmind", "lsp")


def home_of(place: Place | None, folder: Path, git: Repository | None) -> Path:
    """The folder that holds the store's: the main work tree, so that all work trees share it; for a bare repository the
    first one listed; `folder` itself where there is no repository."""
    if place is None:
        return folder
    if not place.linked and place.work_tree is not None:
        return place.work_tree
    try:
        trees = git.work_trees() if git is not None else []
    except GitUnavailable:
        trees = []
    for tree in trees:
        if not tree.bare and tree.path.is_dir():
            return tree.path
    return place.work_tree or folder


def root_by_hand(folder: Path) -> Path | None:
    """The nearest folder, `folder` or above it, that has a `.git`; for when git cannot be asked."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
