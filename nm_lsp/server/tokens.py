"""The token that TCP and WebSocket clients must show: new in each process, in a file that only the user can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from nm_lsp.base.errors import EnvironmentProblem
from nm_lsp.storage.locations import token_file, token_folder


def new_token() -> str:
    """256 random bits as text."""
    return secrets.token_urlsafe(32)


def write_token(token: str, port: int, folder: Path | None = None) -> Path:
    """Keep `token` in `server-<port>.token`, mode 0600 from the start. Raises `EnvironmentProblem`."""
    target = token_file(folder or token_folder(), port)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Created anew: an old file, or a link somebody put there, is not written through.
        target.unlink(missing_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token + "\n")
    except OSError as error:
        raise EnvironmentProblem(f"The token cannot be written to {target}: {error.strerror}.") from error
    return target
