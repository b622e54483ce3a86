"""The commands of `nm-lsp decisions` that change something."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from nm_lsp.base.errors import NotFound, UserError
from nm_lsp.base.wording import counted
from nm_lsp.cli.commands.decisions_text import print_detail, print_rows, print_similar
from nm_lsp.cli.desk import DeskSession, confirmed, desk_session, may_prompt, prompt, reason_or_prompt
from nm_lsp.cli.exits import Exit
from nm_lsp.cli.folders import from_here
from nm_lsp.cli.interrupts import prompting
from nm_lsp.cli.options import Folder, Json, Verbose
from nm_lsp.cli.output import Output
from nm_lsp.engine.decision_requests import (
    DecisionResult,
    DecisionRow,
    DecisionsResult,
    ListResult,
    RecordResult,
    RecoverResult,
)

Id = Annotated[str, typer.Argument(metavar="ID", help="A decision's id, or the beginning of one.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, or the beginnings of some.")]
Reason = Annotated[
    str | None, typer.Option("--reason", "-r", metavar="TEXT", help="Why; asked for on a terminal when left out.")
]
Expect = Annotated[
    int | None, typer.Option("--expect", metavar="REVISION", help="Refuse if somebody changed it since this revision.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Type = Annotated[str | None, typer.Option("--type", metavar="WORD", help="Its kind, such as architecture or security.")]
Confidence = Annotated[float | None, typer.Option("--confidence", metavar="0..1", help="How certain it is.")]
Author = Annotated[str | None, typer.Option("--author", metavar="NAME", help="Whose decision it is.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="WORD", help="Repeat for several.")]
Alternatives = Annotated[
    list[str] | None, typer.Option("--alternative", metavar="TEXT", help="What was not chosen. Repeat for several.")
]
DependsOn = Annotated[
    list[str] | None, typer.Option("--depends-on", metavar="ID", help="Stale with it. Repeat for several.")
]
Evidence = Annotated[
    list[str] | None, typer.Option("--evidence", metavar="TEXT", help="A link or a measurement. Repeat for several.")
]
Title = Annotated[str | None, typer.Option("--title", "-t", metavar="TEXT", help="The decision in one line.")]
Rationale = Annotated[
    str | None, typer.Option("--rationale", metavar="TEXT", help="Why the code is so; - reads it from stdin.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group."""
    for command in (record, amend, restore, reinstate, invalidate, supersede, acknowledge, redact, recover):
        app.command()(command)


