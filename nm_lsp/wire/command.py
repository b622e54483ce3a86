"""One row of the table of commands, and how it is called."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.decision_requests import Caller


@dataclass(frozen=True, slots=True)
class Command:
    """`name` has no prefix ("index.rebuild"); `method` is one of the host, or of a part of it ("decisions.record").

    `with_caller`: the method records who asked.
    """

    name: str
    params: type
    result: type
    method: str
    title: str
    doc: str
    with_caller: bool = False

    def call(self, host: object, params: object, cancel: Cancellation, caller: Caller) -> Any:
        """Run it on `host`; may block. Raises what the method raises."""
        method = attrgetter(self.method)(host)
        return method(params, cancel, caller) if self.with_caller else method(params, cancel)
