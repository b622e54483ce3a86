"""Putting our hooks where git looks for them, taking them out again, and saying what stands there.

Guarantees: a hook that was there keeps working, with its arguments, input and exit code; `uninstall` gives back the
former bytes, mode and link, whatever another tool wrote around our block since; every file is replaced in one step.
Folders that are not this clone's own are written on `force` alone: tracked ones and husky's are shared with a team, one
outside the repository with all repositories of the user.

Must not know: decisions, what the notes of the hooks are read for (`hook_log`).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import EnvironmentProblem, Refused
from nm_lsp.git.hook_log import forget_log, log_folder
from nm_lsp.git.hook_script import (
    FORMER_FOLDER,
    HEADER,
    HOOKS,
    block,
    found_block,
    is_shell_script,
    new_hook,
    with_block,
    without_block,
)
from nm_lsp.git.queries import Repository

_EXECUTE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
# Other installers keep a hook that was there under these names. pre-commit runs it from there; lefthook does not.
_KEPT_BY_OTHERS: Final = (".legacy", ".old")
_LEGACY: Final = ".legacy"
_MADE_FOLDER: Final = "made-hooks-folder"


class Ground(Enum):
    """Whose the folder is that git runs hooks from."""

    OWN = "own"  # in the git dir, or in the work tree and ignored
    TRACKED = "tracked"  # in the work tree and part of the repository
    HUSKY = "husky"  # husky writes the folder anew; what it runs lies in the folder above, tracked
    OUTSIDE = "outside"  # serves other repositories too
    OFF = "off"  # core.hooksPath is no folder: hooks are switched off


class HookState(Enum):
    INSTALLED = "installed"
    OUTDATED = "outdated"  # our block is there, but of another version or edited
    MISSING = "missing"  # no hook at all, or one without our block
    DISABLED = "disabled"  # our block is there, but git does not run the file: it is not executable


@dataclass(frozen=True, slots=True)
class HookFolder:
    """`path` is where git looks; `target` where a hook of ours goes (the same but for husky)."""

    path: Path
    target: Path
    ground: Ground

    @property
    def runs_plain_files(self) -> bool:
        """Whether hooks are run as `sh <file>`: husky's need neither a first line nor the right to be executed."""
        return self.ground is Ground.HUSKY


@dataclass(frozen=True, slots=True)
class HookRow:
    """One hook. `other` names in words what stands or stood there beside ours; None for nothing."""

    hook: str
    path: Path
    state: HookState
    other: str | None


def hook_folder(repository: Repository) -> HookFolder:
    """Where hooks of this work tree are looked for. Raises `GitUnavailable`."""
    place = repository.place
    path = repository.hooks_folder()
    if path.exists() and not path.is_dir():
        return HookFolder(path, path, Ground.OFF)
    real = path.resolve()
    if real.is_relative_to(place.common_dir) or real.is_relative_to(place.git_dir):
        return HookFolder(path, path, Ground.OWN)
    if place.work_tree is None or not real.is_relative_to(place.work_tree):
        return HookFolder(path, path, Ground.OUTSIDE)
    if real.name == "_" and ((real / "h").exists() or (real / "husky.sh").exists()):
        return HookFolder(path, real.parent, Ground.HUSKY)
    inside = real.relative_to(place.work_tree).as_posix()
    tracked = repository.git.run("--literal-pathspecs", "ls-files", "-z", "--", inside)
    own = not tracked and bool(repository.ignored([f"{inside}/{HOOKS[0]}"]))
    return HookFolder(path, path, Ground.OWN if own else Ground.TRACKED)


def install_hooks(repository: Repository, *, force: bool = False) -> list[HookRow]:
    """Put our block into all hooks; those that have it are brought up to date. Returns how they stand then.

    Raises `Refused` for a folder that is not this clone's own without `force`, with what can be done instead, and
    `EnvironmentProblem` where a file cannot be written.
    """
    folder = hook_folder(repository)
    _refuse(folder, force=force)
    with _written_files(folder.target):
        notes = log_folder(repository.place.common_dir)
        notes.mkdir(exist_ok=True)
        if not folder.target.is_dir():
            folder.target.mkdir(parents=True)
            (notes / _MADE_FOLDER).touch()
        for hook in HOOKS:
            _install(folder, hook)
    return hook_rows(folder)