def record(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="What it governs: a path, path::symbol, folder/ or 'glob*'."),
    ] = None,
    title: Title = None,
    rationale: Rationale = None,
    type_: Type = None,
    confidence: Confidence = None,
    author: Author = None,
    tags: Tags = None,
    alternatives: Alternatives = None,
    depends_on: DependsOn = None,
    evidence: Evidence = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Record why the code is as it is. On a terminal, what is left out is asked for."""
    output = Output(as_json=as_json, verbose=verbose)
    files = [from_here(file, folder) for file in files or ()]
    with desk_session(folder, output) as opened:
        if not (files and title and rationale):
            files, title, rationale, alternatives = _guided(opened, files, title, rationale, alternatives)
        fields = {
            "title": title,
            "rationale": _text(rationale),
            "files": files,
            "type": type_,
            "confidence": confidence,
            "author": author,
            "tags": tags or None,
            "alternatives": alternatives or None,
            "dependsOn": depends_on or None,
            "evidence": evidence or None,
        }
        result: RecordResult = _asked(opened, "decisions.record", fields, files)
        if not opened.emit(result):
            print_detail(output, result.decision)
            print_similar(output, result.similar)


def amend(
    identity: Id,
    title: Title = None,
    rationale: Rationale = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="FILE", help="What it governs from now on, instead. Repeat for several."),
    ] = None,
    type_: Type = None,
    confidence: Confidence = None,
    author: Author = None,
    tags: Tags = None,
    alternatives: Alternatives = None,
    depends_on: DependsOn = None,
    evidence: Evidence = None,
    clear: Annotated[
        list[str] | None, typer.Option("--clear", metavar="FIELD", help="Empty an optional field, such as tags.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", "-r", metavar="TEXT", help="Why it is amended.")] = None,
    expect: Expect = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Change fields of a decision; what they said before is kept."""
    files = [from_here(file, folder) for file in files or ()]
    given = {
        "title": title,
        "rationale": _text(rationale),
        "files": files or None,
        "type": type_,
        "confidence": confidence,
        "author": author,
        "tags": tags or None,
        "alternatives": alternatives or None,
        "dependsOn": depends_on or None,
        "evidence": evidence or None,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    fields = {"id": identity, "set": changes, "clear": clear or None, "reason": reason, "expect": expect}
    _change("decisions.amend", fields, folder, Output(as_json=as_json, verbose=verbose), files)


def restore(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids, or the beginnings of some.")] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--all",
            metavar="layout|reverted",
            help="All where only comments or layout changed, or where the recorded content is back.",
        ),
    ] = None,
    note: Annotated[str | None, typer.Option("--note", "-r", metavar="TEXT", help="What you looked at.")] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="COMMIT", help="Refuse if HEAD is no longer this commit.")
    ] = None,
    yes: Yes = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say that stale decisions still hold at HEAD."""
    if bool(ids) == (every is not None):
        raise typer.BadParameter("give ids, or --all layout or --all reverted")
    if every not in (None, "layout", "reverted"):
        raise typer.BadParameter(f"--all takes layout or reverted, not {every}")
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        fields: dict[str, object] = {"ids": ids or None, "note": note, "head": head}
        if every is not None:
            n_decisions = _chosen(opened, every, yes=yes)
            fields |= {"all": every, "confirm": n_decisions}
        result: DecisionsResult = opened.ask("decisions.restore", fields)
        if not opened.emit(result):
            print_rows(output, result.decisions)
            output.note(f"{counted(len(result.decisions), 'decision')} restored")


def reinstate(
    identity: Id,
    reason: Reason = None,
    expect: Expect = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say that an invalidated decision holds again."""
    output = Output(as_json=as_json, verbose=verbose)
    why = reason_or_prompt(output, reason, "Why does it hold again?")
    _change("decisions.reinstate", {"id": identity, "reason": why, "expect": expect}, folder, output)


