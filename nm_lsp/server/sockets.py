"""TCP and WebSocket: several clients at once, on loopback only, each with the token.

Every connection has a server object of its own; they share the backend. A connection that ends closes nothing but
itself; the process ends on SIGTERM or SIGINT.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nm_lsp.base.errors import InvalidInput
from nm_lsp.server.backend import Backend
from nm_lsp.server.connection import NmServer
from nm_lsp.server.framing import FrameParser, FramingError, frame

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response

log = logging.getLogger(__name__)

_READ_BYTES = 1 << 16
_MAX_WS_BYTES = 64 * 1024 * 1024

ServerFactory = Callable[..., NmServer]


def loopback_address(host: str) -> str:
    """`host` as an address of this machine alone; raises `InvalidInput` for every other."""
    if host in {"", "localhost"}:
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        raise InvalidInput("host", f'"{host}" is no address of this machine.', hint="Use 127.0.0.1.") from None
    if not address.is_loopback:
        raise InvalidInput("host", f"{address} can be reached from outside.", hint="Use 127.0.0.1.")
    return str(address)


def _is_of_this_machine(origin: str | None, host: str | None) -> bool:
    """Whether a browser says that its page comes from this machine, by the address it used too (another site's name may
    lead here); programs that are no browser name no origin."""
    named = [urlsplit(f"//{host}").hostname] if host else []
    named += [urlsplit(origin).hostname] if origin is not None else []
    try:
        return all(loopback_address(name or "none") for name in named)
    except InvalidInput:
        return False


class SocketOutlet:
    """A TCP stream as an outlet. Writing only fills the buffer; the event loop empties it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def send(self, body: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame(body))

    def close(self) -> None:
        self._writer.close()


class TcpListener:
    """Serves every TCP client until closed."""

    def __init__(self, backend: Backend, make_server: ServerFactory, token: str) -> None:
        self._backend = backend
        self._make_server = make_server
        self._token = token
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address and the port."""
        address = loopback_address(host)
        self._listener = await asyncio.start_server(self._serve, address, port)
        return address, self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        outlet = SocketOutlet(writer)
        ended = asyncio.Event()
        server = self._make_server(self._backend, outlet, lambda _code: ended.set(), token=self._token)
        self._writers.add(writer)
        parser = FrameParser()
        try:
            while not ended.is_set():
                data = await reader.read(_READ_BYTES)
                if not data:
                    break
                for body in parser.feed(data):
                    server.protocol.receive(body)
                    if ended.is_set():
                        break
        except FramingError as error:
            log.warning("A client sent %s; closing it.", error)
        except OSError:
            log.info("A client's connection broke")
        finally:
            server.close()
            self._writers.discard(writer)
            writer.close()


class WebSocketOutlet:
    """A WebSocket as an outlet; messages go out in order, as text."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()

    def send(self, body: bytes) -> None:
        self._queue.put_nowait(body.decode())

    def close(self) -> None:
        self._queue.put_nowait(None)

    async def pump(self) -> None:
        """Send what is queued until closed."""
        from websockets.exceptions import ConnectionClosed

        try:
            while (text := await self._queue.get()) is not None:
                await self._socket.send(text)
        except ConnectionClosed:
            return


class WebSocketListener:
    """Serves every WebSocket client until closed. The token comes as `Authorization: Bearer` or with `initialize`."""

    def __init__(self, backend: Backend, make_server: ServerFactory, token: str) -> None:
        self._backend = backend
        self._make_server = make_server
        self._token = token
        self._listener: Server | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address and the port."""
        # Imported late: only this transport needs it.
        from websockets.asyncio.server import serve

        address = loopback_address(host)
        self._listener = await serve(self._serve, address, port, process_request=self._check, max_size=_MAX_WS_BYTES)
        return address, next(iter(self._listener.sockets)).getsockname()[1]

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        """A page of another site and a wrong header are refused at once; without one the first message must hold the
        token."""
        if not _is_of_this_machine(request.headers.get("Origin"), request.headers.get("Host")):
            return connection.respond(HTTPStatus.FORBIDDEN, "Pages of other sites may not connect.\n")
        shown = request.headers.get("Authorization")
        if shown is None or self._is_token(shown):
            return None
        return connection.respond(HTTPStatus.UNAUTHORIZED, "The token is wrong.\n")

    def _is_token(self, header: str) -> bool:
        return hmac.compare_digest(header.encode("utf-8", "replace"), f"Bearer {self._token}".encode())

    async def _serve(self, socket: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        has_header = socket.request is not None and "Authorization" in socket.request.headers
        outlet = WebSocketOutlet(socket)
        ended = asyncio.Event()
        token = None if has_header else self._token
        server = self._make_server(self._backend, outlet, lambda _code: ended.set(), token=token)
        pump = asyncio.create_task(outlet.pump())
        try:
            while not ended.is_set():
                server.protocol.receive(await socket.recv())
        except ConnectionClosed:
            log.debug("A client closed its WebSocket")
        finally:
            server.close()
            outlet.close()
            await pump
            await socket.close()
