"""Changed paths of chosen folders, gathered over a quiet moment.

On Linux a watch costs kernel memory for every directory, so exactly the directories that hold indexed files are
watched, never dependency folders below them; elsewhere the system watches a tree as a whole at no cost. When the
system's limit is reached, `limit_reached` says so and the caller falls back to looking now and then.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import InotifyEvent

QUIET_S = 0.1
LONGEST_S = 1.0
MAX_DIRECTORIES = 20_000
"""A workspace of more directories is looked at now and then instead of watched."""

_IGNORED = (".git", ".neuralmind")


class _Gatherer:
    """Collects paths and hands them on after `QUIET_S` without a new one, at the latest after `LONGEST_S`."""

    def __init__(self, on_change: Callable[[frozenset[str]], None]) -> None:
        self._on_change = on_change
        self._condition = threading.Condition()
        self._paths: set[str] = set()
        self._ended = False
        threading.Thread(target=self._run, name="nm-watch", daemon=True).start()

    def add(self, path: str) -> None:
        if path.startswith(_IGNORED) and path.partition("/")[0] in _IGNORED:
            return
        with self._condition:
            self._paths.add(path)
            self._condition.notify()

    def close(self) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._paths or self._ended)
                waited = 0.0
                before = -1
                while not self._ended and len(self._paths) != before and waited < LONGEST_S:
                    before = len(self._paths)
                    self._condition.wait(QUIET_S)
                    waited += QUIET_S
                if self._ended:
                    return
                paths, self._paths = frozenset(self._paths), set()
            self._on_change(paths)


class FolderWatch(Protocol):
    """Reports paths relative to the watched root, slashed; a directory stands for everything below it."""

    limit_reached: bool

    def cover(self, directories: Iterable[str]) -> None:
        """Make sure that these directories (relative; "" is the root) are watched. Cheap for those that already are."""

    def close(self) -> None: ...


def watch_folder(root: Path, on_change: Callable[[frozenset[str]], None]) -> FolderWatch:
    """`on_change` is called on a thread of the watch."""
    kind = _InotifyWatch if platform.system() == "Linux" else _TreeWatch
    return kind(root, on_change)


class _InotifyWatch:
    def __init__(self, root: Path, on_change: Callable[[frozenset[str]], None]) -> None:
        # Linux only; the module cannot be imported elsewhere.
        from watchdog.observers.inotify_c import InotifyConstants, InotifyFD

        self.limit_reached = False
        self._root = os.fsencode(root)
        self._gatherer = _Gatherer(on_change)
        self._mask = (
            InotifyConstants.IN_CLOSE_WRITE
            | InotifyConstants.IN_CREATE
            | InotifyConstants.IN_DELETE
            | InotifyConstants.IN_MOVED_FROM
            | InotifyConstants.IN_MOVED_TO
            | InotifyConstants.IN_ONLYDIR
            | InotifyConstants.IN_DONT_FOLLOW
        )
        self._directories: dict[int, str] = {}
        self._callbacks: list[tuple[int, str]] = []
        self._covered: set[str] = set()
        try:
            self._inotify: InotifyFD | None = InotifyFD.get_instance()
        except OSError:
            self._inotify, self.limit_reached = None, True

    def cover(self, directories: Iterable[str]) -> None:
        for directory in directories:
            if directory in self._covered or self._inotify is None or self.limit_reached:
                continue
            if len(self._covered) >= MAX_DIRECTORIES:
                self.limit_reached = True
                return
            path = self._root + b"/" + os.fsencode(directory) if directory else self._root
            name = f"{id(self)} {directory}"
            try:
                wd = self._inotify.add_callback(path, self._mask, self, name)  # type: ignore[arg-type]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                # ENOSPC: the limit of this user's watches. Other programs need some too.
                self.limit_reached = True
                return
            if wd in self._directories:
                # The same directory under a new name: it was moved.
                self._covered.discard(self._directories[wd])
            self._directories[wd] = directory
            self._callbacks.append((wd, name))
            self._covered.add(directory)

    def close(self) -> None:
        self._gatherer.close()
        if self._inotify is not None:
            known = [(wd, name) for wd, name in self._callbacks if wd in self._directories]
            self._inotify.remove_callbacks(known)  # type: ignore[arg-type]
            self._directories.clear()

    # -- called by watchdog -----------------------------------------------------------------------------------------

    def on_event(self, event: InotifyEvent) -> None:
        directory = self._directories.get(event.wd)
        name = os.fsdecode(event.name)
        if directory is not None and name:
            self._gatherer.add(f"{directory}/{name}" if directory else name)

    def on_watch_deleted(self, wd: int) -> None:
        directory = self._directories.pop(wd, None)
        if directory is not None:
            self._covered.discard(directory)
            if directory:
                self._gatherer.add(directory)

    def on_queue_overflow(self) -> None:
        """Events were lost: anything may have changed."""
        self._gatherer.add("")


class _TreeWatch(FileSystemEventHandler):
    def __init__(self, root: Path, on_change: Callable[[frozenset[str]], None]) -> None:
        self.limit_reached = False
        self._root = root
        self._gatherer = _Gatherer(on_change)
        self._observer = Observer()
        try:
            self._observer.schedule(self, str(root), recursive=True)
            self._observer.start()
        except OSError:
            self.limit_reached = True

    def cover(self, directories: Iterable[str]) -> None:
        """The whole tree already is."""

    def close(self) -> None:
        self._gatherer.close()
        if self._observer.is_alive():
            self._observer.stop()

    def on_any_event(self, event: FileSystemEvent) -> None:
        for raw in (event.src_path, event.dest_path):
            path = Path(os.fsdecode(raw))
            if raw and path.is_relative_to(self._root) and event.event_type not in {"opened", "closed_no_write"}:
                self._gatherer.add(path.relative_to(self._root).as_posix())