def invalidate(
    identity: Id,
    reason: Reason = None,
    superseded_by: Annotated[
        str | None, typer.Option("--superseded-by", metavar="ID", help="The decision that replaces it.")
    ] = None,
    expect: Expect = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say that a decision no longer holds; it is kept with the reason."""
    output = Output(as_json=as_json, verbose=verbose)
    why = reason_or_prompt(output, reason, "Why does it no longer hold?")
    fields = {"id": identity, "reason": why, "supersededBy": superseded_by, "expect": expect}
    _change("decisions.invalidate", fields, folder, output)


def supersede(
    identity: Id,
    by: Annotated[str, typer.Option("--by", metavar="ID", help="The decision that replaces it.")],
    reason: Reason = None,
    expect: Expect = None,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Replace a decision by another one that is recorded."""
    output = Output(as_json=as_json, verbose=verbose)
    why = reason_or_prompt(output, reason, "Why is it replaced?")
    _change("decisions.supersede", {"id": identity, "by": by, "reason": why, "expect": expect}, folder, output)


def acknowledge(ids: Ids, folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Hide the diagnostics of present findings until the next one; the decisions stay stale."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: DecisionsResult = opened.ask("decisions.acknowledge", {"ids": ids})
        if not opened.emit(result):
            print_rows(output, result.decisions)


def redact(
    identity: Id,
    field: Annotated[str, typer.Argument(metavar="FIELD", help="The field that holds a secret, such as rationale.")],
    reason: Reason = None,
    expect: Expect = None,
    yes: Yes = False,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Take a secret out of a decision, its history, the audit's texts and the backups. Cannot be undone."""
    output = Output(as_json=as_json, verbose=verbose)
    why = reason_or_prompt(output, reason, "Why is it taken out?")
    if not confirmed(output, f"Take {field} out of {identity} for ever?", yes=yes):
        raise typer.Exit(Exit.NOTHING)
    fields = {"id": identity, "field": field, "reason": why, "expect": expect}
    _change("decisions.redact", fields, folder, output)


def recover(folder: Folder = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Bring back decisions whose memory.db was lost, from the newest backup and audit.jsonl."""
    output = Output(as_json=as_json, verbose=verbose)
    with desk_session(folder, output) as opened:
        result: RecoverResult = opened.ask("decisions.recover", {})
        if opened.emit(result):
            return
        sources = [result.backup] if result.backup else []
        sources += [f"{counted(result.replayed, 'record')} of audit.jsonl"] if result.replayed else []
        origin = f" from {' and '.join(sources)}" if sources else ""
        output.text(f"{counted(result.decisions, 'decision')} brought back{origin}")
        if result.stopped is not None:
            output.note(f"the rest of audit.jsonl was not used: {result.stopped}")


def _change(
    name: str, fields: Mapping[str, object], folder: Folder, output: Output, files: Sequence[str] | None = None
) -> None:
    with desk_session(folder, output) as opened:
        result: DecisionResult = _asked(opened, name, fields, files)
        if not opened.emit(result):
            print_detail(output, result.decision)


def _asked(opened: DeskSession, name: str, fields: Mapping[str, object], files: Sequence[str] | None) -> Any:
    """As `opened.ask`; where one of `files` is not there, the error says what may have been meant."""
    try:
        return opened.ask(name, fields)
    except NotFound:
        opened.check_files(files or [])
        raise


def _chosen(opened: DeskSession, every: str, *, yes: bool) -> int:
    """How many decisions `--all` means now, after a person has seen them and agreed."""
    fields = {"status": "stale", "reason": "layout" if every == "layout" else None, "limit": 1_000}
    cursor: str | None = None
    rows: list[DecisionRow] = []
    while True:
        page: ListResult = opened.ask("decisions.list", {**fields, "cursor": cursor})
        rows += [row for row in page.decisions if every == "layout" or row.reverted]
        cursor = page.cursor
        if cursor is None:
            break
    if not rows:
        opened.output.note("there is nothing to restore")
        raise typer.Exit(Exit.NOTHING)
    if not yes and may_prompt(opened.output):
        print_rows(opened.output, rows)
    if not confirmed(opened.output, f"Restore {counted(len(rows), 'decision')}?", yes=yes):
        raise typer.Exit(Exit.NOTHING)
    return len(rows)


def _guided(
    opened: DeskSession,
    files: list[str] | None,
    title: str | None,
    rationale: str | None,
    alternatives: list[str] | None,
) -> tuple[list[str], str, str, list[str] | None]:
    """Ask a person for what is missing, one line each. Raises `typer.BadParameter` where nobody can be asked, and what
    is wrong with `files` before anything is asked, since answers would be lost."""
    if not may_prompt(opened.output):
        given = {"FILE": files, "--title": title, "--rationale": rationale}
        missing = [name for name, value in given.items() if not value]
        raise typer.BadParameter(f"missing: {', '.join(missing)}")
    opened.check_files(files or [])
    title = title or prompt("The decision in one line")
    if not files:
        typer.echo("What it governs: a path, path::symbol, folder/ or glob; an empty line ends.", err=True)
        files = _governed(opened)
        while not files:
            typer.echo("A decision governs at least one file.", err=True)
            files = _governed(opened)
    if not rationale:
        typer.echo("Why? An empty line ends.", err=True)
        rationale = "\n".join(_lines("  why"))
        while not rationale:
            typer.echo("A decision without a reason helps nobody.", err=True)
            rationale = "\n".join(_lines("  why"))
        if alternatives is None:
            typer.echo("What was not chosen? One a line; an empty line ends.", err=True)
            alternatives = _lines("  not")
    return files, title, rationale, alternatives


def _governed(opened: DeskSession) -> list[str]:
    """What a person names, one a line. What cannot be governed is refused at once, and can be typed again."""
    files: list[str] = []
    while line := _line("  governs"):
        try:
            file = from_here(line, opened.folder)
            opened.check_files([file])
        except UserError as error:
            opened.output.failure(error)
        else:
            files.append(file)
    return files


def _lines(question: str) -> list[str]:
    lines: list[str] = []
    while line := _line(question):
        lines.append(line)
    return lines


def _line(question: str) -> str:
    return prompt(question, default="", show_default=False).strip()


def _text(rationale: str | None) -> str | None:
    if rationale != "-":
        return rationale
    with prompting():
        return sys.stdin.read().strip()
