"""All opened folders of one process, and the child that works for them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nm_lsp.base.errors import NmError
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.host import Host
from nm_lsp.engine.memory.keeper import MemoryKeepers
from nm_lsp.engine.query_embedding import QueryEmbedder
from nm_lsp.engine.requests import HostEvent, Notice
from nm_lsp.engine.settings import Settings, read_environment
from nm_lsp.worker.client import WorkerClient
from nm_lsp.worker.messages import Analysed, SegmentBuilt, ToParent

log = logging.getLogger(__name__)

FOLLOW_S = 0.5
"""How often a folder whose index another process writes is looked at."""
LEARN_S = 0.5
"""How often it is looked whether a batch of edits is over; costs a few `stat` calls."""
HEADS_S = 2.0
"""How often the files that say where HEAD is are looked at, one `stat` each."""


class Workspace:
    """Thread-safe. `listener` is called from threads of the engine."""

    def __init__(
        self, settings: Settings, listener: Callable[[HostEvent], None], clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` is Unix time in seconds, by which the associative brain learns and forgets."""
        self._settings = settings
        self._listener = listener
        self._worker = WorkerClient(self._receive, self._restarted, self._gave_up)
        self._embedder = QueryEmbedder(enabled=settings.model.enabled)
        self._repositories = Repositories()
        self._memories = MemoryKeepers(clock, event_log=read_environment(os.environ).event_log)
        self._lock = threading.Lock()
        self._hosts: dict[int, Host] = {}
        self._next_key = 1
        self._ended = threading.Event()
        self._nudged = threading.Event()
        self._told: dict[tuple[Path, str], str] = {}
        threads = ((self._follow, "nm-follow"), (self._watch_heads, "nm-heads"), (self._learn, "nm-learn"))
        for target, name in threads:
            threading.Thread(target=target, name=name, daemon=True).start()

    @property
    def hosts(self) -> tuple[Host, ...]:
        return tuple(self._hosts.values())

    def add_folder(self, folder: Path) -> Host:
        """Open a folder; the same folder, however spelt, is opened once. Returns before anything is indexed."""
        real = folder.resolve()
        with self._lock:
            for host in self._hosts.values():
                if host.folder == real:
                    return host
            key = self._next_key
            self._next_key += 1
            host = Host(
                key,
                real,
                self._settings,
                self._worker.send,
                self._embedder,
                self._listener,
                self._repositories,
                self._memories,
                use_keyword=read_environment(os.environ).bm25,
            )
            self._hosts = {**self._hosts, key: host}
        self._nudged.set()
        host.refresh()
        host.start()
        return host

    def remove_folder(self, folder: Path) -> None:
        real = folder.resolve()
        with self._lock:
            host = next((host for host in self._hosts.values() if host.folder == real), None)
            if host is None:
                return
            self._hosts = {key: other for key, other in self._hosts.items() if other is not host}
        host.close()

    def configure(self, settings: Settings) -> None:
        self._settings = settings
        self._embedder.configure(enabled=settings.model.enabled)
        for host in self.hosts:
            host.configure(settings)

    def close(self) -> None:
        self._ended.set()
        self._nudged.set()
        for host in self.hosts:
            host.close()
        self._memories.close()
        self._repositories.close()
        self._worker.close()

    # -- the child --------------------------------------------------------------------------------------------------

    def _receive(self, message: ToParent) -> None:
        if isinstance(message, Analysed):
            for host in self.hosts:
                host.receive(message)
        elif not isinstance(message, SegmentBuilt):
            owner = self._hosts.get(message.key)
            if owner is not None:
                owner.receive(message)

    def _restarted(self) -> None:
        for host in self.hosts:
            host.start()

    def _gave_up(self, reason: str) -> None:
        for host in self.hosts:
            host.give_up(reason)
        self._listener(
            Notice("error", f"The index is no longer kept up to date: {reason}.", None, "Restart the language server.")
        )

    def _follow(self) -> None:
        while not self._ended.wait(FOLLOW_S):
            self._for_each(Host.refresh, "The index was not looked at")

    def _learn(self) -> None:
        """Batches of edits are closed and learned, apart from everything that somebody waits for."""
        while not self._ended.wait(LEARN_S):
            self._for_each(lambda host: host.memory.tick(), "Nothing was learned just now")

    def _watch_heads(self) -> None:
        """Decisions are looked at again when a HEAD moves, without any event from a client."""
        while True:
            self._for_each(Host.watch_decisions, "Decisions were not looked at")
            if self._nudged.wait(HEADS_S):
                self._nudged.clear()
            if self._ended.is_set():
                return

    def _for_each(self, work: Callable[[Host], object], failure: str) -> None:
        """Do `work` for every folder. No other thread does it: what goes wrong in one folder, whatever it is, is told
        once and tried again the next time."""
        for host in self.hosts:
            key = host.folder, failure
            try:
                work(host)
                self._told.pop(key, None)
            except Exception as error:
                told, self._told[key] = self._told.get(key), repr(error)
                if isinstance(error, NmError):
                    log.info("%s: %s", failure, error)
                elif told != repr(error):
                    log.exception("%s in %s", failure, host.folder)
