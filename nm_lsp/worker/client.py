"""The parent's end: starts the child, sends it work, hands its messages on, starts it again when it dies."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable

from nm_lsp.worker.channel import Channel
from nm_lsp.worker.messages import ToChild, ToParent
from nm_lsp.worker.spawn import take_child

RESTARTS = 3
"""Deaths within `RESTART_WINDOW_S` after which the child is given up."""
RESTART_WINDOW_S = 60.0


class WorkerClient:
    """One child. Callbacks arrive on a thread of this object, one at a time, and must not block for long."""

    def __init__(
        self,
        on_message: Callable[[ToParent], None],
        on_restart: Callable[[], None],
        on_death: Callable[[str], None],
    ) -> None:
        """`on_restart`: a new child is there and knows nothing yet. `on_death`: it died too often; says why."""
        self._on_message = on_message
        self._on_restart = on_restart
        self._on_death = on_death
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._closed = False
        self._deaths: list[float] = []

    def send(self, message: ToChild) -> bool:
        """Starts the child at first use. False where there is no child any more or it is just dying."""
        with self._lock:
            if self._closed:
                return False
            if self._channel is None:
                self._start()
            channel = self._channel
        assert channel is not None
        try:
            channel.send(message)
        except (OSError, ValueError):
            return False
        return True

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    def close(self, timeout_s: float = 0.4) -> None:
        """End the child: by the end of its input, and by force where that takes longer than `timeout_s`."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if process.stdin:
                process.stdin.close()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        process = take_child()
        assert process.stdin is not None
        assert process.stdout is not None
        channel = Channel(process.stdout, process.stdin)
        self._process, self._channel = process, channel
        threading.Thread(target=self._listen, args=(process, channel), name="nm-worker", daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        while (message := channel.receive()) is not None:
            self._on_message(message)
        code = process.wait()
        with self._lock:
            if self._closed:
                return
            now = time.monotonic()
            self._deaths = [at for at in self._deaths if now - at < RESTART_WINDOW_S] + [now]
            given_up = len(self._deaths) > RESTARTS
            if given_up:
                self._closed = True
            else:
                self._start()
        if given_up:
            self._on_death(f"the indexing process ended {len(self._deaths)} times in a row (exit code {code})")
        else:
            self._on_restart()
