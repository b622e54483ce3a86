"""Reading decisions: lists, records, history, what was believed at another time, what changed since."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from nm_lsp.base.errors import GitUnavailable, InvalidInput, NotFound
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.model import AnchorKind, DecisionId, Sighting, unpack_text
from nm_lsp.decisions.validation import escaped, escaped_line
from nm_lsp.decisions.verdicts import AnchorView, Status, Verdict, aged, orphaned
from nm_lsp.engine.decision_requests import (
    AuditParams,
    AuditResult,
    AuditView,
    DecisionRow,
    DiffParams,
    DiffResult,
    GetParams,
    GetResult,
    HistoryParams,
    HistoryResult,
    HistoryRow,
    ListParams,
    ListResult,
    TimelineParams,
)
from nm_lsp.engine.decisions import auditing
from nm_lsp.engine.decisions.acts import find
from nm_lsp.engine.decisions.anchoring import Prefix, repository_path
from nm_lsp.engine.decisions.code import Grammars, shown
from nm_lsp.engine.decisions.marks import Placement
from nm_lsp.engine.decisions.rows import SHORT, Describer
from nm_lsp.engine.decisions.sightings import as_stored
from nm_lsp.engine.decisions.worktree import Look, WorkTree
from nm_lsp.storage.times import moment_of

MAX_GET = 20
MAX_LIST = 1_000
MAX_COMPARED = 2_000_000
"""Bytes of either text that are shown beside the other."""
STATUSES = ("active", "stale", "invalidated", "unknown")
VIEWS = {
    "stale": "Changed since they were confirmed",
    "invalidated": "Said to hold no longer",
    "aged": "Not touched for 90 days",
    "orphaned": "Confirmed at commits that are gone",
    "at-risk": "Would become stale by what is not committed yet",
}

Risks = Callable[[], Mapping[DecisionId, object]]


def ids_in(tree: WorkTree, look: Look, view: str, risks: Risks) -> list[DecisionId]:
    """The decisions of one status or view, newest first. Raises `InvalidInput` for another word."""
    newest = sorted(look.records, key=lambda i: (look.records[i].recorded_at, i), reverse=True)
    if view in STATUSES:
        return [i for i in newest if look.verdicts[i].status.value == view]
    match view:
        case "aged":
            now = moment_of(tree.keeper.clock())
            return [i for i in newest if aged(look.records[i], now)]
        case "orphaned":
            return _orphaned(tree, look, newest)
        case "at-risk":
            at_risk = risks()
            return [i for i in newest if i in at_risk or look.verdicts[i].unlanded]
        case _:
            known = ", ".join((*STATUSES, "aged", "orphaned", "at-risk"))
            raise InvalidInput("status", f"{view[:40]!r} is no status or view.", hint=f"Known: {known}.")


def _orphaned(tree: WorkTree, look: Look, ids: Iterable[DecisionId]) -> list[DecisionId]:
    if tree.git is None:
        return []
    commits = {c.commit for record in look.records.values() for c in record.confirmations if c.commit is not None}
    present = tree.git.present(sorted(commits))
    return [i for i in ids if orphaned(look.records[i], present)]


def list_decisions(tree: WorkTree, look: Look, prefix: Prefix, params: ListParams, risks: Risks) -> ListResult:
    if not 1 <= params.limit <= MAX_LIST:
        raise InvalidInput("limit", f"{params.limit} is not between 1 and {MAX_LIST}.")
    if params.status is not None:
        chosen = ids_in(tree, look, params.status, risks)
    else:
        chosen = sorted(look.records, key=lambda i: (look.records[i].recorded_at, i), reverse=True)
    if params.path is not None:
        repo_path = repository_path(tree.root, prefix, params.path, "path")
        placed = {
            one.decision
            for one in Placement(look).at(repo_path)
            if params.symbol is None or one.view.now.symbol in {None, params.symbol}
        }
        chosen = [i for i in chosen if i in placed]
        if params.status is None:
            chosen = [i for i in chosen if look.verdicts[i].status is not Status.INVALIDATED]
    elif params.symbol is not None:
        raise InvalidInput("path", "is missing; a symbol is looked for in a file.")
    if params.reason is not None:
        chosen = [i for i in chosen if (r := look.verdicts[i].reason) is not None and r.value == params.reason]
    start = _cursor(params.cursor)
    page = chosen[start : start + params.limit]
    describer = Describer.of(tree, look, prefix, page)
    following = str(start + params.limit) if start + params.limit < len(chosen) else None
    return ListResult(tuple(describer.row(i) for i in page), len(chosen), following)


def _cursor(text: str | None) -> int:
    if text is None:
        return 0
    if not text.isdecimal():
        raise InvalidInput("cursor", "is none that an earlier page gave.")
    return int(text)


def get(tree: WorkTree, look: Look, prefix: Prefix, params: GetParams) -> GetResult:
    if not 1 <= len(params.ids) <= MAX_GET:
        raise InvalidInput("ids", f"{len(params.ids)} ids; between 1 and {MAX_GET} are taken.")
    ids = list(dict.fromkeys(find(look, text, "ids") for text in params.ids))
    describer = Describer.of(tree, look, prefix, ids)
    return GetResult(tuple(describer.detail(i) for i in ids))


def timeline(tree: WorkTree, look: Look, prefix: Prefix, params: TimelineParams) -> ListResult:
    identity = find(look, params.id)
    ordered = sorted(look.records, key=lambda i: (look.records[i].recorded_at, i))
    at = ordered.index(identity)
    page = ordered[max(0, at - max(params.before, 0)) : at + max(params.after, 0) + 1]
    describer = Describer.of(tree, look, prefix, page)
    return ListResult(tuple(describer.row(i) for i in page), len(ordered), None)


# -- history -------------------------------------------------------------------------------------------------------


def history(tree: WorkTree, look: Look, params: HistoryParams) -> HistoryResult:
    """Every event and finding of a decision, oldest first."""
    identity = find(look, params.id)
    store = tree.keeper.store()
    assert store is not None, "a decision that was found is in a store"
    rows = [_event_row(event) for event in store.history(identity)]
    for finding in store.findings(identity):
        text = f"went stale: {finding.path} ({finding.detail}) by {finding.commit[:SHORT]}"
        if finding.kind == "moved":
            text = f"moved from {finding.path} to {finding.detail} by {finding.commit[:SHORT]}"
        after: dict[str, object] = {"path": finding.path, "detail": finding.detail}
        rows.append(
            HistoryRow(finding.time, finding.kind, None, None, None, finding.commit, None, None, {}, after, text)
        )
    rows.sort(key=lambda row: row.time)
    return HistoryResult(identity, escaped_line(look.records[identity].decision.title), tuple(rows))


def _event_row(event: Event) -> HistoryRow:
    return HistoryRow(
        time=event.time,
        kind=event.kind.value,
        actor=escaped_line(event.actor),
        face=event.face,
        client=escaped_line(event.client) if event.client is not None else None,
        commit=event.commit,
        branch=event.branch,
        reason=escaped(event.reason) if event.reason is not None else None,
        before=_readable(event.before),
        after=_readable(event.after),
        text=escaped(_sentence(event), one_line=True),
    )


def _readable(values: Mapping[str, object]) -> dict[str, object]:
    """Without the bookkeeping of confirmations: which files and commit say what a person wants to know."""
    readable = dict(values)
    confirmation = readable.pop("confirmation", None)
    if isinstance(confirmation, dict):
        seen = confirmation.get("seen")
        anchors = [row.get("anchor") for row in seen if isinstance(row, dict)] if isinstance(seen, list) else []
        readable["confirmed"] = {"commit": confirmation.get("commit"), "anchors": anchors}
    return {name: _harmless(value) for name, value in readable.items()}


def _harmless(value: object) -> object:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    return {name: _harmless(item) for name, item in value.items()} if isinstance(value, dict) else value


def _sentence(event: Event) -> str:
    by = f"by {event.actor} ({event.client or event.face})"
    why = f": {event.reason}" if event.reason else ""
    match event.kind:
        case EventKind.AMENDED:
            fields = ", ".join(name for name in event.after if name != "confirmation")
            return f"amended ({fields}) {by}{why}"
        case EventKind.INVALIDATED | EventKind.SUPERSEDED:
            replacement = event.after.get("supersededBy")
            return f"{event.kind.value} {by}{why}" + (f"; replaced by {replacement}" if replacement else "")
        case EventKind.REDACTED:
            return f"{event.after.get('field')} redacted {by}{why}"
        case _:
            return f"{event.kind.value} {by}{why}"


# -- what changed --------------------------------------------------------------------------------------------------


def diff(tree: WorkTree, look: Look, prefix: Prefix, params: DiffParams) -> DiffResult:
    """The seen text of one anchor beside the present one: a symbol's text, or a whole file's."""
    identity = find(look, params.id)
    record, verdict = look.records[identity], look.verdicts[identity]
    confirmation = record.confirmations[verdict.confirmation]
    wanted = repository_path(tree.root, prefix, params.path, "path") if params.path is not None else verdict.path
    at, path = _chosen(verdict, confirmation.seen, wanted)
    sighting = confirmation.seen[at]
    view = verdict.anchors[at] if at < len(verdict.anchors) else None
    places = identity, path, prefix.to_folder(path), verdict.commit, confirmation.commit
    try:
        seen = _seen_text(tree, sighting, path)
        now = _present_text(tree, sighting, view, path)
    except _NotForPeople as reason:
        return DiffResult(*places, None, None, f"{path}: {reason}\n")
    # A symbol's text ends without a line end, as the last line of a file may; each line of a difference has one.
    text = "".join(
        line if line.endswith("\n") else line + "\n"
        for line in difflib.unified_diff(
            (seen or "").splitlines(keepends=True),
            (now or "").splitlines(keepends=True),
            f"{path} when it was confirmed",
            f"{path} now",
        )
    )
    return DiffResult(*places, seen, now, text)


class _NotForPeople(Exception):
    """Bytes that nobody can read beside others; the message says why."""


def _text(data: bytes) -> str:
    if len(data) > MAX_COMPARED:
        raise _NotForPeople(f"{len(data):,} bytes are too many to be compared by eye")
    if b"\0" in data:
        raise _NotForPeople("is binary")
    return data.decode("utf-8", "replace")


def _chosen(verdict: Verdict, seen: tuple[Sighting, ...], wanted: str | None) -> tuple[int, str]:
    for at, view in enumerate(verdict.anchors):
        paths = [away.path for away in view.away]
        if wanted is None and view.doubted and paths:
            return at, paths[0]
        if wanted is not None and (wanted in paths or wanted in {view.now.path, view.recorded.path}):
            return at, wanted
    for at, sighting in enumerate(seen):
        for file in sighting.files:
            if wanted is None or file.path == wanted:
                return at, file.path
    raise NotFound(f"{wanted} is not governed by {verdict.id}.")


def _seen_text(tree: WorkTree, sighting: Sighting, path: str) -> str | None:
    if sighting.packed_text is not None:
        return shown(unpack_text(sighting.packed_text))
    row = next((file for file in sighting.files if file.path == path), sighting.files[0] if sighting.files else None)
    if row is None or row.fp is None or tree.git is None:
        return None
    try:
        data = tree.git.blob(row.fp)
        if data is None and row.base is not None:
            data = tree.git.blob(row.base)
    except GitUnavailable:
        return None
    return _text(data) if data is not None else None


def _present_text(tree: WorkTree, sighting: Sighting, view: AnchorView | None, path: str) -> str | None:
    here = view.now.path if view is not None and sighting.anchor.kind is not AnchorKind.FOLDER else path
    if sighting.anchor.kind in {AnchorKind.FOLDER, AnchorKind.GLOB}:
        here = path
    try:
        data = (tree.root / here).read_bytes()
    except OSError:
        return None
    # Without what filters did to the disk, which git has not seen; where only a program of the repository's own could
    # tell, as it lies there.
    with suppress(GitUnavailable):
        data = as_stored(tree, here, data, None)
    if sighting.anchor.symbol is not None:
        return shown(Grammars().symbol_text(here, sighting.anchor.symbol, data) or b"")
    return _text(data)


def audit(tree: WorkTree, look: Look, prefix: Prefix, params: AuditParams, risks: Risks) -> AuditResult:
    """The maintenance views, one word each."""
    if params.view is not None and params.view not in VIEWS:
        raise InvalidInput("view", f"{params.view[:40]!r} is no view.", hint=f"Known: {', '.join(VIEWS)}.")
    views = []
    for name in [params.view] if params.view is not None else VIEWS:
        ids = ids_in(tree, look, name, risks)
        describer = Describer.of(tree, look, prefix, ids)
        views.append(AuditView(name, VIEWS[name], tuple(describer.row(i) for i in ids)))
    return AuditResult(tuple(views), problems(tree, look))


def problems(tree: WorkTree, look: Look) -> tuple[str, ...]:
    """What is wrong with the store, its audit or git, in words."""
    found = []
    keeper = tree.keeper
    if keeper.problem is not None:
        found.append(str(keeper.problem))
    if keeper.altered is not None:
        found.append(str(keeper.altered))
    if look.git_problem is not None:
        found.append(str(look.git_problem))
    return (*found, *auditing.losses(keeper))


def counts(look: Look) -> dict[str, int]:
    """Decisions by status; every status is named."""
    found = dict.fromkeys(STATUSES, 0)
    for verdict in look.verdicts.values():
        found[verdict.status.value] += 1
    return found


def rows_of(tree: WorkTree, look: Look, prefix: Prefix, ids: Iterable[DecisionId]) -> tuple[DecisionRow, ...]:
    chosen = list(ids)
    describer = Describer.of(tree, look, prefix, chosen)
    return tuple(describer.row(i) for i in chosen)
