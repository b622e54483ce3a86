"""What passes between us and one run of git, within limits of time and size.

`subprocess.Popen.communicate` keeps whatever comes; a program that is no git and prints without end would take all
memory before its time is up.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from typing import Final

MAX_OUTPUT: Final = 256 << 20
"""Bytes. The names of a million files are a third of it."""
_CHUNK: Final = 1 << 16


class TooMuch(Exception):
    """More than `MAX_OUTPUT` was printed."""


def exchange(child: subprocess.Popen[bytes], stdin: bytes | None, timeout_s: float) -> tuple[bytes, bytes]:
    """Send `stdin`, take what is printed until the end: (standard output, standard error, empty where not piped).

    The child may run on afterwards where this raises: `subprocess.TimeoutExpired`, or `TooMuch` (not on Windows, where
    pipes cannot be waited for).
    """
    if sys.platform == "win32":
        output, complaint = child.communicate(stdin, timeout=timeout_s)
        return output or b"", complaint or b""
    deadline = time.monotonic() + timeout_s
    output, complaint = bytearray(), bytearray()
    unsent = memoryview(stdin or b"")
    with selectors.DefaultSelector() as selector:
        for pipe, told in ((child.stdout, output), (child.stderr, complaint)):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, (pipe, told))
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE, (child.stdin, None))
        while selector.get_map():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(child.args, timeout_s)
            for key, _ in selector.select(left_s):
                pipe, told = key.data
                if told is None:
                    unsent = _send(key.fd, unsent)
                    is_over = not unsent
                else:
                    chunk = os.read(key.fd, _CHUNK)
                    told += chunk
                    if len(told) > MAX_OUTPUT:
                        raise TooMuch
                    is_over = not chunk
                if is_over:
                    selector.unregister(pipe)
                    pipe.close()
    child.wait(max(0.0, deadline - time.monotonic()))
    return bytes(output), bytes(complaint)


def _send(pipe: int, unsent: memoryview) -> memoryview:
    try:
        return unsent[os.write(pipe, unsent[:_CHUNK]) :]
    except BrokenPipeError:
        # It has read what it wanted; what it makes of it is told by its exit status.
        return unsent[:0]
