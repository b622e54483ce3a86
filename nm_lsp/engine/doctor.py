"""Whether every part of an installation works, and for each one that does not the command that repairs it.

Guarantees: nothing stays behind, and nothing is changed but what opening a damaged cache or store repairs by itself;
each check is a real attempt (a write, a process, a handshake) rather than a look at permissions; a check that fails
stops no other.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, GitUnavailable, NmError
from nm_lsp.base.wording import counted
from nm_lsp.engine import doctor_memory
from nm_lsp.engine.doctor_checks import Check, Health
from nm_lsp.engine.requests import StatusResult
from nm_lsp.engine.settings import resolve_settings
from nm_lsp.git import Git, discover
from nm_lsp.git.process import quoted
from nm_lsp.models.weights import model_status
from nm_lsp.storage.locations import index_folder, vector_cache_file
from nm_lsp.worker.selfcheck import check_server

MINIMUM_PYTHON = (3, 11)

_CHECKED_APART = frozenset({"model", "decisions", "decision-store"})
"""Problems of `status` that have a check of their own here."""


@dataclass(frozen=True, slots=True)
class DoctorResult:
    """`healthy`: nothing is broken; something may be limited."""

    healthy: bool
    checks: tuple[Check, ...]


def checks(folder: Path, status: Callable[[], StatusResult], cancel: Cancellation) -> Iterator[Check]:
    """Everything `folder` needs, each check as it is done, the quick ones first.

    `status` opens its index and reports on it; what it raises is a finding.
    """
    settings, _ = resolve_settings(None, folder)
    yield check_python()
    yield check_git(folder)
    yield check_model()
    yield check_annoy()
    yield check_cache(folder)
    yield check_store_folder(folder)
    yield from doctor_memory.check_settings(folder)
    # Before the index, which would take a damaged store out of the way first.
    yield from _guarded("decisions", lambda: doctor_memory.check_decisions(folder, settings))
    yield from doctor_memory.check_hooks(folder, settings)
    yield from doctor_memory.check_leftovers()
    yield from check_index(status)
    yield check_handshake(folder, cancel)


def examined(found: Iterable[Check]) -> DoctorResult:
    """The verdict on all checks."""
    rows = tuple(found)
    return DoctorResult(all(check.health is not Health.BROKEN for check in rows), rows)


def _guarded(part: str, look: Callable[[], list[Check]]) -> list[Check]:
    try:
        return look()
    except NmError as error:
        return [Check(part, Health.BROKEN, error.message, error.hint or "Restart the programs that use it.")]


def check_python() -> Check:
    detail = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < MINIMUM_PYTHON:
        return Check("python", Health.BROKEN, detail, "Install Python 3.11 or newer.")
    return Check("python", Health.OK, detail)


def check_git(folder: Path) -> Check:
    try:
        version = Git(folder).run("--version").decode("utf-8", "replace").strip()
        place = discover(folder)
    except GitUnavailable as error:
        return Check("git", Health.LIMITED, error.message, error.hint or "Install git and put it on PATH.")
    where = f"repository {place.work_tree or place.common_dir}" if place else "this folder is in no repository"
    return Check("git", Health.OK, f"{version}; {where}")


def check_model() -> Check:
    found = model_status()
    if found.files is not None:
        pinned = "pinned" if found.pinned else "not the pinned ones"
        return Check("model", Health.OK, f"weights in {found.folder} ({pinned})")
    health = Health.BROKEN if found.present else Health.LIMITED
    return Check("model", health, found.problem or "there are no weights", found.hint)


def check_annoy() -> Check:
    if importlib.util.find_spec("annoy") is None:
        return Check(
            "annoy",
            Health.LIMITED,
            "not installed: vector search is exact, which is slower above some 50,000 symbols",
            f"{quoted(Path(sys.executable))} -m pip install 'annoy>=1.17.3,<2' (needs a C++ compiler)",
        )
    return Check("annoy", Health.OK, "approximate vector search for large workspaces")


def check_cache(folder: Path) -> Check:
    places = (index_folder(folder), vector_cache_file().parent)
    for place in places:
        problem = write_problem(place)
        if problem is not None:
            return Check("cache", Health.BROKEN, f"{place}: {problem}", f"Make {place} a folder you can write to.")
    return Check("cache", Health.OK, f"{places[0]} and {places[1]} can be written")


def check_store_folder(folder: Path) -> Check:
    place = folder / ".neuralmind" / "lsp"
    problem = write_problem(place)
    if problem is not None:
        return Check(
            "workspace folder",
            Health.LIMITED,
            f"{place}: {problem}",
            f"Make {folder} writable to keep its memory in it.",
        )
    return Check("workspace folder", Health.OK, f"{place} can be written")


def check_index(status: Callable[[], StatusResult]) -> list[Check]:
    try:
        found = status()
    except Cancelled:
        raise
    except NmError as error:
        return [Check("index", Health.BROKEN, error.message, error.hint or "nm-lsp index --rebuild")]
    left_out = f", {counted(found.n_skipped, 'file')} left out (see `nm-lsp status`)" if found.n_skipped else ""
    detail = (
        f"{counted(found.files, 'file')}, {counted(found.symbols, 'symbol')}, "
        f"vectors {found.vectors.done:,} of {found.vectors.total:,}{left_out}"
    )
    rows = [Check("index", Health.OK, detail) if found.ready else
            Check("index", Health.LIMITED, f"still being built: {detail}", "nm-lsp index")]  # fmt: skip
    rows += [
        Check(problem.code, Health.LIMITED, problem.message, problem.hint or "nm-lsp doctor")
        for problem in found.problems
        if problem.code not in _CHECKED_APART
    ]
    return rows


def check_handshake(folder: Path, cancel: Cancellation) -> Check:
    try:
        seconds = check_server(folder, cancel)
    except Cancelled:
        raise
    except NmError as error:
        hint = error.hint or "Install it again, in a copy of its repository: pip install --force-reinstall ."
        return Check("server", Health.BROKEN, error.message, hint)
    return Check("server", Health.OK, f"answered `initialize` after {seconds:.1f} s and ended cleanly")


def write_problem(folder: Path) -> str | None:
    """Why `folder` (or the nearest folder above it that exists) cannot be written, None if it can."""
    existing = next(candidate for candidate in (folder, *folder.parents) if candidate.exists())
    if not existing.is_dir():
        return f"{existing} is not a folder"
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"\0")
    except OSError as error:
        return error.strerror or str(error)
    return None
