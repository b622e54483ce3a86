"""Backups of a database in a folder outside the repository, and putting one back.

Guarantees: a backup is a whole, checked database under its final name, or absent; putting one back sets the present
file aside; only files that bear our names are ever removed, beyond the newest seven and the newest of each month.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import NotFound, StoreProblem
from nm_lsp.storage import damage
from nm_lsp.storage.migrations import Schema, version_by_content
from nm_lsp.storage.times import file_time, parse_file_time

N_KEPT: Final = 7

_NAME: Final = re.compile(r"memory-(\d{8}T\d{6}Z)-([a-z]+)(?:\.\d+)?\.db\Z")

CopyTo = Callable[[sqlite3.Connection], None]
"""Copies the database to be backed up into the open, empty one it is given."""


@dataclass(frozen=True, slots=True)
class Backup:
    """`made_at` is Unix time; `reason` is day, migration, removed or another word."""

    path: Path
    made_at: float
    reason: str
    n_bytes: int


class Backups:
    """The backups in one folder."""

    def __init__(self, folder: Path, schema: Schema) -> None:
        self.folder = folder
        self.schema = schema

    def all(self) -> list[Backup]:
        """Newest first; good or not."""
        found = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for path in self.folder.iterdir():
                match = _NAME.match(path.name)
                if match and path.is_file():
                    # Another process may remove one beyond the numbers kept just now.
                    with contextlib.suppress(FileNotFoundError):
                        found.append(Backup(path, parse_file_time(match[1]), match[2], path.stat().st_size))
        return sorted(found, key=lambda backup: (backup.made_at, backup.path.name), reverse=True)

    def newest_good(self) -> Backup | None:
        """The newest one that is whole and of a format we know."""
        return next((backup for backup in self.all() if self.fault(backup.path) is None), None)

    def fault(self, path: Path) -> str | None:
        """What is wrong with a backup, in words."""
        try:
            with contextlib.closing(_open_still(path)) as connection:
                if connection.execute("PRAGMA application_id").fetchone()[0] != self.schema.application_id:
                    return "it is not a backup of ours"
                if version_by_content(connection, self.schema) == 0:
                    return "it is empty"
                return damage.damage_seen_inside(connection)
        except sqlite3.Error as error:
            return str(error)
        except StoreProblem as error:
            return error.message

    def due(self, now: float) -> bool:
        """Whether none was made on this day (UTC)."""
        newest = next(iter(self.all()), None)
        return newest is None or file_time(newest.made_at)[:8] != file_time(now)[:8]

    def make(self, copy_to: CopyTo, now: float, reason: str) -> Backup:
        """Make one and remove what is beyond the numbers kept. Raises `StoreProblem`."""
        temporary = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".new-", suffix=".db", dir=self.folder)
            os.close(descriptor)
            temporary = Path(name)
            with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as target:
                copy_to(target)
                found = damage.damage_seen_inside(target)
            if found is not None:
                raise StoreProblem(f"the backup would be damaged: {found}", reason="damaged")
            path = self._free_name(now, reason)
            n_bytes = temporary.stat().st_size
            temporary.replace(path)
        except sqlite3.Error as error:
            raise damage.problem(error, self.folder) from error
        except OSError as error:
            raise StoreProblem(
                f"no backup can be made in {self.folder}: {error.strerror}", reason="read-only"
            ) from error
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
        self._remove_beyond_kept()
        return Backup(path, float(int(now)), reason, n_bytes)

    def _free_name(self, now: float, reason: str) -> Path:
        stem = f"memory-{file_time(now)}-{reason}"
        path = self.folder / f"{stem}.db"
        n = 1
        while path.exists():
            n += 1
            path = self.folder / f"{stem}.{n}.db"
        return path

    def _remove_beyond_kept(self) -> None:
        months: set[str] = set()
        for n, backup in enumerate(self.all()):
            month = f"{datetime.fromtimestamp(backup.made_at, UTC):%Y%m}"
            if n >= N_KEPT and month in months:
                backup.path.unlink(missing_ok=True)
            months.add(month)

    def put_back(self, backup: Path, path: Path, now: float) -> Path | None:
        """Put a copy of `backup` in the place of `path`; returns where the file that was there went, if one was.

        Raises `NotFound` and, for a backup that is not whole, `StoreProblem`; then nothing was changed.
        """
        if not backup.is_file():
            raise NotFound(f"there is no backup {backup}", hint="`nm-lsp doctor` lists them.")
        fault = self.fault(backup)
        if fault is not None:
            raise StoreProblem(f"the backup {backup} cannot be used: {fault}", reason="damaged")
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(descriptor)
        temporary = Path(name)
        try:
            with (
                contextlib.closing(_open_still(backup)) as source,
                contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as target,
            ):
                source.backup(target)
            aside = damage.set_aside(path, now, lambda: True, label="replaced")
            temporary.chmod(0o644)
            temporary.replace(path)
        except sqlite3.Error as error:
            raise damage.problem(error, path) from error
        finally:
            temporary.unlink(missing_ok=True)
        return aside


def _open_still(path: Path) -> sqlite3.Connection:
    """Open without writing anything beside the file."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
