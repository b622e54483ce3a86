"""A long-lived `git cat-file --batch`: the bytes of many blobs for the price of one process.

Guarantees: at most one child at a time; it is started when first needed, ended by `close`, at a time-out and with the
reader; a blob that is not here is None and never fetched. Safe to use from several threads.

Must not know: paths, commits.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.git.process import Git, end

_ID: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

_MAX_HEAD: Final = 4_096


class BlobReader:
    """Reads blobs by their ids. A context manager."""

    __slots__ = ("_child", "_git", "_lock")

    def __init__(self, git: Git) -> None:
        self._git = git
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> BlobReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        child = getattr(self, "_child", None)
        if child is not None:
            end(child)

    def close(self) -> None:
        """End the child; the next read starts another."""
        with self._lock:
            self._end()

    def read(self, blob: str) -> bytes | None:
        """The bytes of `blob`; None if the repository does not hold it or it is no blob. Raises `GitUnavailable`."""
        if not _ID.match(blob):
            return None
        with self._lock:
            answer = self._ask(blob)
            if answer is None:
                # Versions of git that know no GIT_NO_LAZY_FETCH die at a blob a partial clone left out, since every
                # transport is forbidden; a fresh child that dies at once too says the same as "missing".
                answer = self._ask(blob)
            return answer[0] if answer else None

    def _ask(self, blob: str) -> tuple[bytes | None] | None:
        """The answer in a 1-tuple, None if the child died over the question."""
        if self._child is None or self._child.poll() is not None:
            self._end()
            self._child = self._git.start("cat-file", "--batch", takes_input=True)
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            child.kill()

        timer = threading.Timer(self._git.timeout_s, expire)
        timer.daemon = True
        timer.start()
        try:
            child.stdin.write(blob.encode("ascii") + b"\n")
            child.stdin.flush()
            head = child.stdout.readline(_MAX_HEAD).split()
            if len(head) == 2 and head[1] in (b"missing", b"ambiguous"):
                return (None,)
            if len(head) != 3 or not head[2].isdigit():
                self._died(expired)
                return None
            size = int(head[2])
            body = child.stdout.read(size + 1)
            if len(body) != size + 1:
                self._died(expired)
                return None
            return (body[:-1] if head[1] == b"blob" else None,)
        except OSError:
            self._died(expired)
            return None
        finally:
            timer.cancel()

    def _died(self, expired: threading.Event) -> None:
        self._end()
        if expired.is_set():
            raise GitUnavailable(f"git cat-file did not answer within {self._git.timeout_s:g} seconds.")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            end(child)


def present(git: Git, objects: Sequence[str]) -> set[str]:
    """Those of `objects` (full ids) that the repository holds."""
    known = [identity for identity in objects if _ID.match(identity)]
    if not known:
        return set()
    lines = git.run("cat-file", "--batch-check", stdin="".join(f"{identity}\n" for identity in known).encode())
    rows = (line.split() for line in lines.decode("ascii", "replace").splitlines())
    return {row[0] for row in rows if len(row) == 3}
