"""The folder that holds the stores of a repository: whether anything may be kept there, and making it."""

from __future__ import annotations

import os
from pathlib import Path

from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage.encryption import protection_of
from nm_lsp.storage.files import create_file

ENCRYPTION_SETTING = "storage.requireEncrypted"


def prepare(folder: Path) -> None:
    """Make the folder, and keep it out of `git status` without touching anybody's own ignore file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        create_file(folder / ".gitignore", b"*\n")
    except OSError as error:
        raise StoreProblem(f"{folder} cannot be made: {error.strerror}.", reason="read-only") from error


def is_writable(folder: Path) -> bool:
    """Whether `folder`, or the nearest folder above it that exists, may be written."""
    for place in (folder, *folder.parents):
        if place.exists():
            return os.access(place, os.W_OK)
    return False


def refuse_outward_link(folder: Path, home: Path) -> None:
    """Raise `StoreProblem` where a link on the way from `home` to `folder` leads out of `home`.

    A repository may bring such a link along, to have files written wherever it likes.
    """
    try:
        is_inside = folder.resolve().is_relative_to(home.resolve())
    except (OSError, RuntimeError):
        is_inside = False
    if not is_inside:
        raise StoreProblem(
            f"{folder} leads out of {home} by a link, so nothing is read or written there.",
            reason="link",
            hint=f"Remove the link, or put a folder in its place: {folder.parent}.",
        )


def refuse_unencrypted(folder: Path) -> None:
    """Raise `StoreProblem` where `folder` does not lie on storage that the system reports as encrypted."""
    found = protection_of(folder)
    if not found.is_encrypted:
        raise StoreProblem(
            f"Nothing is remembered: {ENCRYPTION_SETTING} is on, and {folder} lies on {found.what}.",
            reason="unencrypted",
            hint=f"Move it to an encrypted disk, or set {ENCRYPTION_SETTING} to false.",
        )
