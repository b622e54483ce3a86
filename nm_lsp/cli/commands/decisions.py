"""`nm-lsp decisions`: the decisions of this repository, read. What changes them is in `decisions_change`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import typer

from nm_lsp.base.wording import counted
from nm_lsp.cli.commands import decisions_change, decisions_eval
from nm_lsp.cli.commands.decisions_text import STATUS_COLOURS, print_detail, print_history, print_rows, tell_next_steps
from nm_lsp.cli.desk import DeskSession, desk_session
from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import from_here
from nm_lsp.cli.options import Folder, Json, Limit, Verbose, command_app
from nm_lsp.cli.output import Output, clean
from nm_lsp.engine.decision_requests import (
    AsOfResult,
    AuditResult,
    DecisionExportResult,
    DecisionImportResult,
    DecisionRow,
    DecisionSearchResult,
    DiffResult,
    GetResult,
    HistoryResult,
    ListResult,
    ScanResult,
)
from nm_lsp.engine.decisions.searching import MAX_LIMIT

app = command_app()

Id = Annotated[str, typer.Argument(metavar="ID", help="A decision's id, or the beginning of one.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, or the beginnings of some.")]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 3 if a decision that is listed is not active, for scripts.")
]
_TIME = re.compile(r"\d{4}-\d\d(-\d\d|\Z)")


@app.callback()
def decisions() -> None:
    """Record why the code is as it is, and see what no longer holds."""


@app.command("list")
def list_(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]", help="Only those that govern this file, or path::symbol, and are not invalidated."
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", "-s", metavar="STATUS", help="active, stale, invalidated, unknown, aged, orphaned or at-risk."
        ),
    ] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Short for --status stale.")] = False,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            metavar="WORD",
            help="changed, removed, moved-out, landed-other, layout, differs-on-branch, dependency or git.",
        ),
    ] = None,
    limit: Limit = 100,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="TEXT", help="Where the last page ended.")] = None,
    exit_code: ExitCode = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List decisions, newest first, as they stand at HEAD."""
    if stale and status not in (None, "stale"):
        raise typer.BadParameter(f"--stale and --status {status} exclude each other")
    output = Output(as_json=as_json, verbose=verbose)
    file, _, symbol = from_here(path or "", folder).partition("::")
    fields = {
        "status": "stale" if stale else status,
        "path": file or None,
        "symbol": symbol or None,
        "reason": reason,
        "limit": limit,
        "cursor": cursor,
    }
    with desk_session(folder, output) as opened:
        result: ListResult = opened.ask("decisions.list", fields)
        if not opened.emit(result):
            print_rows(output, result.decisions)
            output.note(_count(result))
            tell_next_steps(output, result.decisions)
    _exit_if_doubted(result.decisions, wanted=exit_code)


@app.command()
def show(ids: Ids, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Show whole records, 20 at most."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: GetResult = opened.ask("decisions.get", {"ids": ids})
        if not opened.emit(result):
            for at, detail in enumerate(result.decisions):
                if at:
                    output.text()
                print_detail(output, detail)
            tell_next_steps(output, [detail.row for detail in result.decisions])


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(metavar="WORDS...", help="A question or words; quotes are optional.")],
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="hybrid, keyword or semantic.")] = "hybrid",
    status: Annotated[
        str, typer.Option("--status", "-s", metavar="STATUS", help="active, stale, invalidated or all.")
    ] = "active",
    min_confidence: Annotated[
        float | None, typer.Option("--min-confidence", metavar="0..1", help="Leave out what is less certain.")
    ] = None,
    limit: Limit = 10,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find decisions by what they say; only active ones unless asked."""
    output = Output(as_json=as_json, verbose=verbose)
    fields = {
        "query": " ".join(query),
        "mode": mode,
        "status": status,
        "minConfidence": min_confidence,
        "limit": limit,
    }
    with desk_session(folder, output) as opened:
        result: DecisionSearchResult = opened.ask("decisions.search", fields)
        if not opened.emit(result):
            print_rows(output, [hit.decision for hit in result.hits], [f"{hit.score:.3f}" for hit in result.hits])
            for notice in result.notices:
                output.note(notice)
        if not result.hits:
            output.note("nothing here matches")
        if status == "active" and not as_json:
            _tell_inactive(opened, fields)
    if not result.hits:
        raise typer.Exit(Exit.NOTHING)


@app.command()
def timeline(
    identity: Id,
    before: Annotated[int, typer.Option("--before", metavar="N", help="How many recorded before it.")] = 5,
    after: Annotated[int, typer.Option("--after", metavar="N", help="How many recorded after it.")] = 5,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what was recorded shortly before and after a decision."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: ListResult = opened.ask("decisions.timeline", {"id": identity, "before": before, "after": after})
        if not opened.emit(result):
            print_rows(output, result.decisions, [row.recorded_at[:10] for row in result.decisions])


@app.command()
def history(identity: Id, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Show every change of a decision: who, when, why, before and after."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: HistoryResult = opened.ask("decisions.history", {"id": identity})
        if not opened.emit(result):
            output.text(f"{result.id}  {output.style(clean(result.title), 'bold')}")
            print_history(output, result.rows)


@app.command("as-of")
def as_of(
    when: Annotated[
        str, typer.Argument(metavar="WHEN", help="A commit (id, branch, tag) or a time like 2026-01-31T12:00:00Z.")
    ],
    identity: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only this decision.")] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what was believed at a commit or a time."""
    output = Output(as_json=as_json, verbose=verbose)
    moment = {"time" if _TIME.match(when) else "commit": when}
    with desk_session(folder, output) as opened:
        result: AsOfResult = opened.ask("decisions.asOf", {**moment, "id": identity})
        if not opened.emit(result):
            print_rows(output, result.decisions)
            at = f" (commit {result.commit[:8]})" if result.commit and result.commit != result.at else ""
            output.note(f"{counted(len(result.decisions), 'decision')} as of {result.at}{at}")


