"""Where the decision store of a repository lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.git import Place, Repository

STORE_FOLDER = Path(".neuralmind", "lsp")


@dataclass(frozen=True, slots=True)
class Home:
    """`folder` holds the stores' folder; `kept_as` is the path by which their backups are found again."""

    folder: Path
    kept_as: Path


def home_of(place: Place | None, folder: Path, git: Repository | None) -> Home:
    """The main work tree, so that all work trees share what it holds; `folder` itself where there is no repository.

    A bare repository has no main work tree: it is the one that holds the stores, else the first one listed. Since that
    one may be removed as any other, the backups are those of the repository itself.
    """
    if place is None:
        return Home(folder, folder)
    if not place.linked and place.work_tree is not None:
        return Home(place.work_tree, place.work_tree)
    try:
        trees = git.work_trees() if git is not None else []
    except GitUnavailable:
        trees = []
    here = [tree.path for tree in trees if not tree.bare and tree.path.is_dir()] or [place.work_tree or folder]
    if trees and trees[0].bare:
        # git lists them by path: one that is added later may come first, and must not take the place of the memory.
        return Home(min(here, key=_lacks), place.common_dir)
    return Home(here[0], here[0])


def _lacks(work_tree: Path) -> tuple[bool, ...]:
    return tuple(not (work_tree / STORE_FOLDER / name).exists() for name in ("memory.db", "audit.jsonl", "synapses.db"))


def root_by_hand(folder: Path) -> Path | None:
    """The nearest folder, `folder` or above it, that has a `.git`; for when git cannot be asked."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