def uninstall_hooks(repository: Repository, *, force: bool = False) -> list[str]:
    """Take our blocks out and our notes away. Returns in words what could not be given back as it was.

    A folder that serves other repositories keeps the block, which does nothing here any more, unless `force`.
    """
    folder = hook_folder(repository)
    problems: list[str] = []
    folders = {folder.target, folder.path, repository.place.common_dir / "hooks"}
    made_folder = log_folder(repository.place.common_dir) / _MADE_FOLDER
    with _written_files(folder.target):
        for one in sorted(folders):
            if one.is_dir() and (one != folder.path or folder.ground is not Ground.OUTSIDE or force):
                for hook in HOOKS:
                    problems += _uninstall(one, hook)
                with contextlib.suppress(OSError):
                    (one / FORMER_FOLDER).rmdir()
        if made_folder.exists():
            made_folder.unlink()
            with contextlib.suppress(OSError):
                folder.target.rmdir()
        forget_log(repository.place.common_dir)
    if folder.ground is Ground.OUTSIDE and not force and any(_carries_block(folder.path / hook) for hook in HOOKS):
        problems.append(
            f"The hooks in {folder.path} serve other repositories too and stay as they are; they do nothing here now. "
            "`nm-lsp hooks uninstall --force` takes them out for all."
        )
    return problems


def hook_rows(folder: HookFolder) -> list[HookRow]:
    """How each hook stands."""
    return [_row(folder, hook) for hook in HOOKS]


def switched_on(repository: Repository) -> bool:
    """Whether this repository takes notes of hooks: without it blocks that others installed do nothing."""
    return log_folder(repository.place.common_dir).is_dir()


def _refuse(folder: HookFolder, *, force: bool) -> None:
    if folder.ground is Ground.OFF:
        raise Refused(
            f"core.hooksPath is {folder.path}, which is no folder: git runs no hooks here.",
            hint="Nothing is lost without hooks: the server looks at HEAD itself. Unset core.hooksPath to use them.",
        )
    if force or folder.ground is Ground.OWN:
        return
    without = "Without hooks nothing is lost: the server looks at HEAD itself."
    match folder.ground:
        case Ground.OUTSIDE:
            raise Refused(
                f"core.hooksPath is {folder.path}, outside this repository: its hooks run in all repositories that "
                "share it.",
                hint=f"{without} --force installs them there; in repositories without nm-lsp's notes they do nothing.",
            )
        case Ground.HUSKY:
            raise Refused(
                f"husky runs the hooks of this repository; it writes {folder.path} anew and runs the files of "
                f"{folder.target}, which the team shares.",
                hint=f"{without} --force adds our lines to {', '.join(HOOKS)} there, for you to commit or to ignore; "
                "they do nothing in clones without nm-lsp.",
            )
        case _:
            raise Refused(
                f"The hooks of this repository lie in {folder.path}, which is part of the repository and shared.",
                hint=f"{without} --force adds our lines there, for you to commit or not; they do nothing in clones "
                "without nm-lsp.",
            )


def _install(folder: HookFolder, hook: str) -> None:
    row = _row(folder, hook)
    if row.state is HookState.INSTALLED:
        return
    path = row.path
    if not path.is_symlink() and not path.exists():
        _replace(path, new_hook(hook), 0o755)
        return
    mode = path.lstat().st_mode
    text = path.read_bytes() if path.is_file() else b""
    if _carries_block(path):
        former = folder.target / FORMER_FOLDER / hook
        has_former = former.is_symlink() or former.exists()
        text = without_block(text)
        if has_former or text in (HEADER, b""):
            _replace(path, new_hook(hook, former=has_former), 0o755)
            return
    runnable = folder.runs_plain_files or mode & _EXECUTE
    plain = stat.S_ISREG(mode) and path.stat().st_nlink == 1
    if runnable and plain and is_shell_script(text, sourced=folder.runs_plain_files):
        _replace(path, with_block(text, hook), stat.S_IMODE(mode))
    else:
        _set_aside(path, hook)
        _replace(path, new_hook(hook, former=True), 0o755)


