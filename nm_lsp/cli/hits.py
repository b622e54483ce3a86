"""Places and hits as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from nm_lsp.cli.output import Output, clean
from nm_lsp.engine.requests import Hit, Place


def spot(place: Place) -> str:
    """`path:line` as editors and terminals understand it (lines from 1)."""
    return f"{place.path}:{place.span.start_line + 1}"


def print_hits(output: Output, hits: Sequence[Hit]) -> None:
    """Each hit: its place, kind, id and score on one line, its text indented below."""
    for n_before, hit in enumerate(hits):
        if n_before:
            output.text()
        head = output.style(clean(spot(hit.place)), "cyan")
        output.text(
            f"{head}  {hit.kind} {output.style(clean(hit.id), 'bold')}  {output.style(f'{hit.score:.2f}', 'dim')}"
        )
        for line in clean(hit.text).rstrip().split("\n"):
            output.text(f"    {line}".rstrip())
