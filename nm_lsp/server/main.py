"""Entry points: one function per transport. Each runs until its clients are gone and then ends the process.

`python -m nm_lsp.server.main` serves standard input and output.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import BinaryIO, NoReturn

from nm_lsp import __version__
from nm_lsp.base.errors import EnvironmentProblem
from nm_lsp.server.backend import Backend, WorkspaceFactory, engine_workspace
from nm_lsp.server.connection import NmServer
from nm_lsp.server.liveness import watch_ancestor
from nm_lsp.server.logs import set_up_logging
from nm_lsp.server.sockets import TcpListener, WebSocketListener
from nm_lsp.server.stdio import StreamOutlet, StreamReader, claim_streams
from nm_lsp.server.tokens import new_token, write_token

FLUSH_S = 1.0
"""How long the last answers may take to reach a slow client once the server is done."""

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0005


def serve_stdio(factory: WorkspaceFactory = engine_workspace) -> NoReturn:
    """Serve one client on standard input and output. Exit code 0 after `shutdown`, 1 after any other end."""
    reader, writer = claim_streams()
    _be_responsive()
    _leave(asyncio.run(_stdio(reader, writer, factory)))


def serve_tcp(host: str, port: int, factory: WorkspaceFactory = engine_workspace) -> NoReturn:
    """Serve any number of clients on a loopback address until SIGTERM or SIGINT. Port 0 takes a free one.

    Raises `InvalidInput` for an address that is not of this machine, `EnvironmentProblem` if the port is taken or the
    token cannot be kept.
    """
    _be_responsive()
    _leave(asyncio.run(_listen(TcpListener, "tcp", host, port, factory)))


def serve_ws(host: str, port: int, factory: WorkspaceFactory = engine_workspace) -> NoReturn:
    """The same as `serve_tcp`, over WebSocket."""
    _be_responsive()
    _leave(asyncio.run(_listen(WebSocketListener, "ws", host, port, factory)))


def _be_responsive() -> None:
    set_up_logging()
    # A request passes through several threads. While another one imports the engine or lays out a new index, each of
    # these steps waits for the interpreter for as long as this.
    sys.setswitchinterval(SWITCH_INTERVAL_S)


async def _stdio(reader: BinaryIO, writer: BinaryIO, factory: WorkspaceFactory) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    end = partial(_settle, ended)

    def end_from_thread() -> None:
        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(end, 1)

    _on_signals(loop, lambda: end(1))
    backend = Backend(loop, factory)
    outlet = StreamOutlet(writer, end_from_thread)
    server = NmServer(
        backend, outlet, end, version=__version__, watch_client=lambda pid: watch_ancestor(pid, end_from_thread)
    )
    StreamReader(reader, loop, server.protocol.receive, lambda: end(0 if server.is_shut_down else 1)).start()
    code = await ended
    server.close()
    await asyncio.to_thread(backend.close)
    outlet.close()
    await asyncio.to_thread(outlet.join, FLUSH_S)
    return code


async def _listen(
    listener_class: type[TcpListener | WebSocketListener], scheme: str, host: str, port: int, factory: WorkspaceFactory
) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    _on_signals(loop, lambda: _settle(ended, 0))
    backend = Backend(loop, factory)
    token = new_token()
    listener = listener_class(backend, partial(NmServer, version=__version__), token)
    try:
        address, bound = await listener.start(host, port)
    except OSError as error:
        raise EnvironmentProblem(f"Cannot listen on {host}:{port}: {error.strerror or error}.") from error
    kept = write_token(token, bound)
    # The one thing a person needs to connect; the file is for programs.
    sys.stderr.write(f"nm-lsp listens on {scheme}://{address}:{bound}\ntoken: {token}\ntoken file: {kept}\n")
    sys.stderr.flush()
    try:
        code = await ended
    finally:
        kept.unlink(missing_ok=True)
        await listener.close()
        await asyncio.to_thread(backend.close)
    return code


def _settle(ended: asyncio.Future[int], code: int) -> None:
    if not ended.done():
        ended.set_result(code)


def _on_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, call)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))


def _leave(code: int) -> NoReturn:
    """End the process now. All stores are closed; a thread still inside a cancelled search is not waited for."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve_stdio()
