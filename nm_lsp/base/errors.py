"""The one tree of errors. Faces map it: `server/` to JSON-RPC, `cli/` to exit codes, each in one place.

    NmError                     code            meant for
    ├── UserError               ...             whoever made the request: it can be corrected and sent again
    │   ├── InvalidInput        invalid-input   a field is missing, malformed or out of range
    │   ├── NotFound            not-found       an id, path, symbol or commit that names nothing
    │   ├── Refused             refused         well-formed, but not allowed in the present state
    │   └── Conflict            conflict        the caller saw an older revision; carries the current record
    ├── EnvironmentProblem      ...             the machine: a hint says what repairs it
    │   ├── GitUnavailable      git             git is missing, refuses or timed out
    │   ├── StoreProblem        store           a database is damaged, locked, newer, foreign or read-only
    │   └── ModelProblem        model           weights are missing, wrong or cannot be loaded
    ├── Cancelled               cancelled       the caller withdrew the request
    └── InternalError           internal        a broken invariant of ours; a bug

A broken source file of the user's is data, not an exception.
"""

from __future__ import annotations

from typing import ClassVar


class NmError(Exception):
    """An error with a stable `code`, a message for people and an optional `hint` that says what to do."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class UserError(NmError):
    """The request can be corrected by whoever made it."""


class InvalidInput(UserError):
    """`field` names the parameter that is wrong, as the caller spells it."""

    code = "invalid-input"

    def __init__(self, field: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{field}: {message}", hint=hint)
        self.field = field


class NotFound(UserError):
    code = "not-found"


class Refused(UserError):
    code = "refused"


class Conflict(UserError):
    """`current` is the record as it now stands, in plain data, for the caller to look at."""

    code = "conflict"

    def __init__(self, message: str, *, current: object = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.current = current


class EnvironmentProblem(NmError):
    """Something about the machine, not about the request."""


class GitUnavailable(EnvironmentProblem):
    code = "git"


class StoreProblem(EnvironmentProblem):
    """`reason` says which: damaged, lost, replaced, locked, newer, foreign, read-only, full, schema, index, link,
    unencrypted or io."""

    code = "store"

    def __init__(self, message: str, *, reason: str = "io", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class ModelProblem(EnvironmentProblem):
    code = "model"


class Cancelled(NmError):
    code = "cancelled"


class InternalError(NmError):
    code = "internal"
