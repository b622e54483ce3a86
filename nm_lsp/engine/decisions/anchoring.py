"""From what a person wrote to the anchor it means: normalised, existing, inside the repository, not ignored.

`./a.py`, `sub/../a.py`, an absolute path and, on a case-blind disk, another case all mean `a.py`.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.base.folders import RealFolders
from nm_lsp.base.uris import checked_path
from nm_lsp.decisions.globs import anchor_governs
from nm_lsp.decisions.model import Anchor, AnchorKind, Content, parse_anchor
from nm_lsp.decisions.validation import escaped
from nm_lsp.engine.decisions import without_git
from nm_lsp.engine.decisions.worktree import WorkTree

MAX_ANCHORS = 500
MAX_GOVERNED = 20_000
"""Files one folder or glob may govern; the seen bytes of each are kept."""
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class Prefix:
    """Where the opened folder lies in the repository: "" or "pkg/"."""

    text: str

    def to_repository(self, path: str) -> str:
        return posixpath.normpath(self.text + path) if self.text else posixpath.normpath(path)

    def to_folder(self, repo_path: str) -> str | None:
        """The path below the opened folder, None for what lies above it."""
        return repo_path[len(self.text) :] if repo_path.startswith(self.text) else None


def prefix_of(root: Path, folder: Path) -> Prefix:
    relative = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else "."
    return Prefix("" if relative == "." else relative + "/")


def anchors_of(tree: WorkTree, prefix: Prefix, files: Sequence[str]) -> tuple[Anchor, ...]:
    """The anchors that `files` name, each once. Raises `InvalidInput`, `NotFound` or `Refused` with the reason."""
    if not files:
        raise InvalidInput("files", "a decision governs at least one file, symbol, folder or glob.")
    if len(files) > MAX_ANCHORS:
        raise InvalidInput("files", f"{len(files)} anchors; at most {MAX_ANCHORS} are taken.", hint="Name a folder.")
    found = dict.fromkeys(_anchor(tree, prefix, text) for text in files)
    _refuse_ignored(tree, found)
    return tuple(found)


def _anchor(tree: WorkTree, prefix: Prefix, text: str) -> Anchor:
    path, mark, symbol = text.partition("::")
    if not path.strip():
        raise InvalidInput("files", f"{escaped(text, one_line=True)!r} names no file.")
    repo_path = repository_path(tree.root, prefix, path, "files")
    inner = _inner_repository(tree.root, repo_path)
    if inner is not None and inner != repo_path:
        raise Refused(
            f"{repo_path} lies inside {inner}, which has its own repository and memory.",
            hint=f"Record the decision there; a submodule can be governed as a whole: {inner}.",
        )
    may_be_submodule = inner is not None or _is_bare_folder(tree.root / repo_path)
    if may_be_submodule and tree.git is not None and repo_path in tree.git.submodules():
        return parse_anchor(repo_path, submodule=True)
    if not mark and any(sign in repo_path for sign in "*?["):
        anchor = parse_anchor(repo_path)
        if not governed(tree, anchor):
            raise NotFound(f"No file matches {path}.", hint="A glob must match at least one file now.")
        return anchor
    return _existing(tree, repo_path, symbol if mark else None, given=path)


def _inner_repository(root: Path, repo_path: str) -> str | None:
    """The outermost folder on the way to a path, or the path itself, that is a repository of its own."""
    parts = repo_path.split("/")
    ways = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return next((way for way in ways if (root / way / ".git").exists()), None)


def _is_bare_folder(path: Path) -> bool:
    """An empty folder: what a submodule that was never fetched looks like."""
    return path.is_dir() and not any(path.iterdir())


def _existing(tree: WorkTree, repo_path: str, symbol: str | None, *, given: str) -> Anchor:
    repo_path = _followed(tree.root, _true_case(tree.root, repo_path), given)
    is_folder = (tree.root / repo_path).is_dir()
    if not is_folder and not _is_file(tree, repo_path):
        raise NotFound(
            f"{escaped(given, one_line=True)} names nothing here.", hint="Give a path of a file or a folder."
        )
    if is_folder:
        if symbol is not None:
            raise InvalidInput("files", f"{given} is a folder and has no symbols.")
        anchor = parse_anchor(repo_path + "/")
        if not governed(tree, anchor):
            raise NotFound(f"The folder {given} holds no file that git would keep.")
        return anchor
    return parse_anchor(f"{repo_path}::{symbol}" if symbol is not None else repo_path)


def _is_file(tree: WorkTree, repo_path: str) -> bool:
    try:
        mode = (tree.root / repo_path).lstat().st_mode
    except OSError:
        # A sparse checkout leaves files out that git knows.
        return tree.git is not None and repo_path in tree.git.tracked([repo_path])
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def repository_path(root: Path, prefix: Prefix, path: str, field: str) -> str:
    """`path` (relative to the folder, absolute, or repository-relative after a slash) relative to the repository.

    Raises `InvalidInput` with the name of `field`, or `Refused`.
    """
    clean = checked_path(path.replace("\\", "/") if os.sep == "\\" else path, field)
    if clean.startswith("/") or _DRIVE.match(clean):
        normal = posixpath.normpath(clean)
        base = root.as_posix()
        if normal == base or normal.startswith(base + "/"):
            repo_path = normal[len(base) + 1 :] or "."
        elif _resolved(normal).is_relative_to(root):
            repo_path = _resolved(normal).relative_to(root).as_posix()
        elif Path(normal).exists() or _DRIVE.match(clean):
            raise Refused(f"{escaped(path, one_line=True)} lies outside the repository {root}.")
        else:
            repo_path = posixpath.normpath(clean.lstrip("/"))
    else:
        repo_path = prefix.to_repository(clean)
    if repo_path == ".." or repo_path.startswith("../"):
        raise Refused(f"{escaped(path, one_line=True)} leaves the repository {root}.")
    if repo_path == "." or repo_path == ".git" or repo_path.startswith((".git/", ".neuralmind/")):
        raise Refused(
            f"{escaped(path, one_line=True)} cannot be governed.", hint="Name files or folders of the project's own."
        )
    return repo_path


def _resolved(path: str) -> Path:
    """Links of the folders resolved; the last part stays, since a link governs what it points to."""
    given = Path(path)
    try:
        return given.parent.resolve() / given.name
    except (OSError, RuntimeError):
        return given


def _followed(root: Path, repo_path: str, given: str) -> str:
    """Where a link, or a path behind one, points inside the repository; a plain path as it is."""
    path = root / repo_path
    if not path.is_symlink() and RealFolders(root).is_inside(repo_path):
        return repo_path
    target = path.resolve()
    if not target.is_relative_to(root):
        raise Refused(f"{escaped(given, one_line=True)} is a link that leaves the repository.")
    return target.relative_to(root).as_posix()


def _true_case(root: Path, repo_path: str) -> str:
    """The spelling the disk has, where the disk takes other spellings for the same."""
    here, parts = root, []
    for part in repo_path.split("/"):
        spelt = part
        if (here / part).exists():
            names = _names(here)
            if part not in names:
                same = [name for name in names if name.casefold() == part.casefold()]
                spelt = same[0] if same else part
        parts.append(spelt)
        here = here / spelt
    return "/".join(parts)


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _refuse_ignored(tree: WorkTree, anchors: Iterable[Anchor]) -> None:
    if tree.git is None:
        return
    paths = [a.path.rstrip("/") for a in anchors if a.kind in {AnchorKind.FILE, AnchorKind.SYMBOL, AnchorKind.FOLDER}]
    for path in sorted(tree.git.ignored(paths)):
        raise Refused(f"{path} is ignored by git, so no commit would ever change it.", hint="Track the file first.")


def governed(tree: WorkTree, anchor: Anchor) -> list[str]:
    """The files in the work tree that a folder or glob anchor governs now."""
    listing = tree.git.listing() if tree.git is not None else without_git.governed_files(tree.root, anchor)
    paths = [path for path in listing if anchor_governs(anchor, path)]
    if len(paths) > MAX_GOVERNED:
        raise Refused(f"{anchor} governs {len(paths):,} files; at most {MAX_GOVERNED:,} are taken.")
    return paths


def is_blob(content: Content | None) -> bool:
    """Whether a content token is a regular file's."""
    return content is not None and ":" not in content
