"""`textDocument/documentLink`: ids of decisions, wherever a text names one, lead to the decision's own text.

The target is a page in the user's cache folder, written when the link is resolved: a file opens in every editor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nm_lsp.base.text import split_lines, to_column, without_surrogates
from nm_lsp.base.uris import uri_of_path
from nm_lsp.server.features.markup import one_line
from nm_lsp.server.features.places import At, opened_place_of, place_of

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

MAX_LINKS = 500
_ID = re.compile(r"(?<![\w-])nm-[a-z2-7]{8}(?![\w-])")


def register(server: NmServer) -> None:
    async def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        at = await opened_place_of(server, params.text_document.uri)
        document = server.documents.get(params.text_document.uri)
        if at is None or document is None:
            return []
        return await server.backend.in_thread(_links, server, at, document.buffer.text)

    async def resolve(link: types.DocumentLink) -> types.DocumentLink:
        data: Any = link.data
        if not isinstance(data, dict) or not isinstance(data.get("id"), str) or not _ID.fullmatch(data["id"]):
            return link
        at = place_of(server, str(data.get("uri")))
        if at is not None:
            pages = server.surface.pages_of(at.root, at.host)
            path = await server.backend.in_thread(pages.decision, data["id"])
            link.target = uri_of_path(path) if path is not None else None
        return link

    options = types.DocumentLinkOptions(resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK, options)(links)
    server.feature(types.DOCUMENT_LINK_RESOLVE)(resolve)


def id_at(line: str, index: int) -> str | None:
    """The id of a decision that the character at `index` belongs to."""
    return next((match[0] for match in _ID.finditer(line) if match.start() <= index <= match.end()), None)


def _links(server: NmServer, at: At, text: str) -> list[types.DocumentLink]:
    if "nm-" not in text:
        return []
    uri = server.documents.uri_of(at.root, at.path) or at.root.uri
    found: list[types.DocumentLink] = []
    for number, line in enumerate(split_lines(without_surrogates(text))):
        for match in _ID.finditer(line):
            row = at.desk.row(match[0])
            if row is None:
                continue
            start = types.Position(number, to_column(line, match.start(), server.client.encoding))
            end = types.Position(number, start.character + len(match[0]))
            tooltip = f"{one_line(row.title, 120)} ({row.status})"
            data = {"id": row.id, "uri": uri}
            found.append(types.DocumentLink(types.Range(start, end), tooltip=tooltip, data=data))
            if len(found) >= MAX_LINKS:
                return found
    return found
