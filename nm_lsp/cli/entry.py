"""The console script. `guard` starts here without what the other commands need, since agents wait for it at each edit.

Everything else, and every command line of `guard` that is not plain, goes on to `main`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

_PLAIN = {"--json": "as_json", "--quiet": "quiet", "-q": "quiet", "--hook": "hook", "--ask": "ask_person"}


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, or `arguments` instead of it. Ends with a code of `exits.Exit`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    plain = _plain_guard(given)
    if plain is None:
        # Imported here because typer and the commands cost as much as the whole answer of `guard`.
        from nm_lsp.cli.main import run as run_main

        run_main(given)
    paths, flags = plain
    # A process of a tenth of a second needs no collection of garbage.
    gc.disable()
    from nm_lsp.cli.guarding import guard_command

    sys.exit(guard_command(paths, **flags))


def _plain_guard(given: Sequence[str]) -> tuple[list[str], dict[str, bool]] | None:
    """The paths and flags of a command line of `guard`; None for any other, and where help or an error is due."""
    if not given or given[0] != "guard":
        return None
    paths: list[str] = []
    flags: dict[str, bool] = {}
    for at, word in enumerate(given[1:], 1):
        if word == "--":
            paths += given[at + 1 :]
            break
        if word in _PLAIN:
            flags[_PLAIN[word]] = True
        elif word.startswith("-"):
            return None
        else:
            paths.append(word)
    return (paths, flags) if paths or "hook" in flags else None
