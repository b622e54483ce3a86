"""Changes of files that the client reports, for clients that let a server ask for them.

The patterns name the files an index is made of, so that no client has to watch everything below a dependency folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nm_lsp.base.uris import path_of_uri
from nm_lsp.engine.settings import CONFIG_FILE
from nm_lsp.server.backend import HostPort

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

GLOBS = (
    "**/*.{py,pyi,pyw,js,mjs,cjs,jsx,ts,mts,cts,tsx,java,go,rs,c,h,cc,cpp,cxx,hh,hpp,hxx,cs,rb,rake,php,sh,bash}",
    "**/*.{md,markdown,mdx,rst,toml,yaml,yml,json,cfg,ini,mk}",
    "**/{Makefile,Rakefile,Gemfile,.gitignore}",
    CONFIG_FILE.as_posix(),
)

_CONFIG_SUFFIX = "/" + CONFIG_FILE.as_posix()


def registration() -> types.Registration:
    watchers = [types.FileSystemWatcher(glob_pattern=glob) for glob in GLOBS]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
    return types.Registration("nm-watched-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def did_change(server: NmServer, params: Any) -> None:
    """`workspace/didChangeWatchedFiles`: each path goes to the folder that owns it."""
    changed: dict[HostPort, list[str]] = {}
    settings_changed = False
    events = params.get("changes") if isinstance(params, dict) else None
    for event in events if isinstance(events, list) else ():
        uri = event.get("uri") if isinstance(event, dict) else None
        path = path_of_uri(uri) if isinstance(uri, str) else None
        owner = server.roots.owner(path) if path is not None else None
        if owner is None:
            continue
        root, relative = owner
        if f"/{relative}".endswith(_CONFIG_SUFFIX):
            settings_changed = True
            continue
        host = root.ready_host()
        if host is not None and relative and ".git" not in relative.split("/"):
            changed.setdefault(host, []).append(relative)
            server.surface.feed.files_changed(root)
    for host, paths in changed.items():
        host.files_changed(paths)
    if settings_changed:
        server.reconfigure()
