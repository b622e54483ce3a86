"""Git hooks as a use case: install, uninstall, say how they stand. What they noted is read by `rewrites`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.base.errors import Refused
from nm_lsp.git import Repository, discover
from nm_lsp.git.hooks import (
    Ground,
    HookState,
    hook_folder,
    hook_rows,
    install_hooks,
    switched_on,
    uninstall_hooks,
)

_NOTES = {
    Ground.OWN: None,
    Ground.TRACKED: "The folder is part of the repository and shared with whoever clones it.",
    Ground.HUSKY: "husky runs these files, which are shared with whoever clones the repository.",
    Ground.OUTSIDE: "The folder lies outside the repository: its hooks run in all repositories that share it.",
    Ground.OFF: "core.hooksPath is no folder: git runs no hooks here.",
}


@dataclass(frozen=True, slots=True)
class HookStatus:
    """`state`: installed, outdated (of another version), missing or disabled (git does not run the file)."""

    hook: str
    state: str
    path: str
    beside: str | None


@dataclass(frozen=True, slots=True)
class HooksResult:
    """`active`: every hook is installed and its notes are taken. `notes` are sentences for people."""

    active: bool
    hooks_path: str
    hooks: tuple[HookStatus, ...]
    notes: tuple[str, ...]


def status(folder: Path, *, git: str = "git") -> HooksResult:
    """How the hooks stand where `folder` lies. Raises `Refused` outside a repository, `GitUnavailable`."""
    with _repository(folder, git) as repository:
        return _result(repository, ())


def install(folder: Path, *, force: bool = False, git: str = "git") -> HooksResult:
    """Install all hooks. Raises `Refused` with what to do instead, `GitUnavailable`, `EnvironmentProblem`."""
    with _repository(folder, git) as repository:
        install_hooks(repository, force=force)
        return _result(repository, ())


def uninstall(folder: Path, *, force: bool = False, git: str = "git") -> HooksResult:
    """Give back what was there before, byte for byte; `notes` say where that was not possible."""
    with _repository(folder, git) as repository:
        return _result(repository, uninstall_hooks(repository, force=force))


def _repository(folder: Path, git: str) -> Repository:
    place = discover(folder, executable=git)
    if place is None:
        raise Refused(f"{folder} is in no git repository, so there are no hooks.", hint="Run it in a repository.")
    return Repository(place, executable=git)


def _result(repository: Repository, problems: Collection[str]) -> HooksResult:
    folder = hook_folder(repository)
    rows = hook_rows(folder) if folder.ground is not Ground.OFF else []
    notes = [note for note in (_NOTES[folder.ground],) if note]
    is_on = switched_on(repository)
    n_installed = sum(row.state is HookState.INSTALLED for row in rows)
    if n_installed and not is_on:
        notes.append("The hooks do nothing here: they were installed for another repository or clone.")
    if any("lefthook" in (row.other or "") for row in rows):
        notes.append("lefthook writes its hooks anew when its configuration changes; install again after that.")
    return HooksResult(
        active=is_on and bool(rows) and n_installed == len(rows),
        hooks_path=str(folder.target),
        hooks=tuple(HookStatus(row.hook, row.state.value, str(row.path), row.other) for row in rows),
        notes=(*problems, *notes),
    )
