"""Watches the client's process, for clients that die without closing their end of the pipe.

Only a process among our own ancestors is believed: clients in containers, in WSL or behind ssh send ids that mean
another process here, or none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

POLL_S = 1.0

_PARENT_AT_START = os.getppid()


def watch_ancestor(pid: int, on_gone: Callable[[], None]) -> None:
    """Call `on_gone` from a thread once ancestor `pid` has ended; never, if it is no ancestor of ours."""
    threading.Thread(target=_watch, args=(pid, on_gone), name="nm-liveness", daemon=True).start()


def _watch(pid: int, on_gone: Callable[[], None]) -> None:
    # Imported late: `initialize` is answered before psutil is loaded.
    import psutil

    try:
        ancestor = next((parent for parent in psutil.Process().parents() if parent.pid == pid), None)
    except psutil.Error:  # one of them ended while we looked
        ancestor = None
    if ancestor is None:
        if pid == _PARENT_AT_START:
            on_gone()  # it died before we came to look
        return
    pause = threading.Event()
    while _lives(ancestor, psutil.STATUS_ZOMBIE, psutil.Error):
        pause.wait(POLL_S)
    on_gone()


def _lives(process: object, zombie: str, error: type[Exception]) -> bool:
    try:
        # `is_running` compares the start time too, so a process that got the number later is not taken for the client.
        return bool(process.is_running() and process.status() != zombie)  # type: ignore[attr-defined]
    except error:
        return False
