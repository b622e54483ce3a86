"""A decision's life on real code, through a real server: recorded, kept by a comment, STALE by a change, restored.

Works on a copy of the folder's files in a repository of its own, so nothing of the user's is touched, and takes away
whatever was kept of it in the user's folders. The server is never told of a commit: it notices by itself, as it would
in an editor.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import EnvironmentProblem, NotFound
from nm_lsp.engine.caches import forget
from nm_lsp.git.listing import folder_files
from nm_lsp.git.scratch import ScratchRepository
from nm_lsp.storage.locations import state_folders, state_root
from nm_lsp.worker.selfcheck import ServerProcess
from nm_lsp.worker.sources import ALWAYS_EXCLUDED, Unreadable, decode, read_bytes, walk

MAX_FILES: Final = 2_000
MAX_BYTES: Final = 200_000
SEEN_WITHIN_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Scene:
    """One step: what was done and what the server then said of the decision. `seconds` it took to say so."""

    done: str
    status: str
    reason: str | None
    seconds: float


def play(
    folder: Path, question: str, cancel: Cancellation, on_progress: Callable[[str, int | None], None]
) -> Iterator[Scene]:
    """The scenes, each as soon as it has happened. Raises `NotFound` where the question finds no function."""
    files = _texts(folder)
    with tempfile.TemporaryDirectory(prefix="nm-lsp-demo-") as scratch:
        copy = Path(scratch).resolve() / folder.name
        copy.mkdir()
        repository = ScratchRepository(copy)
        repository.commit(files, "the project as it is")
        try:
            with ServerProcess(copy, cancel) as server:
                server.initialize()
                server.wait_ready(on_progress)
                yield from _scenes(server, repository, files, question, cancel)
                server.shut_down()
        finally:
            forget(copy)
            for backups in state_folders(state_root(), copy):
                shutil.rmtree(backups, ignore_errors=True)


def _scenes(
    server: ServerProcess, repository: ScratchRepository, files: dict[str, str], question: str, cancel: Cancellation
) -> Iterator[Scene]:
    kinds = ["function", "method"]
    hits = server.request("neuralmind/search", {"query": question, "kinds": kinds, "limit": 1})["hits"]
    if not hits:
        raise NotFound(f"No function answers “{question}”.", hint="Ask about something that is in this folder.")
    hit = hits[0]
    path, first, last = hit["path"], hit["range"]["start"]["line"], hit["range"]["end"]["line"]
    recorded = server.request(
        "neuralmind/decisions.record",
        {"title": f"Keep {hit['name']} as it is", "rationale": f"It answers: {question}.", "files": [hit["id"]]},
    )
    identity = recorded["decision"]["id"]
    lines = files[path].split("\n")
    yield Scene(f"recorded {identity} on {hit['id']}", recorded["decision"]["status"], None, 0.0)

    before = server.request("neuralmind/status", {})["head"]
    commented = [_comment(path), *lines]
    repository.commit({path: "\n".join(commented)}, "explain the file")
    scene, before = _said(server, identity, "active", before, "committed a comment above it", cancel)
    yield scene

    changed = [*commented[: last + 1], lines[last], *commented[last + 1 :]]
    if first == last:
        changed = [*commented[: last + 1], f"{lines[last]}{lines[last].strip()}", *commented[last + 2 :]]
    repository.commit({path: "\n".join(changed)}, f"change {hit['name']}")
    scene, before = _said(server, identity, "stale", before, f"committed a change of {hit['name']}", cancel)
    yield scene

    server.request("neuralmind/decisions.restore", {"ids": [identity], "note": "looked at it: it still holds"})
    yield _said(server, identity, "active", None, "restored it with a note", cancel)[0]


def _said(
    server: ServerProcess, identity: str, wanted: str, before: str | None, done: str, cancel: Cancellation
) -> tuple[Scene, str]:
    """Asks until the server has seen HEAD leave `before` and says `wanted`; the scene, and HEAD then."""
    started = time.monotonic()
    while True:
        cancel.check()
        row: dict[str, Any] = server.request("neuralmind/decisions.get", {"ids": [identity]})["decisions"][0]
        head: str | None = server.request("neuralmind/status", {})["head"]
        waited = time.monotonic() - started
        if row["status"] == wanted and head is not None and head != before:
            return Scene(done, row["status"], row.get("statusReason"), waited), head
        if waited > SEEN_WITHIN_S:
            raise EnvironmentProblem(
                f"The server still calls {identity} {row['status']} after {SEEN_WITHIN_S:.0f} s.",
                hint="Run `nm-lsp doctor`.",
            )


def _comment(path: str) -> str:
    sign = "# " if path.endswith((".py", ".rb", ".sh", ".bash")) else "// "
    return f"{sign}A comment changes no decision."


def _texts(folder: Path) -> dict[str, str]:
    """The folder's own text files, as many as a demonstration needs."""
    listing: Iterable[str] | None = folder_files(folder, None)
    if listing is None:
        listing = walk(folder, lambda _refusal: None)
    found: dict[str, str] = {}
    for path in listing:
        if len(found) == MAX_FILES:
            break
        if path.startswith(ALWAYS_EXCLUDED):
            continue
        try:
            text = decode(read_bytes(folder, path, MAX_BYTES))
        except Unreadable:
            continue
        if path.isprintable() and not path.startswith('"') and text.isascii():
            found[path] = text
    if not found:
        raise NotFound(f"{folder} holds no text files.")
    return found
