"""`nm-lsp cache`: what is kept that can be made again, and removing what nobody uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.options import Json, command_app
from nm_lsp.cli.output import Output
from nm_lsp.engine.caches import CacheList, Pruned, WorkspaceCache, cache_list
from nm_lsp.engine.caches import prune as prune_caches
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces

app = command_app()

UNUSED_DAYS = 90


@app.callback()
def cache() -> None:
    """List or prune indexes, vectors and pages; decisions and what was learned are no caches and stay."""


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Show the caches of each workspace, the longest unused first."""
    output = Output(as_json=as_json)
    found = cache_list()
    if as_json:
        output.document(encode(found, FolderPlaces(Path.cwd())))
    else:
        _print(output, found)


@app.command()
def prune(
    unused_days: Annotated[
        int, typer.Option("--unused-days", min=1, max=36_500, help="Remove what was not used for so many days.")
    ] = UNUSED_DAYS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the caches of folders that are gone and what was long unused; it is made again when needed."""
    output = Output(as_json=as_json)
    result = prune_caches(unused_days, dry_run=dry_run)
    if as_json:
        output.document(encode(result, FolderPlaces(Path.cwd())))
    else:
        _print_pruned(output, result)


def _print(output: Output, found: CacheList) -> None:
    _table(output, found.workspaces)
    shared = found.shared
    if shared.vectors:
        output.text(f"{shared.file}: {counted(shared.vectors, 'vector')} that all share, {_bytes(shared.bytes)}")
    output.text(f"in all: {_bytes(found.bytes)}")


def _table(output: Output, rows: tuple[WorkspaceCache, ...]) -> None:
    if rows:
        cells = [
            (
                row.last_used[:10],
                _bytes(row.index_bytes),
                _bytes(row.vector_bytes),
                _bytes(row.page_bytes),
                "in use" if row.in_use else "" if row.exists else "gone" if row.workspace else "not known",
                row.workspace or row.index,
            )
            for row in rows
        ]
        output.table(("last used", "index", "vectors", "pages", "", "folder"), cells, right=(1, 2, 3))


def _print_pruned(output: Output, result: Pruned) -> None:
    _table(output, result.removed)
    verb = "would be removed" if result.dry_run else "removed"
    what = f"{counted(len(result.removed), 'index', 'indexes')} and {counted(result.vectors, 'vector')}"
    output.text(f"{what} {verb}, {_bytes(result.bytes)}")
    if result.leftovers:
        output.text(f"{counted(result.leftovers, 'leftover')} of killed processes {verb}")
    for row in result.kept:
        output.note(f"{row.workspace or row.index} is in use and stays")


def _bytes(n: int) -> str:
    return f"{n / 1e6:,.1f} MB" if n >= 50_000 else f"{n / 1e3:,.1f} kB"
