"""What the commands about the associative brain share in print."""

from __future__ import annotations

from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.requests import Place

CALLER = Caller("cli", "nm-lsp")


def spot_line(place: Place) -> str:
    """`path:line`, lines from 1."""
    return f"{place.path}:{place.span.start_line + 1}"
