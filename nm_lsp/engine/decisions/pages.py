"""Decisions as files that any editor can open: the text behind a link, what changed since, what governs a file.

The files lie in the user's cache folder, readable by the user alone. They are copies of what the store says: renewed
when that changes and removed when the folder is closed, and those that a killed process left behind at the next start,
so that what is redacted does not live on here. Blocks on the disk.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from nm_lsp.base.errors import EnvironmentProblem
from nm_lsp.decisions.validation import escaped
from nm_lsp.engine.decision_requests import DecisionDetail, DecisionRow, HistoryResult
from nm_lsp.engine.leftovers import dead_pages_of
from nm_lsp.storage.locations import page_folder

MAX_TEXT = 1_000_000
_NUMBERS = itertools.count(1)


class Pages:
    """The pages that one client has of one folder. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._group = page_folder(folder)
        self._folder = self._group / f"{os.getpid()}-{next(_NUMBERS)}"
        self._lock = threading.Lock()
        self._written: dict[Path, tuple[Callable[[], str | None], str]] = {}
        self._begun = False

    def write(self, name: str, text: Callable[[], str | None]) -> Path | None:
        """Write the page `name` as `text` gives it now and at every `renew`; None where it gives nothing.

        Raises `EnvironmentProblem` where the cache cannot be written.
        """
        now = text()
        if now is None:
            return None
        with self._lock:
            path = self._folder / name
            try:
                self._begin()
                _write(path, now)
            except OSError as error:
                raise EnvironmentProblem(f"{path} cannot be written: {error.strerror}.") from error
            self._written[path] = text, now
            return path

    def renew(self) -> None:
        """Bring every page up to date; one about what is no longer there goes."""
        with self._lock:
            for path, (text, before) in list(self._written.items()):
                now = text()
                # A page nobody can write is as good as one that is gone.
                with contextlib.suppress(OSError):
                    if now is None:
                        path.unlink(missing_ok=True)
                    elif now != before:
                        _write(path, now)
                if now is None:
                    del self._written[path]
                else:
                    self._written[path] = text, now

    def clear(self) -> None:
        with self._lock:
            self._written.clear()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        remove_left_behind(self._group)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def remove_left_behind(group: Path) -> None:
    """Remove the pages of processes that are no more."""
    for path in dead_pages_of(group):
        shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:  # noqa: PTH123 (a descriptor)
        file.write(text[:MAX_TEXT])


# -- texts ---------------------------------------------------------------------------------------------------------


def decision_page(detail: DecisionDetail, history: HistoryResult) -> str:
    """The whole record in Markdown, for reading."""
    row = detail.row
    parts = [f"# {escaped(row.title, one_line=True)}", _facts(detail), "## Rationale", escaped(detail.rationale)]
    for title, texts in (("Alternatives", detail.alternatives), ("Evidence", detail.evidence)):
        if texts:
            parts += [f"## {title}", "\n".join(f"- {escaped(text, one_line=True)}" for text in texts)]
    parts += ["## Governs", "\n".join(f"- {_anchor(row, at)}" for at in range(len(row.anchors)))]
    parts += ["## History", "\n".join(f"- {line.time}: {escaped(line.text, one_line=True)}" for line in history.rows)]
    return "\n\n".join(parts) + "\n"


def list_page(title: str, details: tuple[DecisionDetail, ...]) -> str:
    """Several decisions one below the other."""
    parts = [f"# {escaped(title, one_line=True)}"]
    for detail in details:
        parts += [f"## {escaped(detail.row.title, one_line=True)}", _facts(detail), escaped(detail.rationale)]
    return "\n\n".join(parts) + "\n"


def _facts(detail: DecisionDetail) -> str:
    row = detail.row
    facts = [f"- Id: {row.id}", f"- Status: {row.status}"]
    if row.status_reason:
        facts.append(f"- Why: {row.status_reason}")
    if row.superseded_by:
        end = f", now {detail.live_end}" if detail.live_end and detail.live_end != row.superseded_by else ""
        facts.append(f"- Superseded by: {row.superseded_by}{end}")
    facts.append(f"- Recorded: {row.recorded_at} by {escaped(detail.recorded_by, one_line=True)}")
    if row.author:
        facts.append(f"- Author: {escaped(row.author, one_line=True)}")
    if row.tags:
        facts.append(f"- Tags: {escaped(', '.join(row.tags), one_line=True)}")
    if detail.depends_on:
        facts.append(f"- Depends on: {', '.join(detail.depends_on)}")
    return "\n".join(facts)


def _anchor(row: DecisionRow, at: int) -> str:
    anchor = row.anchors[at]
    name = f"{anchor.repo_path}::{anchor.symbol}" if anchor.symbol else anchor.repo_path
    now = f", now {anchor.moved_to}" if anchor.moved_to else ""
    return f"{escaped(name, one_line=True)} ({anchor.state.value}{escaped(now, one_line=True)})"
