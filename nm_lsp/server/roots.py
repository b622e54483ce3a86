"""The folders one client has open, in its own spelling, and which of them owns a file.

A folder reached through a link is known by both its names. What lies inside `.git` belongs to git: such a folder is
accepted, and nothing in it is indexed or watched. So are a home folder and a whole disk, which a person is told, unless
the folder of our stores is there already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from nm_lsp.base.errors import Refused
from nm_lsp.base.uris import path_of_uri, relative_to, uri_of_path
from nm_lsp.engine.decisions.home import STORE_FOLDER
from nm_lsp.server.backend import Backend, HostPort, SharedFolder, resolve_folder


@dataclass(eq=False, slots=True)
class Root:
    """`uri` and `path` as the client spells them, `real` with links followed (once known), `host` once opened."""

    uri: str
    path: str
    host: asyncio.Future[HostPort]
    real: str | None = None
    shared: SharedFolder | None = None
    opening: asyncio.Task[None] | None = None

    def ready_host(self) -> HostPort | None:
        """The host if it is there already."""
        if not self.host.done() or self.host.cancelled() or self.host.exception() is not None:
            return None
        return self.host.result()


@dataclass(eq=False, slots=True)
class Roots:
    backend: Backend
    on_ready: Callable[[Root, HostPort], None]
    on_refused: Callable[[Refused], None]
    all: list[Root] = field(default_factory=list)

    def add(self, uri: str) -> Root | None:
        """Know the folder; `open` makes the engine open it. None for a scheme other than `file`, or a known folder."""
        path = path_of_uri(uri)
        if path is None or any(root.path == path for root in self.all):
            return None
        root = Root(uri, path, asyncio.get_running_loop().create_future())
        # Asked for or not, a folder that cannot be opened is no error of asyncio's.
        root.host.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.all.append(root)
        return root

    def open(self, root: Root) -> None:
        """Make the engine open the folder, once."""
        if root.opening is not None or root.host.done():
            return
        if is_in_git_folder(root.path):
            root.host.set_exception(Refused(f"{root.path} belongs to git itself; nothing in it is indexed."))
            return
        root.opening = asyncio.get_running_loop().create_task(self._open(root))

    async def _open(self, root: Root) -> None:
        loop = asyncio.get_running_loop()
        try:
            # Following links looks at the disk, which may be far away.
            folder = await loop.run_in_executor(self.backend.executor, resolve_folder, root.path)
            root.real = str(folder)
            refusal = await loop.run_in_executor(self.backend.executor, refusal_of_wide, folder)
            if refusal is not None:
                root.host.set_exception(refusal)
                self.on_refused(refusal)
                return
            root.shared = self.backend.add_folder(self, folder)
            host = await asyncio.shield(root.shared.host)
        except Exception as error:  # noqa: BLE001 - handed to every request that asks for this folder
            root.host.set_exception(error)
        else:
            root.host.set_result(host)
            self.on_ready(root, host)

    def remove(self, uri: str) -> Root | None:
        """Forget the folder under any spelling of its URI; None if it was not known."""
        path = path_of_uri(uri)
        root = next((root for root in self.all if path is not None and path in {root.path, root.real}), None)
        if root is not None:
            self._forget(root)
        return root

    def clear(self) -> None:
        for root in list(self.all):
            self._forget(root)

    def _forget(self, root: Root) -> None:
        self.all.remove(root)
        if root.opening is not None:
            root.opening.cancel()
        if not root.host.done():
            root.host.set_exception(Refused("The folder was closed."))
        if root.shared is not None and not any(other.shared is root.shared for other in self.all):
            self.backend.remove_folder(self, root.shared)

    def of_folder(self, folder: str) -> Root | None:
        """The root the engine knows as `folder`."""
        return next((root for root in self.all if folder in {root.real, root.path}), None)

    def owner(self, path: str) -> tuple[Root, str] | None:
        """The nearest open folder around an absolute path, and the path relative to it."""
        best: tuple[int, Root, str] | None = None
        for root in self.all:
            for spelling in {root.path, root.real or root.path}:
                relative = relative_to(path, spelling)
                if relative is not None and (best is None or len(relative) < best[0]):
                    best = (len(relative), root, relative)
        return None if best is None else (best[1], best[2])


def is_in_git_folder(path: str) -> bool:
    return ".git" in PurePath(path).parts


def initial_folder_uris(folders: list[str] | None, root_uri: str | None, root_path: str | None) -> list[str]:
    """The folders of `initialize`, newest way of saying it first."""
    if folders:
        return folders
    if root_uri:
        return [root_uri]
    if root_path and Path(root_path).is_absolute():
        return [uri_of_path(root_path)]
    return []


def refusal_of_wide(folder: Path) -> Refused | None:
    """Why a folder that holds everything is no workspace; None for one that is, or was made one on purpose."""
    if (folder / STORE_FOLDER).is_dir():
        return None
    try:
        home = Path.home().resolve()
    except RuntimeError:
        home = None
    name = "the whole disk" if folder == Path(folder.anchor) else "your home folder" if folder == home else None
    if name is None:
        return None
    return Refused(
        f"{folder} is {name}, so nothing in it is indexed. Open the folder of a project instead.",
        hint=f"To have all of it indexed, make the folder {folder / STORE_FOLDER} and open it again.",
    )
