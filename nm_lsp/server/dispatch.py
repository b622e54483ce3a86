"""Runs the commands of the table, each as `workspace/executeCommand` and as a request of its own.

Every call runs in a thread of the backend's executor and can be cancelled: before it starts it is never begun, after
that the engine sees its `Cancellation`. The result is turned into JSON text in the same thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.base.uris import path_of_uri
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.requests import Phase, Problem, Progress, StatusResult
from nm_lsp.server.backend import HostPort
from nm_lsp.server.features import asking
from nm_lsp.server.protocol import RawJson
from nm_lsp.server.roots import Root
from nm_lsp.wire.command import Command
from nm_lsp.wire.commands import BY_NAME, COMMANDS, METHOD_PREFIX
from nm_lsp.wire.decode import decode, describe, split_folder
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

_N_ITEMS_AT_ONCE = 500


def register(server: NmServer) -> None:
    """Make every row of the table a request of `server`."""
    for command in COMMANDS:
        _register(server, command)


def _register(server: NmServer, command: Command) -> None:
    async def handle(params: Any) -> RawJson:
        return await call(server, command, params)

    server.feature(METHOD_PREFIX + command.name)(handle)


def advertised(prefix: str) -> list[str]:
    """The names of all commands under the client's prefix."""
    return [f"{prefix}.{name}" for name in (*(command.name for command in COMMANDS), asking.COMMAND)]


async def execute_command(server: NmServer, params: Any) -> RawJson:
    """`workspace/executeCommand`: `{command, arguments?: [object]}`."""
    name = params.get("command") if isinstance(params, dict) else None
    if not isinstance(name, str):
        raise InvalidInput("command", f"expected a text, got {describe(name)}")
    prefix = server.client.command_prefix + "."
    command = BY_NAME.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
    if name == prefix + asking.COMMAND:
        folder, fields = split_folder(_only_argument(params.get("arguments")))
        root, fields = _choose_root(server, folder, fields)
        asking.run(server, root, fields)
        return RawJson("null")
    if command is None:
        raise InvalidInput("command", f'there is no command "{name[:80]}"')
    return await call(server, command, _only_argument(params.get("arguments")))


def _only_argument(arguments: Any) -> Any:
    if arguments is None or arguments == []:
        return None
    if not isinstance(arguments, list) or len(arguments) != 1:
        shown = f"{len(arguments)} of them" if isinstance(arguments, list) else describe(arguments)
        raise InvalidInput("arguments", f"expected exactly one object with named fields, got {shown}")
    return arguments[0]


async def call(server: NmServer, command: Command, data: Any) -> RawJson:
    """Run one command; raises `NmError` for the caller's mistakes, before anything is run."""
    folder, fields = split_folder(data)
    # Wrong parameters are reported as such whether or not a folder is open.
    decode(command.params, fields)
    if not server.roots.all and folder is None and command is BY_NAME["status"]:
        return RawJson(_dump(encode(_STATUS_WITHOUT_FOLDER, FolderPlaces(PurePath("/")))))
    root, fields = _choose_root(server, folder, fields)
    params: Any = decode(command.params, fields)
    if command is BY_NAME["status"] and is_refused(root):
        return RawJson(_dump({**encode(_refused_status(root), FolderPlaces(PurePath(root.path))), "folder": root.uri}))
    host = await asyncio.shield(root.host)
    cancel = Cancellation()
    work = server.backend.executor.submit(_run, server, root, host, command, params, cancel)
    try:
        return await asyncio.wrap_future(work)
    except asyncio.CancelledError:
        cancel.cancel()
        raise


def _run(server: NmServer, root: Root, host: HostPort, command: Command, params: Any, cancel: Cancellation) -> RawJson:
    cancel.check()
    result = command.call(host, params, cancel, Caller("lsp", server.client.name))
    cancel.check()
    return RawJson(_dump(encode(result, places_of(server, root, host))))


