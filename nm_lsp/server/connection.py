"""One client: its profile, its folders, its documents, and the server object that pygls needs for them.

Several connections of one process have an `NmServer` each and share a `Backend`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from lsprotocol import converters, types
from pygls.lsp.server import LanguageServer

from nm_lsp.base.errors import Refused
from nm_lsp.engine.requests import HostEvent, Notice
from nm_lsp.engine.settings import SettingProblem
from nm_lsp.server import dispatch, lifecycle
from nm_lsp.server.backend import Backend, HostPort
from nm_lsp.server.client import ClientProfile, read_profile
from nm_lsp.server.documents import Documents
from nm_lsp.server.features import (
    code_action,
    code_lens,
    document_link,
    file_operations,
    hover,
    workspace_symbol,
)
from nm_lsp.server.features.surface import Surface
from nm_lsp.server.progress import EventReporter
from nm_lsp.server.protocol import NmProtocol, Outlet, RawJson
from nm_lsp.server.roots import Root, Roots

log = logging.getLogger(__name__)

ASK_TIMEOUT_S = 30.0
"""How long a request of ours to the client may take before we go on without its answer."""


FEATURES = (
    dispatch,
    lifecycle,
    hover,
    code_action,
    code_lens,
    document_link,
    workspace_symbol,
    file_operations,
)
"""One file per feature; each has `register(server)`, which names the methods it answers."""


class NmServer(LanguageServer):
    """`on_end(code)` is called once, when the client ends the connection. `token` must come with `initialize`.

    `watch_client(pid)` is called with the client's process id where this connection ends with that process.
    """

    protocol: NmProtocol

    def __init__(
        self,
        backend: Backend,
        outlet: Outlet,
        on_end: Callable[[int], None],
        *,
        version: str,
        token: str | None = None,
        watch_client: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__("nm_lsp", version, protocol_cls=NmProtocol, converter_factory=converters.get_converter)
        self.backend = backend
        self.protocol.outlet = outlet
        self.client: ClientProfile = read_profile(types.InitializeParams(capabilities=types.ClientCapabilities()))
        self.roots = Roots(backend, self._folder_ready, self._folder_refused)
        self.documents = Documents(backend, self.roots)
        self.reporter = EventReporter(self)
        self.surface = Surface(self)
        self.client_settings: Any = None
        self.started = False
        self._on_end = on_end
        self._token = token
        self.watch_client = watch_client
        self.is_shut_down = False
        self._start_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        backend.subscribe(self._hear)
        self.documents.listener = self.surface.document_changed
        for feature in FEATURES:
            feature.register(self)

    # -- called by the protocol -----------------------------------------------------------------------------------

    def admit(self, message: dict[str, Any]) -> bool:
        """Whether the connection may speak: it must show the token with its first message, or is closed."""
        if self._token is None:
            return True
        params = message.get("params")
        options = params.get("initializationOptions") if isinstance(params, dict) else None
        shown = options.get("token") if isinstance(options, dict) else None
        if (
            message.get("method") == types.INITIALIZE
            and isinstance(shown, str)
            and hmac.compare_digest(shown.encode("utf-8", "replace"), self._token.encode())
        ):
            self._token = None
            return True
        self.end(1)
        return False

    def initialize(self, params: types.InitializeParams) -> types.ServerCapabilities:
        return lifecycle.initialize(self, params)

    async def execute_command(self, params: Any) -> RawJson:
        return await dispatch.execute_command(self, params)

    def shut_down(self) -> None:
        """`shutdown`: nothing more will be asked, so what is open can be let go while the client says `exit`."""
        self.is_shut_down = True
        self.reporter.stop()
        self.surface.close()
        self._release()

    def end(self, code: int) -> None:
        on_end, self._on_end = self._on_end, _nothing
        on_end(code)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors are logged; the user can do nothing about them and gets no pop-up."""
        log.error("%s: %s", getattr(source, "__name__", source), error)

    # -- for the features -----------------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the requests; its failure is logged, the end of the connection cancels it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_done)

    def _spawned_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("A background task failed", exc_info=error)

    async def ask(self, method: str, params: Any, timeout_s: float | None = None) -> Any:
        """Send a request to the client. Raises `JsonRpcException` if it refuses, `TimeoutError` if it stays silent."""
        answer = asyncio.wrap_future(self.protocol.send_request(method, params))
        return await asyncio.wait_for(answer, ASK_TIMEOUT_S if timeout_s is None else timeout_s)

    def start_within(self, delay_s: float) -> None:
        self._start_timer = asyncio.get_running_loop().call_later(delay_s, self.start)

    def start(self) -> None:
        """Start the engine with the settings known by now and open the folders. Only the first call counts."""
        if self._start_timer is not None:
            self._start_timer.cancel()
        if self.started:
            return
        self.started = True
        # A client without settings of its own does not undo those of another.
        if self.client_settings is not None or not self.backend.is_configured:
            self.reconfigure()
        for root in self.roots.all:
            self.roots.open(root)

    def reconfigure(self) -> None:
        """Read all settings anew: the client's, as known, and the first folder's file."""
        first = Path(self.roots.all[0].path) if self.roots.all else None
        self.backend.configure(self.client_settings, first, self._tell_problems)
        self.surface.settings_changed()

    def _hear(self, event: HostEvent) -> None:
        self.reporter.handle(event)
        self.surface.handle(event)

    def _tell_problems(self, problems: tuple[SettingProblem, ...]) -> None:
        for problem in problems:
            self.reporter.notice(Notice("warning", str(problem)))

    def _folder_ready(self, root: Root, host: HostPort) -> None:
        self.documents.folder_ready(root, host)
        if self.client.wants("event"):
            host.tell_events()
        self.surface.folder_ready(root, host)

    def _folder_refused(self, refusal: Refused) -> None:
        self.reporter.notice(Notice("info", str(refusal)))

    # -- end --------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The connection is gone: cancel what it asked for and let go of its folders and documents."""
        self.protocol.cancel_all()
        self.surface.close()
        self._release()
        self.backend.unsubscribe(self._hear)

    def _release(self) -> None:
        self.started = True  # nothing is started any more
        if self._start_timer is not None:
            # The loop would keep this object until then.
            self._start_timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        self.documents.clear()
        self.roots.clear()


def _nothing(_code: int) -> None:
    """Takes the place of `on_end` once it was called."""
