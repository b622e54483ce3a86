"""`textDocument/codeLens`: how many decisions govern a file, above its first line and above each governed symbol.

"2 decisions · 1 stale". Choosing a lens opens the page of what governs the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from nm_lsp.engine.decision_requests import DecisionRow
from nm_lsp.graph.model import Span
from nm_lsp.server.features import asking
from nm_lsp.server.features.places import At, arguments_for, command_name, opened_place_of
from nm_lsp.server.features.ranges import TextRanges

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer


def register(server: NmServer) -> None:
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        at = await opened_place_of(server, params.text_document.uri)
        if at is None or not server.surface.settings_of(at.root).decisions.code_lens:
            return []
        return await server.backend.in_thread(_lenses, server, at)

    server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))(lenses)


def _lenses(server: NmServer, at: At) -> list[types.CodeLens]:
    all_rows: dict[str, DecisionRow] = {}
    by_symbol: dict[Span, dict[str, DecisionRow]] = {}
    for one in at.desk.governing(at.path):
        all_rows[one.decision.id] = one.decision
        if one.name_span is not None:
            by_symbol.setdefault(one.name_span, {})[one.decision.id] = one.decision
    text = at.host.outlines.text(at.path) if all_rows else None
    if text is None:
        return []
    ranges = TextRanges(text, server.client.encoding)
    found = [_lens(server, at, ranges.first_line(), all_rows.values())]
    for span, rows in sorted(by_symbol.items(), key=lambda item: item[0].start_byte):
        found.append(_lens(server, at, ranges.of(span), rows.values()))
    return [lens for lens in found if lens is not None]


def _lens(server: NmServer, at: At, where: types.Range, rows: Iterable[DecisionRow]) -> types.CodeLens | None:
    title = counted(rows)
    if title is None:
        return None
    name, fields = command_name(server, asking.COMMAND), {"act": "show", "path": at.path}
    return types.CodeLens(where, types.Command(title, name, arguments=arguments_for(at.root, fields)))


def counted(rows: Iterable[DecisionRow]) -> str | None:
    """ "2 decisions · 1 stale"; None where there is none but invalidated ones."""
    live = [row for row in rows if row.status != "invalidated"]
    if not live:
        return None
    parts = [f"{len(live)} decision{'' if len(live) == 1 else 's'}"]
    for status in ("stale", "unknown"):
        n_of_it = sum(row.status == status for row in live)
        if n_of_it:
            parts.append(f"{n_of_it} {status}")
    return " · ".join(parts)
