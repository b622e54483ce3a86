"""Where an export that a caller names may be written: inside the opened folder, and not among what git keeps there."""

from __future__ import annotations

from pathlib import Path

from nm_lsp.base.errors import InvalidInput, Refused
from nm_lsp.base.uris import checked_path
from nm_lsp.decisions.validation import escaped
from nm_lsp.storage.files import replace_file


def export_target(folder: Path, to: str) -> Path:
    """The file that `to` means, links resolved. `folder` is resolved. Raises `InvalidInput`."""
    shown = escaped(to, one_line=True)[:200]
    try:
        target = (folder / checked_path(to, "to")).resolve()
    except (OSError, RuntimeError, ValueError):
        raise InvalidInput("to", f"{shown!r} is no path") from None
    if not target.is_relative_to(folder):
        raise InvalidInput("to", f"{shown!r} lies outside the folder", hint=f"Give a path below {folder}.")
    if is_in_git_folder(target.relative_to(folder)):
        raise InvalidInput("to", f"{shown!r} lies in a folder of git's own", hint=f"Give another path below {folder}.")
    if target.is_dir():
        raise InvalidInput("to", f"{shown!r} is a folder", hint="Give the name of a file.")
    return target


def is_in_git_folder(path: Path) -> bool:
    """Whether a part of `path` is called `.git`, in any case of letters."""
    return any(part.casefold() == ".git" for part in path.parts)


def write_target(target: Path, text: str) -> None:
    """Write a file that `export_target` found. Raises `Refused` where that is not possible."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}.") from error
