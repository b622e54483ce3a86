"""The part of `doctor` that looks at what is remembered: settings, decisions, their audit, hooks, leftovers.

Guarantees as in `doctor`. A state that an opened store repairs by itself (a torn text copy, a damaged search index) is
repaired by looking; what only a person may decide is named with the command that does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import GitUnavailable, Refused, StoreProblem
from nm_lsp.base.wording import counted
from nm_lsp.engine import hooks
from nm_lsp.engine.decisions.alone import open_desk
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.doctor_checks import Check, Health
from nm_lsp.engine.leftovers import dead_pages, dead_tokens
from nm_lsp.engine.settings import CONFIG_FILE, Settings, resolve_settings
from nm_lsp.events.file import MAX_BYTES as MAX_EVENT_BYTES
from nm_lsp.git.process import quoted
from nm_lsp.storage.audit_log import AuditReport
from nm_lsp.storage.encryption import protection_of

_FILES: Final = ("memory.db", "synapses.db", "audit.jsonl", "events.jsonl")
_EVENTS_FACTOR: Final = 4
"""The event log rolls at its limit when somebody writes; several times that much is nobody's who rolls it."""


def check_settings(folder: Path) -> list[Check]:
    """Settings of the folder's file that are not used."""
    _, problems = resolve_settings(None, folder)
    return [
        Check("settings", Health.LIMITED, str(problem), f"Correct {folder / CONFIG_FILE}; see `nm-lsp settings`.")
        for problem in problems
    ]


def check_decisions(folder: Path, settings: Settings) -> list[Check]:
    """The store of decisions, its audit, and whether files beside it can be written."""
    with open_desk(folder, settings) as desk:
        look = desk.poll()
        keeper = desk.tree.keeper
        checks = [*_permissions(keeper.folder_in_use), *_event_log(keeper.folder_in_use)]
        if keeper.problem is not None:
            return [_store_problem(keeper.problem, keeper.folder_in_use), *checks]
        store = keeper.store()
        if store is None:
            return [Check("decisions", Health.OK, "nothing was recorded yet"), *checks]
        try:
            store.check_writable()
        except StoreProblem as problem:
            return [_store_problem(problem, keeper.folder_in_use), *checks]
        report = store.audit.verify()
        counts = ", ".join(f"{n:,} {status}" for status, n in desk.counts().items() if n) or "none yet"
        if look.git_problem is not None:
            counts += "; git cannot say whether they hold"
        checks.insert(0, Check("decisions", Health.OK, f"{counts}; {_place(desk, settings)}"))
        return [*checks, *_audit(report, keeper.folder_in_use)]


def _place(desk: Desk, settings: Settings) -> str:
    folder = desk.tree.keeper.folder_in_use
    if not settings.storage.require_encrypted:
        return str(folder)
    return f"{folder}, on {protection_of(folder).what}"


def _store_problem(problem: StoreProblem, folder: Path) -> Check:
    database = folder / "memory.db"
    repair = problem.hint
    if problem.reason in {"foreign", "schema"}:
        # Out of the way, kept; where something can be brought back, the next look says so.
        repair = f"mv {quoted(database)} {quoted(database)}.aside"
    elif problem.reason == "link":
        repair = problem.hint
    elif problem.reason == "read-only":
        repair = f"chmod u+w {quoted(folder)} {quoted(database)}"
    elif problem.reason == "locked":
        repair = f"End the program that holds it; `fuser -v {quoted(database)}` tells which that is."
    elif problem.reason == "newer":
        repair = "pip install --upgrade nm-lsp"
    return Check("decisions", Health.BROKEN, problem.message, repair or "Restart the programs that use it.")


def _audit(report: AuditReport, folder: Path) -> list[Check]:
    if report.sound:
        return [Check("audit", Health.OK, f"{counted(report.verdict.n_records, 'record')}, whole")]
    said = [f"{finding.copy} line {finding.line}: {finding.message}" for finding in report.verdict.findings]
    if report.n_dropped:
        said.append(f"{counted(report.n_dropped, 'record')} that could not be written")
    if report.n_waiting:
        said.append(f"{counted(report.n_waiting, 'record')} not in audit.jsonl")
    shown = "; ".join(said[:3]) + (f" and {len(said) - 3} more" if len(said) > 3 else "")
    database = folder / "memory.db"
    if any(finding.copy != "text" for finding in report.verdict.findings):
        # The text copy and the backups are the witnesses against a table that was altered.
        repair = f"mv {quoted(database)} {quoted(database)}.altered && nm-lsp decisions recover"
    else:
        repair = "nm-lsp audit export --rewrite"
    return [Check("audit", Health.BROKEN, shown, repair)]


def _permissions(folder: Path) -> Iterator[Check]:
    for name in _FILES:
        path = folder / name
        if path.is_file() and not os.access(path, os.R_OK | os.W_OK):
            yield Check(
                "permissions", Health.BROKEN, f"{path} cannot be read and written", f"chmod u+rw {quoted(path)}"
            )


def _event_log(folder: Path) -> Iterator[Check]:
    path = folder / "events.jsonl"
    size = path.stat().st_size if path.is_file() else 0
    if size > _EVENTS_FACTOR * MAX_EVENT_BYTES:
        detail = f"{path} has {size / 1e6:,.0f} MB, although it rolls at {MAX_EVENT_BYTES / 1e6:,.0f} MB"
        yield Check("event log", Health.LIMITED, detail, f"rm {quoted(path)}")


def check_hooks(folder: Path, settings: Settings) -> list[Check]:
    """Git hooks of ours that are not as this version writes them; nothing where there are none."""
    try:
        found = hooks.status(folder, git=settings.git.path)
    except (Refused, GitUnavailable):
        return []
    stale = [row.hook for row in found.hooks if row.state in {"outdated", "disabled"}]
    installed = [row for row in found.hooks if row.state != "missing"]
    if stale or (installed and not found.active):
        detail = (
            f"not as this version writes them: {', '.join(stale)}" if stale else "some are missing, or do nothing here"
        )
        return [Check("hooks", Health.LIMITED, detail, "nm-lsp hooks install")]
    return [Check("hooks", Health.OK, f"installed in {found.hooks_path}")] if installed else []


def check_leftovers() -> list[Check]:
    """What processes that were killed left behind in folders of the user's."""
    left = [*dead_tokens(), *dead_pages()]
    if not left:
        return []
    shown = ", ".join(str(path) for path in left[:3]) + (" …" if len(left) > 3 else "")
    return [Check("leftovers", Health.LIMITED, f"of processes that were killed: {shown}", "nm-lsp cache prune")]
