"""Which diagnostics each file of a folder shows: marks, settings and texts in, diagnostics out. Runs in a thread.

Guarantees: every range lies inside the text it is for; no decision is at risk where it is stale already; files that do
not exist show nothing; open files come first where there are more than may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from nm_lsp.base.text import PositionEncoding
from nm_lsp.engine.decision_requests import Mark, Marks
from nm_lsp.engine.settings import DecisionSettings
from nm_lsp.server.features.markup import one_line
from nm_lsp.server.features.ranges import TextRanges

if TYPE_CHECKING:
    from nm_lsp.server.backend import HostPort

SOURCE = "neuralmind"
STALE, AT_RISK, INVALIDATED = "decision-stale", "decision-at-risk", "decision-invalidated"

_LOUDNESS = {"off": 0, "hint": 1, "information": 2, "warning": 3}
_SEVERITIES = {
    1: types.DiagnosticSeverity.Hint,
    2: types.DiagnosticSeverity.Information,
    3: types.DiagnosticSeverity.Warning,
}

Stamp = tuple[int, int] | None
RiskMarks = Mapping[str, tuple[Mark, ...]]


@dataclass(frozen=True, slots=True)
class OpenText:
    """A document on this client's screen as it was when the plan was begun."""

    uri: str
    version: int | None
    text: str


@dataclass(frozen=True, slots=True)
class FileMarks:
    """What one file shows. `stamp` is the disk's (None: not there), `opened` the document if it is open."""

    path: str
    marks: tuple[tuple[Mark, int], ...]
    opened: OpenText | None
    stamp: Stamp
    diagnostics: tuple[types.Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """By folder-relative path. `missing` are marked files that do not exist now; `n_left_out` those beyond the cap."""

    files: Mapping[str, FileMarks]
    missing: tuple[str, ...]
    n_left_out: int


EMPTY = Plan({}, (), 0)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """`renames`: files that the editor has moved and nobody has committed yet, old repository path to new.
    `foreign`: folders below this one that are opened by themselves, with a trailing slash."""

    host: HostPort
    marks: Marks
    risks: RiskMarks
    opened: Mapping[str, OpenText]
    settings: DecisionSettings
    encoding: PositionEncoding
    renames: Mapping[str, str]
    foreign: tuple[str, ...]
    before: Plan


def plan(request: PlanRequest) -> Plan:
    """Reads the files it has not read before; what did not change is taken from `request.before`."""
    chosen = _chosen(request)
    order = sorted(chosen, key=lambda path: (path not in request.opened, path))
    files: dict[str, FileMarks] = {}
    missing: list[str] = []
    n_left_out = 0
    for path in order:
        if len(files) >= request.settings.max_files:
            n_left_out += 1
            continue
        file = _file(request, path, tuple(chosen[path]))
        if file is None:
            missing.append(path)
        else:
            files[path] = file
    return Plan(files, tuple(missing[: request.settings.max_files]), n_left_out)


def _chosen(request: PlanRequest) -> dict[str, list[tuple[Mark, int]]]:
    """The marks to show by folder-relative path, each with its loudness."""
    found: dict[str, list[tuple[Mark, int]]] = {}
    stale = {mark.decision.id for marks in request.marks.by_path.values() for mark in marks if mark.code == STALE}
    prefix = request.host.decisions.prefix
    for source in (request.marks.by_path, request.risks):
        for repo_path, marks in source.items():
            path = prefix.to_folder(_followed(request, repo_path))
            if path is None or path.startswith(request.foreign):
                continue
            for mark in marks:
                loudness = _loudness(mark, request.settings)
                if loudness and not (mark.code == AT_RISK and mark.decision.id in stale):
                    found.setdefault(path, []).append((mark, loudness))
    return found


def _followed(request: PlanRequest, repo_path: str) -> str:
    """Where a file is that the editor has moved and git still knows under its old name."""
    moved_to = request.renames.get(repo_path)
    if moved_to is None or request.host.decisions.repo_to_abs(repo_path).exists():
        return repo_path
    return moved_to


def _loudness(mark: Mark, settings: DecisionSettings) -> int:
    if mark.code == AT_RISK:
        return _LOUDNESS[settings.at_risk]
    if mark.code == INVALIDATED:
        return _LOUDNESS[settings.invalidated]
    return min(_LOUDNESS[settings.stale], _LOUDNESS[mark.severity])


def _file(request: PlanRequest, path: str, marks: tuple[tuple[Mark, int], ...]) -> FileMarks | None:
    opened = request.opened.get(path)
    stamp = stamp_of(request.host, path)
    known = request.before.files.get(path)
    if known is not None and (known.marks, known.opened, known.stamp) == (marks, opened, stamp):
        return known
    text = opened.text if opened is not None else request.host.outlines.text(path) if stamp is not None else None
    if text is None:
        return None
    ranges = TextRanges(text, request.encoding)
    diagnostics = []
    for mark, loudness in marks:
        spans = request.host.outlines.spans(path, mark.symbol) if mark.symbol is not None else None
        where = ranges.of(spans[1]) if spans is not None else ranges.first_line()
        diagnostics.append(_diagnostic(mark, loudness, where))
    return FileMarks(path, marks, opened, stamp, tuple(diagnostics))


def _diagnostic(mark: Mark, loudness: int, where: types.Range) -> types.Diagnostic:
    decision = mark.decision
    return types.Diagnostic(
        range=where,
        severity=_SEVERITIES[loudness],
        code=mark.code,
        source=SOURCE,
        message=f"{one_line(mark.message)} ({decision.id})",
        data={"id": decision.id, "revision": decision.revision, "head": mark.head},
    )


def stamp_of(host: HostPort, path: str) -> Stamp:
    """When and how large a file was when it was written last; None where there is no file."""
    try:
        status = (host.folder / path).stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def stamps_of(host: HostPort, paths: list[str]) -> dict[str, Stamp]:
    return {path: stamp_of(host, path) for path in paths}
