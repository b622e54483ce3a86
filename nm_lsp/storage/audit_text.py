"""`audit.jsonl`, its archives, and `audit.dropped`: the chain as text beside the database.

The text follows the table. A record is committed to the table first and then appended here, under the table's write
lock, so that several processes keep one order; what a crash left out, half a line included, is appended when the store
is next opened or written. How far the text went is noted in the table, so that a tail that was cut off afterwards is
not taken for a crash: it stays a gap, and `audit verify` reports it. Must not know what the records say.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.audit.chain import AuditRecord
from nm_lsp.audit.text import Unreadable, archive_range, format_line, parse_line
from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage import files
from nm_lsp.storage.files import open_to_append, write_all

_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the text: the last record of it (None for an empty text), and bytes after the last line end."""

    record: AuditRecord | Unreadable | None
    torn: bytes


class AuditText:
    """The text copy in `folder`. The caller holds the table's write lock around everything that writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "audit.jsonl"

    def archives(self) -> list[Path]:
        """The archives that rotation left, in the order of their records."""
        found = [
            (name_range, path) for path in self.folder.glob("audit.*.jsonl") if (name_range := archive_range(path.name))
        ]
        return [path for _, path in sorted(found)]

    def files(self) -> list[Path]:
        """All files of the text in the order of their records."""
        return [*self.archives(), *([self.path] if self.path.exists() else [])]

    def exists(self) -> bool:
        return any(path.stat().st_size > 0 for path in self.files())

    def read(self) -> list[AuditRecord | Unreadable]:
        """Every line of all files. Raises `StoreProblem` where a file cannot be read."""
        lines: list[bytes] = []
        for path in self.files():
            try:
                content = path.read_bytes()
            except OSError as error:
                raise StoreProblem(f"{path} cannot be read: {error.strerror}") from error
            lines += content.split(b"\n")[:-1] if content.endswith(b"\n") else content.split(b"\n")
        return [parse_line(line) for line in lines if line or len(lines) > 1]

    def first(self) -> AuditRecord | None:
        """The first record of the current file."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            record = parse_line(file.readline())
        return record if isinstance(record, AuditRecord) else None

    def tail(self) -> Tail:
        """The last line, found from the end."""
        torn = b""
        for path in reversed(self.files()):
            last, rest = _last_line(path)
            torn = torn or rest
            if last is not None:
                return Tail(parse_line(last), torn)
        return Tail(None, torn)

    def append(self, records: Sequence[AuditRecord], torn: bytes, failpoint: Callable[[str], None]) -> None:
        """Append the lines of `records` and force them to disk. `torn` is what stands after the last line end: the
        beginning of the first record's line is completed, anything else gets a line of its own."""
        data = b"".join(format_line(record) for record in records)
        data = data[len(torn) :] if data.startswith(torn) else b"\n" + data
        try:
            descriptor = open_to_append(self.path)
            try:
                # A process killed between the halves leaves a torn line.
                half = len(data) // 2
                write_all(descriptor, data[:half])
                failpoint("text-half-written")
                write_all(descriptor, data[half:])
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreProblem(f"{self.path} cannot be written: {error.strerror}") from error

    def archive(self, name: str) -> None:
        """Rename the current file; the next record begins a new one."""
        target = self.folder / name
        if target.exists():
            raise StoreProblem(f"{target} exists already; the text copy was not rotated")
        try:
            self.path.replace(target)
        except OSError as error:
            raise StoreProblem(f"{self.path} cannot be renamed: {error.strerror}") from error

    def set_aside(self, suffix: str) -> list[str]:
        """Rename all files of the text, each with `.old-<suffix>` after it; return the new names."""
        names = []
        for path in self.files():
            aside = path.with_name(f"{path.name}.old-{suffix}")
            n = 1
            while aside.exists():
                n += 1
                aside = path.with_name(f"{path.name}.old-{suffix}.{n}")
            try:
                path.replace(aside)
            except OSError as error:
                raise StoreProblem(f"{path} cannot be renamed: {error.strerror}") from error
            names.append(aside.name)
        return names

    def replace_lines(self, records: Iterable[AuditRecord]) -> int:
        """Put the given form of a record in place of every line with its hash, in all files, also those set aside.

        For redaction only: the hash stays, the text goes. Returns the number of lines changed.
        """
        wanted = {record.hash: format_line(record) for record in records}
        n_changed = 0
        for path in sorted({*self.files(), *self.folder.glob("audit*.jsonl.old-*")}):
            changed = 0
            lines = []
            for line in path.read_bytes().splitlines(keepends=True):
                record = parse_line(line)
                new = wanted.get(record.hash, line) if isinstance(record, AuditRecord) else line
                changed += new != line
                lines.append(new)
            if changed:
                replace_file(path, b"".join(lines))
            n_changed += changed
        return n_changed


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in the place of a file at once, on disk. Raises `StoreProblem`."""
    try:
        files.replace_file(path, content, durable=True)
    except OSError as error:
        raise StoreProblem(f"{path} cannot be written: {error.strerror}") from error


class DroppedRecords:
    """`audit.dropped`: one line for each act whose record could not be written, what it was and why."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "audit.dropped"
        self._not_even_here = 0

    def count(self) -> int:
        """How many records were dropped, those included that this process could not even note."""
        n_lines = 0
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            n_lines = self.path.read_bytes().count(b"\n")
        return n_lines + self._not_even_here

    def set_aside(self, suffix: str) -> list[str]:
        """Rename the list, since its length is part of the chain now; returns its new name."""
        self._not_even_here = 0
        aside = self.path.with_name(f"{self.path.name}.old-{suffix}")
        try:
            self.path.replace(aside)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreProblem(f"{self.path} cannot be renamed: {error.strerror}") from error
        return [aside.name]

    def note(self, time: str, action: str, subject: str, why: str) -> None:
        line = json.dumps({"time": time, "action": action, "subject": subject, "why": why}).encode("ascii") + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = open_to_append(self.path)
            try:
                write_all(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            # The disk takes nothing at all; the count of this process is all that is left.
            self._not_even_here += 1


def _last_line(path: Path) -> tuple[bytes | None, bytes]:
    """The last line that ends with a line feed (without it), and what follows it."""
    try:
        with path.open("rb") as file:
            at = file.seek(0, os.SEEK_END)
            data = b""
            while at > 0 and data.count(b"\n") < 2:
                step = min(_BLOCK, at)
                at -= step
                file.seek(at)
                data = file.read(step) + data
    except OSError as error:
        raise StoreProblem(f"{path} cannot be read: {error.strerror}") from error
    lines, found, torn = data.rpartition(b"\n")
    if not found:
        return None, torn
    return lines.rpartition(b"\n")[2], torn
