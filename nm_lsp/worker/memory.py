"""Giving memory back after a large build: the child lives as long as the editor, its build lasts seconds."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import platform
from collections.abc import Iterator

from nm_lsp.search.tokens import forget_words


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """For parsing: it makes millions of objects and no cycles, and looking for them would cost a third of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def release_memory() -> None:
    """Drop what can be made again, collect cycles, return free pages."""
    forget_words()
    gc.collect()
    if platform.system() == "Linux":
        # glibc keeps freed pages for itself; other C libraries have no such call and no such habit.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
