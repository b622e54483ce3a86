"""The child process: `python -m nm_lsp.worker`. Messages come in on stdin and go out on what was stdout.

It ends when its input does, at once and whatever it is doing: everything on disk is replaced atomically.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading

import psutil

from nm_lsp.worker.channel import Channel
from nm_lsp.worker.child import Child


def main() -> None:
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    # Whatever prints, prints to stderr: the pipe carries frames only.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # Ctrl-C in a terminal reaches the whole group; the parent decides what it means, and its end is ours.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _lower_priority()
    channel = Channel(reader, writer)
    inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(channel, inbox), name="nm-inbox", daemon=True).start()

    def send(message: object) -> None:
        try:
            channel.send(message)
        except OSError:
            # Nobody reads any more: the parent was killed, and its end of our input follows.
            os._exit(0)

    Child(inbox, send).run()


def _listen(channel: Channel, inbox: queue.SimpleQueue[object]) -> None:
    while (message := channel.receive()) is not None:
        inbox.put(message)
    os._exit(0)


def _lower_priority() -> None:
    process = psutil.Process()
    try:
        process.nice(getattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", 10))
    except (psutil.Error, OSError):
        # A process may be forbidden to lower itself; it then competes as an equal.
        return


if __name__ == "__main__":
    main()