@app.command()
def diff(
    identity: Id,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="The governed file; by default the one that changed.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what changed since a decision was confirmed."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        governed = from_here(path, folder) if path is not None else None
        result: DiffResult = opened.ask("decisions.diff", {"id": identity, "path": governed})
        if opened.emit(result):
            return
        colours = {"+": "green", "-": "red", "@": "cyan"}
        for line in clean(result.text.removesuffix("\n")).split("\n") if result.text else ():
            colour = colours.get(line[:1])
            output.text(output.style(line, colour) if colour else line)
        if not result.text:
            output.note(f"{result.repo_path} holds what was seen")


@app.command()
def scan(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Look at HEAD now and count what holds."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: ScanResult = opened.ask("decisions.scan", {})
        if opened.emit(result):
            return
        print_rows(output, [*result.newly_stale, *result.newly_active])
        numbers = {
            "active": result.active,
            "stale": result.stale,
            "invalidated": result.invalidated,
            "unknown": result.unknown,
        }
        shown = ", ".join(output.style(f"{n} {name}", STATUS_COLOURS[name]) for name, n in numbers.items())
        at = f" at {result.head[:8]}" if result.head else ""
        output.text(f"{counted(result.scanned, 'decision')}{at}: {shown}")


@app.command()
def audit(
    view: Annotated[
        str | None, typer.Argument(metavar="[VIEW]", help="stale, invalidated, aged, orphaned or at-risk; else all.")
    ] = None,
    exit_code: ExitCode = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show the maintenance views: what is stale, invalidated, aged, orphaned and at risk."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: AuditResult = opened.ask("decisions.audit", {"view": view})
        if not opened.emit(result):
            for at, one in enumerate(result.views):
                if at:
                    output.text()
                output.text(output.style(f"{one.name} ({len(one.decisions)})", "bold") + f"  {one.title}")
                print_rows(output, one.decisions)
            for problem in result.problems:
                output.warn(problem)
    _exit_if_doubted([row for one in result.views for row in one.decisions], wanted=exit_code)


@app.command()
def export(
    to: Annotated[
        str | None, typer.Option("--dir", metavar="PATH", help="One file a decision there; else one text on stdout.")
    ] = None,
    status: Annotated[str, typer.Option("--status", "-s", metavar="STATUS", help="active or all.")] = "active",
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write decisions as Markdown."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: DecisionExportResult = opened.ask("decisions.export", {"dir": to, "status": status})
        if opened.emit(result):
            return
        if result.text is not None:
            output.text((clean(result.text) if output.on_terminal else result.text).rstrip("\n"))
        where = f" in {to}, {counted(len(result.files), 'file')} written" if to else ""
        output.note(f"{counted(result.count, 'decision')}{where}")


@app.command("import")
def import_(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A Markdown export, a folder of them, an ADR folder, or a memory.db."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Take decisions over from elsewhere; the same ids are merged."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: DecisionImportResult = opened.ask("decisions.import", {"source": source, "dryRun": dry_run})
        if not opened.emit(result):
            for word, ids in (("imported", result.imported), ("merged", result.merged)):
                for identity in ids:
                    output.text(f"{word}  {clean(identity)}")
            would = "would be " if dry_run else ""
            output.note(
                f"{len(result.imported)} {would}imported, {len(result.merged)} {would}merged, "
                f"{result.unchanged} unchanged"
            )
            for problem in result.problems:
                output.warn(problem)
    if result.problems:
        raise typer.Exit(Exit.NOTHING)


def _tell_inactive(opened: DeskSession, fields: Mapping[str, object]) -> None:
    """Say how many decisions match that are left out because they do not hold."""
    every: DecisionSearchResult = opened.ask("decisions.search", {**fields, "status": "all", "limit": MAX_LIMIT})
    n_left = sum(hit.decision.status in {"stale", "invalidated"} for hit in every.hits)
    if n_left:
        matches = "that is not active matches" if n_left == 1 else "that are not active match"
        opened.output.note(f"{n_left} {matches}: --status all")


def _count(result: ListResult) -> str:
    n_shown = len(result.decisions)
    if result.cursor is None and n_shown == result.total:
        return counted(n_shown, "decision")
    more = f"; --cursor {result.cursor} shows the next" if result.cursor else ""
    return f"{n_shown:,} of {counted(result.total, 'decision')}{more}"


def _exit_if_doubted(rows: list[DecisionRow] | tuple[DecisionRow, ...], *, wanted: bool) -> None:
    if wanted and any(row.status != "active" for row in rows):
        raise typer.Exit(Exit.NOT_ACTIVE)


decisions_change.add_to(app)
decisions_eval.add_to(app)
