"""Where this program keeps what it can make again (the user's cache folder) and what it backs up (the state folder)."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from pathlib import Path

from platformdirs import user_cache_path, user_runtime_path, user_state_path

_APPLICATION = "nm_lsp"


def cache_root() -> Path:
    """The folder of all caches; it need not exist yet."""
    return user_cache_path(_APPLICATION, appauthor=False)


def state_root() -> Path:
    """The folder of all backups, and of stores whose repository is read-only."""
    return user_state_path(_APPLICATION, appauthor=False)


def state_folder(root: Path, root_commit: str | None, repository: Path) -> Path:
    """Where the backups of a repository lie below `root`: a clone made anew at the same place finds those of the old
    one."""
    return root / f"{root_commit or 'no-commit'}-{_path_hash(repository)}"


def state_folders(root: Path, repository: Path) -> list[Path]:
    """The backups of every repository that there ever was at that place."""
    return sorted(root.glob(f"*-{_path_hash(repository)}"))


def _path_hash(repository: Path) -> str:
    return hashlib.sha256(os.fsencode(repository)).hexdigest()[:16]


def index_folder(folder: Path) -> Path:
    """The index of a workspace folder; its name can be read, and one folder has one however it is spelt."""
    real = folder.resolve()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", real.name)[:40] or "root"
    return index_root() / f"{readable}-{digest_of(real)}"


def index_root() -> Path:
    """The folder of all indexes."""
    return cache_root() / "index"


def page_folder(folder: Path) -> Path:
    """The pages of a workspace folder that clients have open, one folder each process."""
    return cache_root() / "pages" / digest_of(folder)


def digest_of(folder: Path) -> str:
    """What stands for a resolved folder in the names of its caches."""
    return hashlib.blake2b(str(folder).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def vector_cache_file() -> Path:
    """The vectors that all indexes share."""
    return cache_root() / "vectors" / "vectors.db"


def token_folder() -> Path:
    """Where listening servers keep their tokens: the user's runtime folder where there is one, else the state folder;
    both belong to the user alone."""
    with warnings.catch_warnings():
        # That the system has no such folder is told to nobody: then the state folder is used.
        warnings.simplefilter("ignore")
        runtime = user_runtime_path(_APPLICATION)
    return runtime if runtime.parent.is_dir() and os.access(runtime.parent, os.W_OK) else state_root()


def token_file(folder: Path, port: int) -> Path:
    return folder / f"server-{port}.token"


def token_files() -> list[Path]:
    """The token files of all servers, of those too that were killed."""
    return sorted(token_folder().glob("server-*.token"))
