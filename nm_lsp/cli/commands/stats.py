"""`nm-lsp stats`: what the index holds."""

from __future__ import annotations

from collections.abc import Sequence

from nm_lsp.base.wording import counted
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import session
from nm_lsp.engine.requests import Count, Nothing

app = command_app()


@app.command()
def stats(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Count files, symbols, edges and communities: groups of files that use each other more than the rest."""
    output = Output(as_json=as_json, verbose=verbose)
    with session(folder, output) as opened:
        result = opened.host.stats(Nothing(), opened.cancel)
        if opened.emit(result):
            return
        output.text(
            f"{counted(result.files, 'file')}, {counted(result.symbols, 'symbol')}, {result.index_bytes / 1e6:.1f} MB"
        )
        output.text(
            f"vectors: {result.vectors.done:,} of {result.vectors.total:,}, {result.vector_search} search, "
            f"model {result.model}"
        )
        for title, counts in (("languages", result.languages), ("kinds", result.kinds), ("edges", result.edges)):
            output.text(f"{title}: {_counts(counts)}")
        if result.communities:
            output.text()
            rows = [(f"{c.files:,}", f"{c.symbols:,}", c.title) for c in result.communities]
            output.table(("files", "symbols", "community"), rows, right=(0, 1))


def _counts(counts: Sequence[Count]) -> str:
    return ", ".join(f"{count.name} {count.count:,}" for count in counts) or "none"
