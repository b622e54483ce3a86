"""`textDocument/hover`: what the memory knows about a place.

Only governed files have something to say. Everywhere else, and in whatever is no file of an open folder, the answer is
null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer


def register(server: NmServer) -> None:
    async def hover(_params: Any) -> types.Hover | None:
        return None

    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
