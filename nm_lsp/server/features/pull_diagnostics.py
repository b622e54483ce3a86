"""`textDocument/diagnostic` and `workspace/diagnostic`, for clients that start with `diagnostics: "pull"`.

The same diagnostics that others are sent; such a client is sent none. Offered to no other client, so that nobody shows
them twice.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from lsprotocol import types

from nm_lsp.server.features.places import opened_place_of
from nm_lsp.server.features.planning import SOURCE

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer


def register(server: NmServer) -> None:
    """Called when the client has said that it pulls."""

    async def of_document(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        at = await opened_place_of(server, params.text_document.uri)
        items = await server.surface.feed.report(at.root, at.path) if at is not None else ()
        result_id = _result_id(items)
        if params.previous_result_id == result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id)
        return types.RelatedFullDocumentDiagnosticReport(list(items), result_id=result_id)

    async def of_workspace(params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        known = {previous.uri: previous.value for previous in params.previous_result_ids}
        reports: list[types.WorkspaceDocumentDiagnosticReport] = []
        for uri, version, items in await server.surface.feed.reports():
            reports.append(_report(uri, version, items, known.pop(uri, None)))
        # What was reported before and shows nothing now.
        reports += [_report(uri, None, (), result_id) for uri, result_id in known.items()]
        return types.WorkspaceDiagnosticReport(reports)

    options = types.DiagnosticOptions(
        inter_file_dependencies=False, workspace_diagnostics=True, identifier=SOURCE, work_done_progress=False
    )
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(of_document)
    server.feature(types.WORKSPACE_DIAGNOSTIC)(of_workspace)


def _report(
    uri: str, version: int | None, items: tuple[types.Diagnostic, ...], before: str | None
) -> types.WorkspaceDocumentDiagnosticReport:
    result_id = _result_id(items)
    if before == result_id:
        return types.WorkspaceUnchangedDocumentDiagnosticReport(uri, result_id, version=version)
    return types.WorkspaceFullDocumentDiagnosticReport(uri, list(items), version=version, result_id=result_id)


def _result_id(items: tuple[types.Diagnostic, ...]) -> str:
    return hashlib.blake2b(repr(items).encode("utf-8", "replace"), digest_size=8).hexdigest()
