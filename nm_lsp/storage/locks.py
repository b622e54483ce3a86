"""Whether files of a folder can be locked: SQLite needs that, and some network drives do not offer it.

SQLite would report such a drive as locked by another program, for ever.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import lru_cache
from pathlib import Path

_HELD = {errno.EAGAIN, errno.EACCES}


@lru_cache(maxsize=64)
def locks_work_near(folder: Path) -> bool:
    """Asked once for each folder, by a lock on any file that lies in it or, while it is not there, around it.

    True where there is no such file. A file of the store itself is never touched: closing it would release SQLite's
    own locks on it.
    """
    if sys.platform == "win32":
        return True
    path = _some_file(folder)
    return path is None or _can_lock(path)


def _some_file(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if not place.is_dir():
            continue
        for inside in (place, place / ".git"):
            try:
                with os.scandir(inside) as entries:
                    for entry in entries:
                        if entry.is_file(follow_symlinks=False) and ".db" not in entry.name:
                            return Path(entry.path)
            except OSError:
                continue
        return None
    return None


def _can_lock(path: Path) -> bool:
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_UN)
    except OSError as error:
        return error.errno in _HELD
    return True
