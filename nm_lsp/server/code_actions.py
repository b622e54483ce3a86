"""`textDocument/codeAction`: what can be done about the decisions that govern a place. Elsewhere the list is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer


def register(server: NmServer) -> None:
    async def code_actions(_params: Any) -> list[types.CodeAction]:
        return []

    server.feature(types.TEXT_DOCUMENT_CODE_ACTION)(code_actions)
