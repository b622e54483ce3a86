"""The progress bar of long work, on stderr. Rich is imported when there is something to show, not before."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from nm_lsp.cli.output import has_colour

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """One bar that may be updated from any thread. Shows itself on a terminal alone, and only while it is open."""

    def __init__(self, *, shown: bool | None = None) -> None:
        self._allowed = has_colour(sys.stderr) if shown is None else shown
        self._open = False
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def open(self) -> None:
        with self._lock:
            self._open = True

    def update(self, message: str, percent: float | None) -> None:
        """`percent` is None while the total is unknown."""
        if not self._allowed:
            return
        with self._lock:
            if not self._open:
                return
            if self._progress is None or self._task is None:
                self._progress, self._task = _start()
            self._progress.update(
                self._task, description=message, completed=percent or 0, total=None if percent is None else 100
            )

    def close(self) -> None:
        with self._lock:
            self._open = False
            if self._progress is not None:
                self._progress.stop()
                self._progress = None


def _start() -> tuple[Progress, TaskID]:
    # Imported here because most commands finish without a bar and rich costs them 40 ms.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task("", total=None)
    progress.start()
    return progress, task
