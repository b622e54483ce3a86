"""`workspace/symbol`: symbols of the code, if the user switched them on (another server usually gives them)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.requests import Hit, SearchParams
from nm_lsp.server.backend import HostPort
from nm_lsp.server.dispatch import places_of
from nm_lsp.server.roots import Root
from nm_lsp.wire.encode import Places, encode_range

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
    """The best symbols of every folder that is ready; none for an empty question, which would mean all of them."""
    if not server.backend.settings.symbols.code or not query.strip():
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
