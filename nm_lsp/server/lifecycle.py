"""From `initialize` to the folders being open, and every change of folders and settings after that.

`initialize` only reads what the client said and answers. The engine is started, and folders are opened, once the client
has said `initialized` and its settings are known, or shortly after `initialize` for a client that never says it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.exceptions import JsonRpcException

from nm_lsp.engine.requests import Notice
from nm_lsp.engine.settings import SECTION
from nm_lsp.server import dispatch, watched_files
from nm_lsp.server.client import read_profile
from nm_lsp.server.features import pull_diagnostics
from nm_lsp.server.roots import initial_folder_uris

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

INITIALIZED_GRACE_S = 1.0
CONFIGURATION_GRACE_S = 2.0


def register(server: NmServer) -> None:
    """The notifications of this file, of documents and of progress. All are plain functions that return at once."""
    documents = server.documents
    notifications = {
        types.INITIALIZED: partial(initialized, server),
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: partial(folders_changed, server),
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: partial(configuration_changed, server),
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES: partial(watched_files.did_change, server),
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL: partial(server.reporter.cancel),
        types.TEXT_DOCUMENT_DID_OPEN: partial(documents.did_open),
        types.TEXT_DOCUMENT_DID_CHANGE: partial(documents.did_change),
        types.TEXT_DOCUMENT_DID_SAVE: partial(documents.did_save),
        types.TEXT_DOCUMENT_DID_CLOSE: partial(documents.did_close),
    }
    for method, handler in notifications.items():
        # Partial objects, since pygls marks what it registers and a method cannot be marked.
        server.feature(method)(handler)


def initialize(server: NmServer, params: types.InitializeParams) -> types.ServerCapabilities:
    """Take in what the client says of itself; the capabilities follow from the registered features."""
    client = server.client = read_profile(params)
    server.documents.encoding = client.encoding
    server.client_settings = client.settings
    if params.process_id is not None and server.watch_client is not None:
        server.watch_client(params.process_id)
    if client.pulls_diagnostics:
        pull_diagnostics.register(server)
    for problem in client.problems:
        server.reporter.notice(Notice("warning", problem))
    folders = [folder.uri for folder in params.workspace_folders or ()]
    for uri in initial_folder_uris(folders, params.root_uri, params.root_path):
        server.roots.add(uri)
    # After the answer has been sent.
    asyncio.get_running_loop().call_soon(server.backend.prewarm)
    server.start_within(INITIALIZED_GRACE_S)
    return _capabilities(server, params.capabilities)


def _capabilities(server: NmServer, client: types.ClientCapabilities) -> types.ServerCapabilities:
    features = server.protocol.fm
    builder = ServerCapabilitiesBuilder(
        client,
        {*features.features, *features.builtin_features},
        features.feature_options,
        dispatch.advertised(server.client.command_prefix),
        types.TextDocumentSyncKind.Incremental,
        None,
        server.client.encoding.value,
    )
    capabilities: types.ServerCapabilities = builder.build()  # type: ignore[no-untyped-call]
    capabilities.workspace = capabilities.workspace or types.WorkspaceOptions()
    capabilities.workspace.workspace_folders = types.WorkspaceFoldersServerCapabilities(
        supported=True, change_notifications=True
    )
    return capabilities


def initialized(server: NmServer, _params: Any) -> None:
    """`initialized`: the client may be asked things now."""
    server.reporter.start()
    server.spawn(_ask_and_start(server))


async def _ask_and_start(server: NmServer) -> None:
    await _fetch_settings(server)
    server.start()
    registrations = []
    if server.client.registers_watched_files:
        registrations.append(watched_files.registration())
    if server.client.registers_configuration:
        options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        registrations.append(types.Registration("nm-configuration", method, options))
    if registrations:
        try:
            await server.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations))
        except (TimeoutError, JsonRpcException):
            # The server's own look at files and settings does without.
            return


async def _fetch_settings(server: NmServer) -> None:
    if not server.client.has_configuration:
        return
    items = [types.ConfigurationItem(section=SECTION)]
    request = server.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items))
    try:
        answer = await asyncio.wait_for(request, CONFIGURATION_GRACE_S)
    except (TimeoutError, JsonRpcException):
        return
    written = answer[0] if answer else None
    # An editor without a word about us answers null or nothing; what came with `initialize` then stands.
    if written:
        server.client_settings = written


def folders_changed(server: NmServer, params: Any) -> None:
    """`workspace/didChangeWorkspaceFolders`."""
    event = params.get("event") if isinstance(params, dict) else None
    if not isinstance(event, dict):
        return
    first = server.roots.all[:1]
    for uri in _uris(event.get("removed")):
        root = server.roots.remove(uri)
        if root is not None:
            server.reporter.folder_removed(root)
            server.surface.folder_removed(root)
    for uri in _uris(event.get("added")):
        server.roots.add(uri)
    if server.started:
        if server.roots.all[:1] != first:
            server.reconfigure()
        for root in server.roots.all:
            server.roots.open(root)
    server.documents.folders_changed()
    server.surface.feed.show_all()


def _uris(folders: Any) -> list[str]:
    rows = folders if isinstance(folders, list) else []
    return [row["uri"] for row in rows if isinstance(row, dict) and isinstance(row.get("uri"), str)]


def configuration_changed(server: NmServer, params: Any) -> None:
    """`workspace/didChangeConfiguration`: the settings themselves, or only word that they changed."""
    if server.client.has_configuration:
        server.spawn(_fetch_and_apply(server))
        return
    settings = params.get("settings") if isinstance(params, dict) else None
    if isinstance(settings, dict) and SECTION in settings:
        server.client_settings = settings[SECTION]
        server.reconfigure()


async def _fetch_and_apply(server: NmServer) -> None:
    await _fetch_settings(server)
    server.reconfigure()
