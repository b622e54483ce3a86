"""A workspace without an index: it remembers what it was told and answers at once, or when it is let.

Run as a program it serves standard input and output, so that the server is tested as a real process.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Conflict, GitUnavailable
from nm_lsp.engine.decision_requests import Governing, Mark, Marks
from nm_lsp.engine.documents import Document
from nm_lsp.engine.requests import (
    Acknowledged,
    GraphExportParams,
    GraphExportResult,
    Hit,
    HostEvent,
    IndexFinished,
    IndexProgress,
    Nothing,
    Notice,
    Phase,
    Place,
    Progress,
    Ranks,
    SearchParams,
    SearchResult,
    StatusChanged,
    StatusResult,
)
from nm_lsp.engine.settings import Settings
from nm_lsp.graph.model import Span

Listener = Callable[[HostEvent], None]

_START = Span(0, 0, 0, 0, 0, 0)


class FakePrefix:
    """The folder is the repository."""

    def to_repository(self, path: str) -> str:
        return path

    def to_folder(self, repo_path: str) -> str:
        return repo_path


class FakeOutline:
    """A file without symbols."""

    symbols = ()
    doc = ""

    def around(self, line: int) -> None:
        return None

    def named(self, qualified_name: str) -> None:
        return None


class FakeOutlines:
    def outline(self, path: str) -> FakeOutline:
        return FakeOutline()

    def spans(self, path: str, qualified_name: str) -> None:
        return None

    def text(self, path: str) -> None:
        return None


class FakeDesk:
    """A repository without decisions."""

    prefix = FakePrefix()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def repo_to_abs(self, repo_path: str) -> Path:
        return self._folder / repo_path

    def marks(self, *, classified: bool = True) -> Marks:
        return Marks((None, 0), False, {}, (), 0, 0, {})

    def risks(self, paths: Sequence[str] | None, cancel: Cancellation) -> dict[str, tuple[Mark, ...]]:
        return {}

    def governing(self, path: str) -> tuple[Governing, ...]:
        return ()

    def row(self, identity: str) -> None:
        return None

    def ids(self) -> tuple[str, ...]:
        return ()

    def titles(self) -> tuple[tuple[str, str], ...]:
        return ()


class FakeHost:
    def __init__(self, folder: Path, listener: Listener) -> None:
        self.folder = folder
        self.repository_root = folder
        self.decisions = FakeDesk(folder)
        self.outlines = FakeOutlines()
        self.listener = listener
        self.documents: dict[str, Document] = {}
        self.log: list[tuple[str, Any]] = []
        self.release = threading.Event()
        self.n_started = 0
        self.n_cancelled = 0

    # -- documents --------------------------------------------------------------------------------------------------

    def open_document(self, doc: Document) -> None:
        self.log.append(("open", doc.path))
        self.documents[doc.path] = doc

    def change_document(self, doc: Document) -> None:
        self.log.append(("change", doc.path))
        self.documents[doc.path] = doc

    def save_document(self, path: str) -> None:
        self.log.append(("save", path))

    def close_document(self, path: str) -> None:
        self.log.append(("close", path))
        del self.documents[path]

    def files_changed(self, paths: Sequence[str]) -> None:
        self.log.append(("files", tuple(paths)))

    def files_renamed(self, renames: Mapping[str, str]) -> None:
        self.log.append(("renamed", dict(renames)))

    def tell_events(self) -> None:
        self.log.append(("tell_events", None))

    # -- calls --------------------------------------------------------------------------------------------------------

    def status(self, params: Nothing, cancel: Cancellation) -> StatusResult:
        done = Progress(0, 0)
        return StatusResult(
            str(self.folder), True, Phase.IDLE, done, done, 1, len(self.documents), 0, 0, (), {}, None, None, True, ()
        )

    def search(self, params: SearchParams, cancel: Cancellation) -> SearchResult:
        """The question chooses what happens: a word of command, or the text of an open document to be found."""
        self.n_started += 1
        match params.query.split():
            case ["wait"]:
                while not self.release.wait(0.01):
                    if cancel.cancelled:
                        self.n_cancelled += 1
                    cancel.check()
            case ["bug"]:
                raise ZeroDivisionError("secret local text")
            case ["git"]:
                raise GitUnavailable("git was not found.", hint="Install git.")
            case ["conflict"]:
                raise Conflict("The record has changed.", current={"revision": 2})
            case ["odd", "conflict"]:
                raise Conflict("The record has changed.", current=object())
            case ["print"]:
                print("a stray line")  # must not reach the protocol
                os.write(1, b"another stray line\n")
            case ["index"]:
                folder = str(self.folder)
                self.listener(IndexProgress(folder, Phase.KEYWORD, 10, "reading"))
                self.listener(IndexProgress(folder, Phase.KEYWORD, 60, "reading"))
                self.listener(StatusChanged(folder))
                self.listener(IndexFinished(folder, "42 files"))
            case ["notice"]:
                self.listener(Notice("warning", "No weights.", str(self.folder), "Run `nm-lsp model install`."))
                self.listener(Notice("warning", "No weights.", str(self.folder), "Run `nm-lsp model install`."))
            case ["text", path]:
                return SearchResult((_hit(path, self.documents[path].text),), ())
            case ["at", path, line, start, end]:
                span = Span(0, 0, int(line), int(start), int(line), int(end))
                return SearchResult((_hit(path, "", span),), ())
        return SearchResult((), ())

    def graph_export(self, params: GraphExportParams, cancel: Cancellation) -> GraphExportResult:
        return GraphExportResult(1200, 0, None, {"nodes": [{"id": number} for number in range(1200)], "edges": []})

    def cancel_index(self, params: Nothing, cancel: Cancellation) -> Acknowledged:
        self.log.append(("cancel_index", None))
        return Acknowledged(True, "stopped")


class FakeWorkspace:
    def __init__(self, settings: Settings, listener: Listener) -> None:
        self.settings = settings
        self.listener = listener
        self.by_folder: dict[Path, FakeHost] = {}
        self.n_configured = 0
        self.closed = False

    def add_folder(self, folder: Path) -> FakeHost:
        return self.by_folder.setdefault(folder, FakeHost(folder, self.listener))

    def remove_folder(self, folder: Path) -> None:
        del self.by_folder[folder]

    def configure(self, settings: Settings) -> None:
        self.settings = settings
        self.n_configured += 1

    def close(self) -> None:
        self.closed = True


def _hit(path: str, text: str, span: Span = _START) -> Hit:
    return Hit(f"{path}::f", Place(path, span), "function", "f", "def f()", 1.0, text, Ranks(1, None, None))


if __name__ == "__main__":
    from nm_lsp.server.main import serve_stdio, serve_tcp, serve_ws

    match sys.argv[1:]:
        case ["tcp"]:
            serve_tcp("127.0.0.1", 0, FakeWorkspace)
        case ["ws"]:
            serve_ws("127.0.0.1", 0, FakeWorkspace)
        case _:
            serve_stdio(FakeWorkspace)
