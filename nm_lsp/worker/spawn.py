"""Starting the child. It may be started ahead of its client: its imports then run beside those of the parent.

Imports nothing heavy, so that it can be called before anything heavy is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

# For glibc's allocator; others know no such names. By default it learns from the first large array that is freed to
# keep such memory, in as many pools as there were threads: on Django 150 MB that a child at rest did not use. What is
# smaller than the threshold (the model's intermediate results) is still taken from what is kept.
_ALLOCATOR = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(32 << 20),
}
_lock = threading.Lock()
_spare: list[subprocess.Popen[bytes]] = []


def spawn_ahead() -> None:
    """Start a child now for the first client that will want one. It ends with this process if nobody does."""
    with _lock:
        if not _spare:
            _spare.append(_spawn())


def take_child() -> subprocess.Popen[bytes]:
    """A running child with pipes: the one that was started ahead, else a new one."""
    with _lock:
        child = _spare.pop() if _spare else None
    return child if child is not None and child.poll() is None else _spawn()


def _spawn() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: a `numpy.py` in the folder that happens to be the current one must not be run.
        [sys.executable, "-P", "-m", "nm_lsp.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        env={**_ALLOCATOR, **os.environ, "PYTHONUNBUFFERED": "1"},
    )