def _set_aside(path: Path, hook: str) -> None:
    """Keep the hook that cannot carry our block. A relative link gets one folder more to climb."""
    former = path.parent / FORMER_FOLDER / hook
    if former.exists() or former.is_symlink():
        raise Refused(
            f"{former} is in the way: it was kept by an earlier installation.",
            hint=f"Compare it with {path}, keep the right one as {path.name}, and remove {former}.",
        )
    former.parent.mkdir(exist_ok=True)
    target = os.readlink(path) if path.is_symlink() else None  # noqa: PTH115 (the text of the link, not a path)
    if target is None or Path(target).is_absolute():
        path.rename(former)
    else:
        former.symlink_to(os.path.join("..", target))  # noqa: PTH118 (`a/../b` must stay as it is written)
        path.unlink()


def _give_back(former: Path, path: Path) -> None:
    target = os.readlink(former) if former.is_symlink() else None  # noqa: PTH115
    if target is None or not target.startswith(f"..{os.sep}"):
        former.replace(path)
        return
    path.unlink(missing_ok=True)
    path.symlink_to(target.removeprefix(f"..{os.sep}"))
    former.unlink()


def _uninstall(folder: Path, hook: str) -> list[str]:
    problems: list[str] = []
    path, former = folder / hook, folder / FORMER_FOLDER / hook
    kept = former.is_symlink() or former.exists()
    if kept and (_is_ours_alone(path) or not path.exists()):
        _give_back(former, path)
        kept = False
    for one in (path, *(path.with_name(hook + suffix) for suffix in _KEPT_BY_OTHERS)):
        if not _carries_block(one):
            continue
        if kept and _is_ours_alone(one):
            # Another installer has moved our hook away, and the one kept by us is what it would have moved.
            _give_back(former, one)
            kept = False
            continue
        rest = without_block(one.read_bytes())
        if rest in (HEADER, b""):
            one.unlink()
        else:
            _replace(one, rest, stat.S_IMODE(one.stat().st_mode))
    if kept:
        problems.append(
            f"{path} was written anew since; the hook that was there before nm-lsp is kept as {former}: "
            "put back what you need of it."
        )
    return problems


def _row(folder: HookFolder, hook: str) -> HookRow:
    path = folder.target / hook
    former = folder.target / FORMER_FOLDER / hook
    if not path.exists():
        return HookRow(hook, path, HookState.MISSING, "a link that leads nowhere" if path.is_symlink() else None)
    if not path.is_file():
        return HookRow(hook, path, HookState.MISSING, "something that is no file")
    text = path.read_bytes()
    found = None if path.is_symlink() else found_block(text)
    runs = folder.runs_plain_files or bool(path.stat().st_mode & _EXECUTE)
    if found is None:
        legacy = path.with_name(hook + _LEGACY)
        if _carries_block(legacy) and b"pre-commit" in text:
            return HookRow(hook, legacy, _state(legacy, hook, runs=runs), "pre-commit, which runs ours")
        return HookRow(hook, path, HookState.MISSING, _named(text) if runs else f"{_named(text)}, not executable")
    other = without_block(text)
    if former.is_symlink() or former.exists():
        return HookRow(hook, path, _state(path, hook, runs=runs, former=True), f"the former hook, kept as {former}")
    return HookRow(hook, path, _state(path, hook, runs=runs), None if other in (HEADER, b"") else _named(other))


def _state(path: Path, hook: str, *, runs: bool, former: bool = False) -> HookState:
    if not runs or (path.name.endswith(_LEGACY) and not path.stat().st_mode & _EXECUTE):
        return HookState.DISABLED
    current = found_block(path.read_bytes()) in (block(hook, former=former), block(hook, former=True))
    return HookState.INSTALLED if current else HookState.OUTDATED


def _named(text: bytes) -> str:
    for sign, name in ((b"husky", "husky"), (b"lefthook", "lefthook"), (b"pre-commit", "pre-commit")):
        if sign in text:
            return f"{name}'s hook"
    return "another hook"


def _carries_block(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return not path.is_symlink() and path.is_file() and found_block(path.read_bytes()) is not None
    return False


def _is_ours_alone(path: Path) -> bool:
    return _carries_block(path) and without_block(path.read_bytes()) in (HEADER, b"")


def _replace(path: Path, text: bytes, mode: int) -> None:
    new = path.with_name(f"{path.name}.nm-lsp-{os.getpid()}")
    try:
        new.write_bytes(text)
        new.chmod(mode)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextlib.contextmanager
def _written_files(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentProblem(
            f"The hooks in {folder} cannot be written: {error.strerror or error}.",
            hint="Check who owns the folder and its files.",
        ) from error
