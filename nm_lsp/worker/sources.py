"""Which files an index is made of, and how their bytes become text.

Inside a repository git says which files there are; elsewhere a walk honours `.gitignore` files and built-in excludes.
Links are never followed, and nothing but regular files is opened.
"""

from __future__ import annotations

import codecs
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from nm_lsp.base.folders import RealFolders
from nm_lsp.graph.languages import language_of

BUILT_IN_EXCLUDES = (
    ".git", ".hg", ".svn", ".neuralmind", "node_modules", "bower_components", ".venv", "venv", ".env", "env",
    "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", "site-packages", "dist", "build",
    "target", "out", ".next", ".nuxt", ".gradle", ".idea", ".vs", "vendor", "Pods", ".terraform", ".cache", "coverage",
    "*.egg-info", "*.min.js", "*.min.css", "*.map",
)  # fmt: skip
"""Names left out of a walk in a folder without git: dependencies, build output, caches."""

_BUILT_IN = re.compile("|".join(map(fnmatch.translate, BUILT_IN_EXCLUDES)))

MAX_ENTRIES = 300_000
"""Entries of a folder without git that a walk looks at before it gives up."""

ALWAYS_EXCLUDED = (".git/", ".neuralmind/")

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be indexed, with what the disk says of it."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that was looked at and is not indexed; the reason is for people."""

    path: str
    reason: str
    size: int = 0
    mtime_ns: int = 0


class Unreadable(Exception):
    """The reason, for people, why the bytes of a file are not taken as text."""


def candidates(
    folder: Path, listing: Iterable[str], excludes: Sequence[str], max_files: int
) -> Iterator[Candidate | Refusal]:
    """Files of `listing` (relative, slashed) in a language of the graph, with their stamps; refusals with reasons.

    After `max_files` candidates one refusal for the folder itself says so, and the rest is left out.
    """
    spec = GitIgnoreSpec.from_lines(excludes) if excludes else None
    root, n_taken = os.fspath(folder), 0
    folders = RealFolders(folder)
    for path in listing:
        if path.startswith(ALWAYS_EXCLUDED) or (spec and spec.match_file(path)):
            continue
        absolute = f"{root}/{path}"
        language = language_of(path)
        if language is None and not _may_say_its_language(path):
            continue
        # git names tracked files although a link took the place of their folder.
        if not folders.is_inside(path):
            continue
        try:
            status = os.lstat(absolute)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                yield Refusal(path, f"it cannot be read: {error.strerror}")
            continue
        if not stat.S_ISREG(status.st_mode):
            if language and not stat.S_ISLNK(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                yield Refusal(path, "it is no regular file", 0, status.st_mtime_ns)
            continue
        if n_taken == max_files:
            yield Refusal(".", f"only the first {max_files:,} files are indexed (setting index.maxFiles)")
            return
        n_taken += 1
        yield Candidate(path, status.st_size, status.st_mtime_ns)


def _may_say_its_language(path: str) -> bool:
    """Files that only their first lines tell: scripts without a suffix, and text that may be reStructuredText."""
    name = path.rpartition("/")[2]
    return "." not in name or name.endswith(".txt")


def walk(folder: Path, refuse: Callable[[Refusal], None], max_entries: int = MAX_ENTRIES) -> Iterator[str]:
    """Relative paths of the files below `folder` that no ignore rule names, in a stable order.

    `refuse` is told of folders that cannot be read, and of the end when more than `max_entries` were seen.
    """
    pending: list[tuple[str, tuple[tuple[str, GitIgnoreSpec], ...]]] = [("", ())]
    n_seen = 0
    while pending:
        relative, specs = pending.pop()
        absolute = folder / relative if relative else folder
        try:
            with os.scandir(absolute) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            refuse(Refusal(relative or ".", f"the folder cannot be read: {error.strerror}"))
            continue
        if any(entry.name == ".gitignore" for entry in entries):
            specs = (*specs, (relative, _ignore_file(absolute / ".gitignore")))
        folders = []
        for entry in entries:
            n_seen += 1
            path = f"{relative}/{entry.name}" if relative else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.is_symlink() or _BUILT_IN.match(entry.name) or _is_ignored(path, is_folder, specs):
                continue
            if is_folder:
                folders.append((path, specs))
            else:
                yield path
        if n_seen > max_entries:
            refuse(Refusal(".", f"the folder holds more than {max_entries:,} entries; the rest is not indexed"))
            return
        pending.extend(reversed(folders))


def _ignore_file(path: Path) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(path.read_text("utf-8", "replace").splitlines())
    except (OSError, ValueError):
        return GitIgnoreSpec.from_lines(())


def _is_ignored(path: str, is_folder: bool, specs: Sequence[tuple[str, GitIgnoreSpec]]) -> bool:
    name = path + "/" if is_folder else path
    for base, spec in reversed(specs):
        verdict = spec.check_file(name[len(base) + 1 :] if base else name).include
        if verdict is not None:
            return verdict
    return False


def read_bytes(folder: Path, path: str, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes. Raises `Unreadable`.

    Opened without following a link and without blocking on a pipe that took the file's place.
    """
    if not RealFolders(folder).is_inside(path):
        raise Unreadable("it lies behind a link")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(folder / path, flags)
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Unreadable("it is no regular file")
    with open(descriptor, "rb") as file:  # noqa: PTH123 (an open descriptor, not a path)
        if status.st_size > limit:
            raise Unreadable(f"it is larger than {limit:,} bytes (setting index.maxFileBytes)")
        try:
            data = file.read(limit + 1)
        except OSError as error:
            raise Unreadable(f"it cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit:,} bytes (setting index.maxFileBytes)")
    return data


def decode(data: bytes) -> str:
    """Text of a source file: by its byte-order mark, its coding cookie, as UTF-8, and else as Windows-1252.

    Raises `Unreadable` for binary content and for a cookie that names an encoding nobody knows.
    """
    mark, encoding = encoding_of(data)
    if not mark and b"\0" in data:
        raise Unreadable("it is binary")
    try:
        return data[len(mark) :].decode(encoding, "strict" if mark else "replace")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it begins as {encoding.upper()} but is not: {error.reason}") from error
    except LookupError as error:
        raise Unreadable(f"it says that its encoding is {encoding}, which is not known") from error


def encoding_of(data: bytes) -> tuple[bytes, str]:
    """The byte-order mark (or nothing) and the encoding of a source file, as `decode` takes them."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return mark, encoding
    try:
        data.decode()
    except UnicodeDecodeError:
        pass
    else:
        return b"", "utf-8"
    for line in data.split(b"\n", 2)[:2]:
        if found := _COOKIE.match(line):
            return b"", found[1].decode("ascii", "replace")
    return b"", "cp1252"


def encode_like(text: str, disk: bytes) -> bytes:
    """The bytes that saving `text` over a file with the content `disk` would write."""
    mark, encoding = encoding_of(disk)
    try:
        return mark + text.removeprefix("\ufeff").encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return text.encode("utf-8", "surrogatepass")
