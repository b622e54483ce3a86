"""What parent and child say to each other: pickled dataclasses, one a frame. `key` names an opened folder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from nm_lsp.storage.index_store import SkippedFile


class Stage(Enum):
    SCANNING = "scanning"
    PARSING = "parsing"
    JOINING = "joining"
    EMBEDDING = "embedding"


# -- to the child --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """Index `folder` into the folder `index`; become its writer if nobody is, else wait to take over."""

    key: int
    folder: str
    index: str
    vector_cache: str
    excludes: tuple[str, ...]
    max_file_bytes: int
    max_files: int
    with_vectors: bool
    threads: int
    git: str


@dataclass(frozen=True, slots=True)
class CloseFolder:
    key: int


@dataclass(frozen=True, slots=True)
class Rescan:
    """Look for changed files at `paths` (relative, files or folders).

    `Finished` names the highest ticket that was dealt with.
    """

    key: int
    ticket: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Read every file again; `vectors`: compute every vector again too."""

    key: int
    ticket: int
    vectors: bool


@dataclass(frozen=True, slots=True)
class CancelBuild:
    """Stop the build under way; what is published stays, the rest waits for the next rescan."""

    key: int


@dataclass(frozen=True, slots=True)
class Prefer:
    """Index these files before others: they are open."""

    key: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Analyse:
    """Parse a text that is not on disk (an unsaved buffer); answered by `Analysed` with the same ticket."""

    ticket: int
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class BuildSegment:
    """Parse files into a segment of the folder's index; answered by `SegmentBuilt` with the same ticket."""

    ticket: int
    folder: str
    index: str
    files: tuple[tuple[str, int, int], ...]  # path, size, mtime_ns
    max_file_bytes: int


ToChild = OpenFolder | CloseFolder | Rescan | Rebuild | CancelBuild | Prefer | Analyse | BuildSegment


# -- to the parent -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Role:
    """Whether this child writes the folder's index, or another process does."""

    key: int
    writes: bool


@dataclass(frozen=True, slots=True)
class Building:
    """`quiet`: so little work that nobody need be shown its progress. All rescans up to `ticket` are in the index."""

    key: int
    stage: Stage
    done: int
    total: int
    quiet: bool
    ticket: int


@dataclass(frozen=True, slots=True)
class Published:
    """A new generation of the index is on disk."""

    key: int
    generation: int


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do for all rescans up to `ticket`; `error` says in plain words why it stopped early."""

    key: int
    ticket: int
    error: str | None


UNLISTED = "git.listing"
"""Code of the trouble that git did not list the files; it lasts until the next scan."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something a person should know; `code` is stable and said once per folder. One like `git.listing` is not said
    where `git` was."""

    key: int
    code: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Analysed:
    """`columns` of a segment of one file, or the reason why the text has none."""

    ticket: int
    columns: dict[str, NDArray[Any]] | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class SegmentBuilt:
    """`name` is None where none of the files could be taken."""

    ticket: int
    name: str | None
    skipped: tuple[SkippedFile, ...]


ToParent = Role | Building | Published | Finished | Trouble | Analysed | SegmentBuilt
