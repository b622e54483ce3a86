"""Errors in the words of a command line: a field of the protocol becomes the option or argument that was typed.

One place for all commands. A field is found by the name of the command's parameter, which is nearly always its own;
`ALIASES` has the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from typer.core import TyperArgument, TyperCommand

from nm_lsp.base.errors import Cancelled, InvalidInput, NmError

ALIASES = {
    "query": ("question",),
    "id": ("identity", "symbol"),
    "confirm": ("yes",),
    "dir": ("to",),
    "all": ("every",),
    "symbol": ("path",),
    "commit": ("when",),
    "time": ("when",),
    "anchor": ("head",),
}
"""Fields whose parameter bears another name, and the names it has."""

_JSON = re.compile(r"`(\w+): [^`]*`")


class Command(TyperCommand):
    """A command that ends as others of this program do, with errors that name its own options."""

    def invoke(self, ctx: Any) -> Any:
        """Raises what the command raises, in its words, and `Cancelled` for a Ctrl-C that came as an exception."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Cancelled("the request was cancelled") from None
        except NmError as error:
            translate(error, self.name or "", self.params)
            raise


def translate(error: NmError, command: str, parameters: Sequence[Any]) -> None:
    """Rewrite message and hint of `error` for who typed `command`. What no parameter stands for stays as it is."""
    if isinstance(error, InvalidInput):
        shown = command if error.field == "set" else _shown(error.field.removeprefix("set."), parameters)
        if shown is not None:
            error.message = f"{shown}: {error.message.removeprefix(f'{error.field}: ')}"
    if error.hint is not None:
        error.hint = _JSON.sub(lambda found: _in_hint(found, parameters), error.hint)


def _in_hint(found: re.Match[str], parameters: Sequence[Any]) -> str:
    shown = _shown(found[1], parameters)
    return f"`{shown}`" if shown is not None else found[0]


def _shown(field: str, parameters: Sequence[Any]) -> str | None:
    """`--min-confidence` or `FILE` for the parameter that stands for `field` or an entry of it; None if none does."""
    name = field.partition("[")[0]
    snake = re.sub(r"([A-Z])", r"_\1", name).lower()
    for wanted in (snake, f"{snake}_", *ALIASES.get(name, ())):
        for parameter in parameters:
            if parameter.name == wanted:
                return _spelt(parameter)
    return None


def _spelt(parameter: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return (parameter.metavar or parameter.name or "").strip("[].").upper()
    return str(max(parameter.opts, key=len))
