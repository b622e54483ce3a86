"""The server with its real engine on standard input and output, by a clock that the test moves.

`python clocked_server.py FILE`: eight bytes of FILE hold the time in Unix seconds, as a double; it stands still until
the test moves it. Only the associative brain learns and forgets by it; everything else runs in real time.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path

LOOK_S = 0.02
"""How often the server looks whether a batch is over: a moved clock is to be seen at once."""


class MovedClock:
    """The test's end: `command` starts a server by this clock, `advance` moves it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.now = time.time()
        self.advance(0.0)

    @property
    def command(self) -> list[str]:
        return [sys.executable, __file__, str(self._file)]

    def advance(self, seconds: float) -> None:
        self.now += seconds
        # Written in place: the server has the file mapped.
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", self.now))


def main() -> None:
    from nm_lsp.engine import workspace
    from nm_lsp.server.main import serve_stdio

    with Path(sys.argv[1]).open("rb") as file:
        now = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    workspace.LEARN_S = LOOK_S

    def clock() -> float:
        return float(struct.unpack("d", now[:8])[0])

    serve_stdio(lambda settings, listener: workspace.Workspace(settings, listener, clock))


if __name__ == "__main__":
    main()
