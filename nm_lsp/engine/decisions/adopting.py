"""Drafts of other tools become decisions: their files become anchors, their standing events.

Guarantees: a draft that was adopted before is found again by its id and changed only where its source changed and
nobody here did; what cannot be adopted says why and leaves the others alone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from nm_lsp.base.errors import InvalidInput, NmError, NotFound
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.fold import DecisionRecord, Standing, apply, decision_to_plain, fold
from nm_lsp.decisions.model import (
    N_ANCESTORS,
    Anchor,
    AnchorKind,
    Confirmation,
    Content,
    DecisionId,
    Plain,
    SeenFile,
    Sighting,
    pack_ancestors,
    parse_anchor,
)
from nm_lsp.decisions.validation import MAX_REASON, checked_fields, checked_prose, escaped
from nm_lsp.engine.decisions.acts import Scene
from nm_lsp.engine.decisions.anchoring import anchors_of, repository_path
from nm_lsp.engine.decisions.drafts import Draft, Seen
from nm_lsp.engine.decisions.merging import MakeEvent, Merge, cycles
from nm_lsp.engine.decisions.sightings import confirm
from nm_lsp.git import Repository as GitRepository

IMPORTED: Final = "imported from "
"""How the reason of an event that an import made begins."""
MAX_ANCHORS: Final = 20


@dataclass(frozen=True, slots=True)
class Ready:
    """A draft whose anchors were found and whose texts were checked."""

    draft: Draft
    fields: dict[str, Plain]


def prepare(
    scene: Scene, drafts: Iterable[Draft], known: Mapping[DecisionId, DecisionRecord], problems: list[str]
) -> list[Ready]:
    """The drafts that can be adopted. Asks git about their files."""
    ready = []
    tracked = _Tracked(scene.tree.git)
    for draft in drafts:
        try:
            fields = checked_fields(draft.fields)
            if draft.lost is not None:
                checked_prose(draft.lost, "status", MAX_REASON)
            if draft.id not in known:
                anchors = _anchors(scene, draft, tracked)
                confirmation = _confirmation(scene, draft, anchors)
                fields["anchors"] = [anchor.to_plain() for anchor in anchors]
                fields["confirmation"] = confirmation.to_plain()
            ready.append(Ready(draft, fields))
        except NmError as error:
            problems.append(f"{draft.source}: {error.message}")
    return ready


def adopt(
    ready: Sequence[Ready],
    records: Mapping[DecisionId, DecisionRecord],
    history: Callable[[DecisionId], Sequence[Event]],
    make: MakeEvent,
) -> Merge:
    """The events that make the drafts decisions, or bring those up to date that were adopted before."""
    result = Merge()
    after: dict[DecisionId, DecisionRecord] = {}
    coming = {one.draft.id for one in ready}
    for one in ready:
        draft = one.draft
        depends_on: list[Plain] = [i for i in draft.depends_on if i in records or i in coming]
        record = records.get(draft.id) or after.get(draft.id)
        replacement = draft.superseded_by if draft.superseded_by in {*records, *coming} else None
        if record is None:
            fields = {**one.fields, **({"dependsOn": depends_on} if depends_on else {})}
            reason = f"{IMPORTED}{draft.source}"
            events = [make(EventKind.RECORDED, draft.id, after=fields, reason=reason)]
            events += _lost(draft, replacement, make)
            result.imported.append(draft.id)
            after[draft.id] = fold(events, merged=True)
        else:
            events = _update(one, record, history(draft.id), make, result.problems)
            if record.standing is Standing.ACTIVE:
                events += _lost(draft, replacement, make)
            elif draft.lost is None:
                result.problems.append(f"{draft.source}: {draft.id} was invalidated here, and stays so")
            if events:
                result.merged.append(draft.id)
                after[draft.id] = reduce(lambda r, event: apply(r, event, merged=True), events, record)
            else:
                result.unchanged += 1
        result.events += events
    result.problems += cycles({**records, **after}, after)
    return result


def _lost(draft: Draft, replacement: DecisionId | None, make: MakeEvent) -> list[Event]:
    if draft.lost is None:
        return []
    if replacement is None:
        return [make(EventKind.INVALIDATED, draft.id, after={}, reason=draft.lost)]
    return [make(EventKind.SUPERSEDED, draft.id, after={"supersededBy": replacement}, reason=draft.lost)]


def _update(
    one: Ready, record: DecisionRecord, history: Sequence[Event], make: MakeEvent, problems: list[str]
) -> list[Event]:
    """An amendment of what the source changed since it was imported last. What it governs stays as it is."""
    imported: dict[str, Plain] = {}
    for event in history:
        if event.reason is not None and event.reason.startswith(IMPORTED):
            imported |= event.after
    now = decision_to_plain(record.decision)
    values, before = {}, {}
    for name, value in one.fields.items():
        empty: Plain = [] if isinstance(value, list) else None
        if value == imported.get(name, empty) or value == now.get(name, empty):
            continue
        if now.get(name, empty) != imported.get(name, empty):
            problems.append(
                f"{one.draft.source}: {name} was changed there and here; {record.id} keeps what it says here"
            )
            continue
        values[name] = value
        if name in now:
            before[name] = now[name]
    if not values:
        return []
    reason = f"{IMPORTED}{one.draft.source}"
    return [make(EventKind.AMENDED, record.id, before=before, after=values, reason=reason)]


# -- what it governs -----------------------------------------------------------------------------------------------


class _Tracked:
    """The paths that git knows, read once and only if asked."""

    def __init__(self, git: GitRepository | None) -> None:
        self._git = git
        self._paths: frozenset[str] | None = None

    def __contains__(self, path: str) -> bool:
        if self._git is None:
            return True
        if self._paths is None:
            self._paths = frozenset(self._git.listing())
        return path in self._paths


def _anchors(scene: Scene, draft: Draft, tracked: _Tracked) -> tuple[Anchor, ...]:
    if draft.seen is not None:
        return _named_anchors(scene, draft)
    root = scene.tree.root
    home = posixpath.dirname(draft.fallback) if draft.fallback is not None else ""
    found: dict[str, None] = {}
    for path in draft.files:
        for candidate in (path, posixpath.normpath(posixpath.join(home, path))):
            inside = not candidate.startswith(("..", "/", ".git/", ".neuralmind/"))
            if inside and candidate in tracked and (root / candidate).is_file():
                # Records of one folder name each other; they do not govern each other.
                if posixpath.dirname(candidate) != home or not candidate.endswith(".md"):
                    found[candidate] = None
                break
    chosen = list(found)[:MAX_ANCHORS] or ([draft.fallback] if draft.fallback is not None else [])
    if not chosen:
        raise NotFound("names no file of this repository, so nothing would ever doubt it.")
    return anchors_of(scene.tree, scene.prefix, [f"/{path}" for path in chosen])


def _named_anchors(scene: Scene, draft: Draft) -> tuple[Anchor, ...]:
    """The files as the other tool named them, whether they are there or not: their absence is what it is about."""
    found: dict[Anchor, None] = {}
    for text in draft.files:
        try:
            path = repository_path(scene.tree.root, scene.prefix, text, "files")
            is_folder = (scene.tree.root / path).is_dir()
            found[parse_anchor(path + "/" if is_folder else path)] = None
        except NmError:
            continue
    if not found:
        raise InvalidInput("files", "none of them is a path inside this repository.")
    return tuple(found)


def _confirmation(scene: Scene, draft: Draft, anchors: tuple[Anchor, ...]) -> Confirmation:
    if draft.seen is None:
        return confirm(scene.tree, anchors, scene.screen)
    git = scene.tree.git
    if git is None:
        raise NotFound("needs the repository that it was recorded in.")
    head = git.head().commit
    commit = _commit_then(git, draft.seen, head)
    blobs = {_normal(scene, path): blob for path, blob in draft.seen.blobs.items()}
    sightings = []
    for anchor in anchors:
        files = _files_then(git, commit, anchor)
        rows = tuple(SeenFile(path, blobs.get(path, base), base) for path, base in files.items())
        if all(row.fp is None for row in rows):
            raise NotFound(f"{escaped(str(anchor), one_line=True)} is not in the commit it was recorded at.")
        sightings.append(Sighting(anchor, rows))
    ancestors = pack_ancestors(git.first_parents(commit, N_ANCESTORS)) if commit is not None else ""
    return Confirmation(commit, tuple(sightings), ancestors)


def _commit_then(git: GitRepository, seen: Seen, head: str | None) -> str | None:
    """The commit it names; else the newest of HEAD's history at that time; else the time before the first commit."""
    commit = git.resolve(seen.commit) if seen.commit else None
    if commit is None and seen.time is not None and head is not None:
        commit = git.commit_at(seen.time, head)
    return commit


def _files_then(git: GitRepository, commit: str | None, anchor: Anchor) -> dict[str, Content | None]:
    if commit is None:
        return {anchor.path: None}
    if anchor.kind is AnchorKind.FOLDER:
        return dict(git.files(commit, anchor.path)) or {anchor.path: None}
    return {anchor.path: git.contents(commit, [anchor.path]).get(anchor.path)}


def _normal(scene: Scene, path: str) -> str:
    try:
        return repository_path(scene.tree.root, scene.prefix, path, "files")
    except NmError:
        return path
