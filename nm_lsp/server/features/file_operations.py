"""File operations of the editor: what is moved keeps its marks at once, what is deleted is said to be governed.

Nothing is stored: where a decision's files are is derived from commits. A rename only shows the marks at the new place
until git knows of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from nm_lsp.engine.decision_requests import DecisionRow
from nm_lsp.server.features.markup import one_line
from nm_lsp.server.features.places import At, place_of

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

_N_NAMED = 5
_FILTERS = [
    types.FileOperationFilter(pattern=types.FileOperationPattern(glob="**/*"), scheme="file"),
]


def register(server: NmServer) -> None:
    def renamed(params: types.RenameFilesParams) -> None:
        for file in params.files:
            old, new = place_of(server, file.old_uri), place_of(server, file.new_uri)
            if old is not None and new is not None and old.root is new.root:
                server.surface.feed.renamed(old.root, old.path, new.path)
                old.host.files_renamed({old.path: new.path})
            for at in (old, new):
                if at is not None:
                    at.host.files_changed([at.path])
                    server.surface.feed.files_changed(at.root)

    def deleted(params: types.DeleteFilesParams) -> None:
        for file in params.files:
            at = place_of(server, file.uri)
            if at is not None:
                at.host.files_changed([at.path])
                server.surface.feed.files_changed(at.root)

    async def about_to_delete(params: types.DeleteFilesParams) -> None:
        """Never an edit and never a refusal: the user decided, and is told."""
        places = [at for file in params.files if (at := place_of(server, file.uri)) is not None]
        orphans = await server.backend.in_thread(_orphans, places)
        if orphans:
            text = deletion_message(orphans)
            server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, text))

    options = types.FileOperationRegistrationOptions(filters=_FILTERS)
    server.feature(types.WORKSPACE_DID_RENAME_FILES, options)(renamed)
    server.feature(types.WORKSPACE_DID_DELETE_FILES, options)(deleted)
    server.feature(types.WORKSPACE_WILL_DELETE_FILES, options)(about_to_delete)


def _orphans(places: list[At]) -> list[DecisionRow]:
    """The live decisions anchored at a deleted file, or below a deleted folder."""
    found: dict[str, DecisionRow] = {}
    for at in places:
        repo_path = at.desk.prefix.to_repository(at.path)
        for identity in at.desk.ids():
            row = at.desk.row(identity)
            if row is None or row.status == "invalidated":
                continue
            for anchor in row.anchors:
                where = (anchor.moved_to or anchor.repo_path).partition("::")[0].rstrip("/")
                if where == repo_path or where.startswith(repo_path + "/"):
                    found[row.id] = row
    return list(found.values())


def deletion_message(rows: list[DecisionRow]) -> str:
    shown = ", ".join(f"“{one_line(row.title, 60)}” ({row.id})" for row in rows[:_N_NAMED])
    more = f" and {len(rows) - _N_NAMED} more" if len(rows) > _N_NAMED else ""
    what = "a decision governs" if len(rows) == 1 else f"{len(rows)} decisions govern"
    return f"What is being deleted {what}: {shown}{more}. Committing the deletion will make them stale."
