"""What the commands about the associative brain, and about savings, share in print."""

from __future__ import annotations

from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.requests import Place

CALLER = Caller("cli", "nm-lsp")
TOO_SMALL = "in a project this small an answer costs more than the files"
"""What a saving below zero means."""


def spot_line(place: Place) -> str:
    """`path:line`, lines from 1."""
    return f"{place.path}:{place.span.start_line + 1}"