def places_of(server: NmServer, root: Root, host: HostPort) -> FolderPlaces:
    """The places of one answer about `root`, as this client spells and counts them. May read files: for threads."""
    return FolderPlaces(
        host.folder,
        server.client.encoding,
        folder_uri=root.uri,
        repository=host.repository_root,
        document_uri=lambda path: server.documents.uri_of(root, path),
        document_text=lambda path: server.documents.text_of(root, path),
    )


def _choose_root(server: NmServer, folder: str | None, fields: Any) -> tuple[Root, Any]:
    """The folder a call means, and its fields with an absolute `path` or URI made relative to it."""
    roots = server.roots
    if not roots.all:
        raise Refused("No folder is open.", hint="Open a folder first.")
    path = fields.get("path") if isinstance(fields, dict) else None
    absolute = _absolute(path) if isinstance(path, str) else None
    if absolute is not None:
        owner = roots.owner(absolute)
        if owner is None:
            raise InvalidInput("path", "lies outside every open folder")
        return owner[0], {**fields, "path": owner[1] or "."}
    if folder is not None:
        folder_path = path_of_uri(folder) or folder
        named = next((root for root in roots.all if folder_path.rstrip("/") in {root.path, root.real}), None)
        if named is None:
            raise NotFound(f"folder: {folder[:200]} is not open.", hint=_listing(roots.all))
        return named, fields
    if len(roots.all) > 1:
        raise InvalidInput("folder", "is needed, since several folders are open.", hint=_listing(roots.all))
    return roots.all[0], fields


def _absolute(path: str) -> str | None:
    if path.lower().startswith("file:"):
        return path_of_uri(path)
    return path if PurePath(path).is_absolute() else None


def _listing(roots: list[Root]) -> str:
    return "Open folders: " + ", ".join(root.uri for root in roots[:10]) + "."


def is_refused(root: Root) -> bool:
    """Whether the folder was turned down for good, so that its status is all there is to say."""
    return root.host.done() and not root.host.cancelled() and isinstance(root.host.exception(), Refused)


def _refused_status(root: Root) -> StatusResult:
    refusal = root.host.exception()
    assert isinstance(refusal, Refused)
    return _empty_status(Problem("not-indexed", refusal.message, refusal.hint))


def _empty_status(problem: Problem) -> StatusResult:
    return StatusResult(
        folder="",
        ready=True,
        phase=Phase.IDLE,
        progress=Progress(0, 0),
        vectors=Progress(0, 0),
        index_revision=0,
        files=0,
        symbols=0,
        n_skipped=0,
        skipped=(),
        decisions={},
        head=None,
        branch=None,
        is_index_writer=False,
        problems=(problem,),
    )


_STATUS_WITHOUT_FOLDER = _empty_status(Problem("no-folder", "No folder is open.", "Open a folder to index it."))


def _dump(value: Any) -> str:
    return "".join(_pieces(value, 0))


def _pieces(value: Any, depth: int) -> Iterator[str]:
    """JSON text in pieces. The encoder holds the interpreter's lock for a whole call, and a large graph takes half a
    second: so lists near the top are cut into slices, between which the event loop gets its turn."""
    if isinstance(value, dict) and depth < 3 and value:
        for index, (name, part) in enumerate(value.items()):
            yield ("," if index else "{") + json.dumps(str(name)) + ":"
            yield from _pieces(part, depth + 1)
        yield "}"
    elif isinstance(value, list) and len(value) > _N_ITEMS_AT_ONCE:
        for start in range(0, len(value), _N_ITEMS_AT_ONCE):
            yield ("," if start else "[") + json.dumps(value[start : start + _N_ITEMS_AT_ONCE], allow_nan=False)[1:-1]
        yield "]"
    else:
        # NaN has no JSON form: an error is better than a frame the client cannot read.
        yield json.dumps(value, allow_nan=False)
