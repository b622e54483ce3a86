"""Programs for which permissions count, also where the tests run as root."""

from __future__ import annotations

import os
import shutil

_CAPABILITIES = "-dac_override,-dac_read_search"


def needs_setpriv() -> bool:
    """Whether nothing here can take the privileges of root away."""
    return os.geteuid() == 0 and shutil.which("setpriv") is None


def unprivileged(command: list[str]) -> list[str]:
    """`command`, without root's right to read and write whatever it likes; its children lack it too."""
    if os.geteuid() != 0:
        return command
    return ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}", *command]
