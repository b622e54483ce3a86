"""From a URI of the client to the folder, the path and the desk that know about it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nm_lsp.base.uris import path_of_uri
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.server.backend import HostPort
from nm_lsp.server.roots import Root

if TYPE_CHECKING:
    from nm_lsp.engine.decisions.desk import Desk
    from nm_lsp.server.connection import NmServer


OPENING_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class At:
    """A file of an open folder that is ready. `path` is relative to the folder."""

    root: Root
    host: HostPort
    path: str

    @property
    def desk(self) -> Desk:
        return self.host.decisions


def place_of(server: NmServer, uri: str) -> At | None:
    """None for what is no file of an open folder, and for a folder that is not ready yet."""
    path = path_of_uri(uri)
    owner = server.roots.owner(path) if path is not None else None
    if owner is None or not owner[1]:
        return None
    host = owner[0].ready_host()
    return At(owner[0], host, owner[1]) if host is not None else None


async def opened_place_of(server: NmServer, uri: str, grace_s: float = OPENING_GRACE_S) -> At | None:
    """As `place_of`, but waits a moment for a folder that is being opened: an editor asks right after its start."""
    path = path_of_uri(uri)
    owner = server.roots.owner(path) if path is not None else None
    if owner is not None and not owner[0].host.done():
        await asyncio.wait({owner[0].host}, timeout=grace_s)
    return place_of(server, uri)


def caller_of(server: NmServer) -> Caller:
    return Caller("lsp", server.client.name)


def command_name(server: NmServer, name: str) -> str:
    return f"{server.client.command_prefix}.{name}"


def arguments_for(root: Root, fields: dict[str, Any]) -> list[Any]:
    """The one object a command takes. The folder is named, since several may be open."""
    return [{**fields, "folder": root.uri}]
