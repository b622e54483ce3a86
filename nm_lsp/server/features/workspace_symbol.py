"""`workspace/symbol`: decisions by title or id; and symbols of the code, if the user switched them on (another server
usually gives them)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.decision_requests import AnchorState, DecisionRow
from nm_lsp.engine.requests import Hit, SearchParams
from nm_lsp.server.backend import HostPort
from nm_lsp.server.dispatch import places_of
from nm_lsp.server.features.markup import one_line
from nm_lsp.server.roots import Root
from nm_lsp.wire.encode import Places, encode_range
from nm_lsp.wire.places import FolderPlaces

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

_LIMIT = 50

_KINDS = {
    "module": types.SymbolKind.Module,
    "class": types.SymbolKind.Class,
    "function": types.SymbolKind.Function,
    "method": types.SymbolKind.Method,
    "constant": types.SymbolKind.Constant,
    "section": types.SymbolKind.String,
    "file": types.SymbolKind.File,
}


def register(server: NmServer) -> None:
    async def symbols(params: Any) -> list[types.SymbolInformation]:
        return await workspace_symbols(server, params.query)

    server.feature(types.WORKSPACE_SYMBOL)(symbols)


async def workspace_symbols(server: NmServer, query: str) -> list[types.SymbolInformation]:
    """The best of every folder that is ready; none for an empty question, which would mean all of them."""
    if not query.strip():
        return []
    decisions = await _decisions(server, query)
    return [*decisions, *await _code(server, query)]


async def _decisions(server: NmServer, query: str) -> list[types.SymbolInformation]:
    found = []
    for root in list(server.roots.all):
        host = root.ready_host()
        if host is not None:
            found += await server.backend.in_thread(_matching, server, root, host, query)
    return found


def _matching(server: NmServer, root: Root, host: HostPort, query: str) -> list[types.SymbolInformation]:
    """Decisions whose title holds every word of the question, the first ones by title."""
    words = query.casefold().split()
    titled = [
        (title, identity)
        for identity, title in host.decisions.titles()
        if identity == query.strip() or all(word in title.casefold() for word in words)
    ]
    places = places_of(server, root, host)
    found = []
    for _, identity in sorted(titled)[:_LIMIT]:
        row = host.decisions.row(identity)
        if row is not None and row.anchors:
            found.append(_decision(row, places))
    return found


def _decision(row: DecisionRow, places: FolderPlaces) -> types.SymbolInformation:
    anchor = next((anchor for anchor in row.anchors if anchor.state is not AnchorState.GONE), row.anchors[0])
    path = (anchor.moved_to or anchor.repo_path).partition("::")[0]
    start = types.Position(0, 0)
    return types.SymbolInformation(
        name=one_line(row.title, 120),
        kind=types.SymbolKind.Event,
        container_name=f"decision {row.id}, {row.status}",
        location=types.Location(uri=places.repository_uri(path), range=types.Range(start, start)),
    )


async def _code(server: NmServer, query: str) -> list[types.SymbolInformation]:
    if not server.backend.settings.symbols.code:
        return []
    cancel = Cancellation()
    ready = [(root, host) for root in server.roots.all if (host := root.ready_host()) is not None]
    work = [server.backend.executor.submit(_search, server, root, host, query, cancel) for root, host in ready]
    try:
        found = await asyncio.gather(*(asyncio.wrap_future(part) for part in work))
    except asyncio.CancelledError:
        cancel.cancel()
        raise
    return [symbol for part in found for symbol in part]


def _search(
    server: NmServer, root: Root, host: HostPort, query: str, cancel: Cancellation
) -> list[types.SymbolInformation]:
    result = host.search(SearchParams(query=query, limit=_LIMIT), cancel)
    places = places_of(server, root, host)
    return [_symbol(hit, places) for hit in result.hits]


def _symbol(hit: Hit, places: Places) -> types.SymbolInformation:
    path, span = hit.place.path, hit.place.span
    where = encode_range(path, span, places)
    return types.SymbolInformation(
        name=hit.name,
        kind=_KINDS.get(hit.kind, types.SymbolKind.Variable),
        container_name=path,
        location=types.Location(
            uri=places.uri(path),
            range=types.Range(start=types.Position(**where["start"]), end=types.Position(**where["end"])),
        ),
    )
