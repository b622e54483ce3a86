"""Layer 2: git, the only package that runs it. What a repository is, holds and has done, as plain data.

May import: base, and the plain data of `decisions`. Must not decide anything about decisions, write to the repository,
use the network, or be imported by the domain.

Every call has an argument list, no shell, a time-out and no standard input of ours; the programs a repository can
configure (fsmonitor, external diff, textconv, hooks) are off. Blob ids depend on filters: those of the user's
configuration are on, those of a repository's own are not run (`filters`). Names are `str` with `surrogateescape`. When
git cannot answer, `GitUnavailable` says why and what to run.
"""

from nm_lsp.git.blobs import BlobReader
from nm_lsp.git.place import Head, Place, discover, head_stamp, operation_in_progress, read_head
from nm_lsp.git.process import Git, ObjectMissing
from nm_lsp.git.queries import CommitInfo, Repository, WorkTree

__all__ = [
    "BlobReader",
    "CommitInfo",
    "Git",
    "Head",
    "ObjectMissing",
    "Place",
    "Repository",
    "WorkTree",
    "discover",
    "head_stamp",
    "operation_in_progress",
    "read_head",
]
