"""Exit codes and the one place where errors become them. Scripts may rely on these numbers."""

from __future__ import annotations

from enum import IntEnum

from nm_lsp.base.errors import Cancelled, Conflict, EnvironmentProblem, NmError, Refused, UserError


class Exit(IntEnum):
    OK = 0
    NOTHING = 1  # nothing found, or a check that failed
    USAGE = 2  # typer's own number for a wrong command line
    NOT_ACTIVE = 3  # a governing decision is not ACTIVE
    ENVIRONMENT = 4  # git, weights, disk, permissions
    REFUSED = 5  # well-formed, but not in the present state
    INTERNAL = 70  # a bug of ours
    CANCELLED = 130  # Ctrl-C
    READER_GONE = 141  # whoever read our output closed it


# Printed below every `--help`. \b keeps the lines as they are.
LEGEND = """\b
Exit codes: 0 done, 1 nothing found or a check failed, 2 wrong usage or value,
3 a governing decision is not active, 4 a problem of the machine (the message
says what repairs it), 5 refused in the present state, 70 internal error,
130 cancelled, 141 the reader of the output went away."""


def exit_code(error: NmError) -> Exit:
    match error:
        case Refused() | Conflict():
            return Exit.REFUSED
        case UserError():
            return Exit.USAGE
        case EnvironmentProblem():
            return Exit.ENVIRONMENT
        case Cancelled():
            return Exit.CANCELLED
        case _:
            return Exit.INTERNAL
