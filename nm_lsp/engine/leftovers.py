"""What processes that were killed left behind in the user's folders; a process that runs keeps its own."""

from __future__ import annotations

import socket
from pathlib import Path

import psutil

from nm_lsp.storage.locations import cache_root, token_files


def dead_tokens() -> list[Path]:
    """Files with the tokens of servers that no longer listen."""
    return [path for path in token_files() if not _listens(path)]


def _listens(path: Path) -> bool:
    port = path.stem.rpartition("-")[2]
    for address in ("127.0.0.1", "::1"):
        try:
            with socket.create_connection((address, int(port)), timeout=0.5):
                return True
        except (OSError, ValueError, OverflowError):
            continue
    return False


def dead_pages() -> list[Path]:
    """Folders of pages whose process is no more, of all workspaces."""
    pages = cache_root() / "pages"
    groups = [path for path in pages.iterdir() if path.is_dir()] if pages.is_dir() else []
    return [path for group in groups for path in dead_pages_of(group)]


def dead_pages_of(group: Path) -> list[Path]:
    """Folders of pages of one workspace whose process is no more; their names begin with its id."""
    return [path for path in group.iterdir() if not _runs(path.name.partition("-")[0])] if group.is_dir() else []


def _runs(pid: str) -> bool:
    return pid.isdecimal() and psutil.pid_exists(int(pid))
