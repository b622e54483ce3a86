"""Where this program keeps what it can make again (the user's cache folder) and what it backs up (the state folder)."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from platformdirs import user_cache_path, user_state_path

_APPLICATION = "nm_lsp"


def cache_root() -> Path:
    """The folder of all caches; it need not exist yet."""
    return user_cache_path(_APPLICATION, appauthor=False)


def state_root() -> Path:
    """The folder of all backups, and of stores whose repository is read-only."""
    return user_state_path(_APPLICATION, appauthor=False)


def index_folder(folder: Path) -> Path:
    """The index of a workspace folder; its name can be read, and one folder has one however it is spelt."""
    real = folder.resolve()
    digest = hashlib.blake2b(str(real).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", real.name)[:40] or "root"
    return cache_root() / "index" / f"{readable}-{digest}"


def vector_cache_file() -> Path:
    """The vectors that all indexes share."""
    return cache_root() / "vectors" / "vectors.db"
