"""One step of a walk: what one difference of two trees means for one anchor of one confirmation (rules 3, 4 and 7).

`step` is a pure function of the anchor's state and the difference; the same state object comes back if nothing at the
anchor changed. States are immutable, so heads share them.

Readings of the rules, where they leave room:
- "Removed" means gone from its path without a rename that keeps the bytes. A later file of the same name at the same
  path is the anchor again; that ends no doubt.
- A rename pairs the bytes of the two trees; bytes seen but not yet committed take no part in it.
- "The only added file that holds the same code" is asked only where the symbol's file was removed and is no end of a
  rename; files that are the target of a rename of another file are not "added".
- A symbol cut out of a file that stays is a change of that file.
- A seen absence (a file deleted but not committed) is landed by its removal.
- Where a folder anchor's files all move, that is judged before single renames; the anchor follows, also into a folder
  inside the old one; the first fitting folder in byte order is taken. A glob's files move with the folder before its
  first sign, and files that it does not govern may stay behind.
- A file that was removed from a folder and comes back joins it with the bytes it comes with.

Must not know: git, which commits lie where, which confirmation stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from nm_lsp.decisions.changes import Change, Difference, pair_renames
from nm_lsp.decisions.globs import base_folder, governs, rest_pattern
from nm_lsp.decisions.model import AnchorKind, Content, SeenFile, Sighting
from nm_lsp.decisions.symbols import SymbolReader

# What a history of findings keeps per anchor: the first doubt and this many of the newest.
_N_DOUBTS: Final = 100


class DoubtKind(Enum):
    CHANGED = "changed"
    REMOVED = "removed"
    MOVED_OUT = "moved-out"
    LANDED_OTHER = "landed-other"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One commit's change at one path that doubts a confirmation, compared with `parent`.

    `from_seen` says that the path held what was seen before.
    """

    commit: str | None
    path: str
    kind: DoubtKind
    from_seen: bool
    order: int = 0
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    commit: str | None
    old: str
    new: str
    order: int = 0


@dataclass(frozen=True, slots=True)
class AnchorState:
    """An anchor at one commit. `path` is where it is (a folder with its `/`; for a glob, its base folder).

    `away` maps each path that does not hold what was seen to (seen, held now). `members` overrides, for folder and glob
    anchors, what was seen of a file below the base folder: its content since it joined, None once it left. `seen` has,
    for these kinds, what the confirmation saw below the base folder. `unknown` names a path whose bytes are not here.
    """

    path: str
    gone: bool = False
    touched: frozenset[str] = frozenset()
    away: Mapping[str, tuple[Content | None, Content | None]] = field(default_factory=dict)
    members: Mapping[str, Content | None] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    moves: tuple[Move, ...] = ()
    unknown: str | None = None
    seen: Mapping[str, SeenFile] = field(default_factory=dict)


class Step:
    """One difference, from the tree of `older` to that of `newer`, with what several anchors ask of it."""

    __slots__ = ("_below", "_files_before", "_renames", "changes", "code", "difference", "newer", "older", "order")

    def __init__(
        self,
        difference: Difference,
        older: str | None,
        newer: str | None,
        order: int,
        code: SymbolReader,
        files_before: Callable[[str], Iterable[str]],
    ) -> None:
        """`files_before(folder)` lists the files below a folder in the older tree."""
        self.difference = difference
        self.changes = {change.path: change for change in difference}
        self.older = older
        self.newer = newer
        self.order = order
        self.code = code
        self._files_before = files_before
        self._renames: dict[str, str] | None = None
        self._below: dict[str, list[Change]] | None = None

    @property
    def renames(self) -> dict[str, str]:
        if self._renames is None:
            self._renames = pair_renames(self.difference)
        return self._renames

    def below(self, folder: str) -> Sequence[Change]:
        """The changes below `folder`, which ends in a slash or is empty."""
        if self._below is None:
            self._below = {"": list(self.difference)}
            for change in self.difference:
                at = change.path.find("/")
                while at >= 0:
                    self._below.setdefault(change.path[: at + 1], []).append(change)
                    at = change.path.find("/", at + 1)
        return self._below.get(folder, ())

    def files_before(self, folder: str) -> Iterable[str]:
        return self._files_before(folder)


def start(sighting: Sighting) -> AnchorState:
    """The state of an anchor at the commit of its confirmation."""
    if sighting.anchor.kind in (AnchorKind.FOLDER, AnchorKind.GLOB):
        folder = base_folder(sighting.anchor)
        return AnchorState(folder, seen={file.path[len(folder) :]: file for file in sighting.files})
    return AnchorState(sighting.anchor.path)


def step(state: AnchorState, sighting: Sighting, over: Step) -> AnchorState:
    """`state` after the difference `over`; the same object if it is not touched."""
    if sighting.anchor.kind in (AnchorKind.FOLDER, AnchorKind.GLOB):
        pattern = rest_pattern(sighting.anchor)
        inside = [c for c in over.below(state.path) if _rest(state.path, pattern, c.path) is not None]
        return _FolderStep(state, over, pattern).take(inside) if inside else state
    change = over.changes.get(state.path)
    if change is None:
        return state
    return (
        _file_removed(state, sighting, over, change)
        if change.new is None
        else _file_held(state, sighting, over, change)
    )


def _file_removed(state: AnchorState, sighting: Sighting, over: Step, change: Change) -> AnchorState:
    seen = sighting.files[0]
    touched = state.touched | {state.path}
    if seen.fp is None:
        return replace(state, gone=True, touched=touched, away={})
    target = over.renames.get(state.path)
    away: Mapping[str, tuple[Content | None, Content | None]] = {}
    if target is not None:
        away = {target: state.away[state.path]} if state.path in state.away else {}
    elif sighting.anchor.kind is AnchorKind.SYMBOL:
        target, unknown = _only_holder(sighting, over)
        if unknown is not None:
            return replace(state, gone=True, touched=touched, unknown=unknown)
    if target is not None:
        move = Move(over.newer, state.path, target, over.order)
        return replace(state, path=target, away=away, moves=(*state.moves, move))
    before = _before(state, sighting, over, change, seen.fp)
    doubt = Doubt(over.newer, state.path, DoubtKind.REMOVED, before, over.order, over.older)
    return replace(
        state, gone=True, touched=touched, away={state.path: (seen.fp, None)}, doubts=_kept(state.doubts, doubt)
    )


def _file_held(state: AnchorState, sighting: Sighting, over: Step, change: Change) -> AnchorState:
    seen = sighting.files[0]
    path, now = state.path, change.new
    assert now is not None
    if now == seen.fp:
        return _held(state, {}, state.doubts)
    if sighting.anchor.kind is AnchorKind.SYMBOL:
        same = over.code.holds(sighting, path, now)
        if same is None:
            return replace(_held(state, state.away, state.doubts), unknown=path)
        if same:
            return _held(state, {}, state.doubts)
    first_landing = seen.fp != seen.base and change.old == seen.base and not state.touched
    kind = DoubtKind.LANDED_OTHER if first_landing else DoubtKind.CHANGED
    before = _before(state, sighting, over, change, seen.fp)
    doubt = Doubt(over.newer, path, kind, before, over.order, over.older)
    return _held(state, {path: (seen.fp, now)}, _kept(state.doubts, doubt))


def _held(
    state: AnchorState, away: Mapping[str, tuple[Content | None, Content | None]], doubts: tuple[Doubt, ...]
) -> AnchorState:
    """`state` with a file at its path. Spelled out, not `replace`: this is where long histories spend their time."""
    touched = state.touched if state.path in state.touched else state.touched | {state.path}
    return AnchorState(state.path, False, touched, away, state.members, doubts, state.moves, state.unknown)


def _before(state: AnchorState, sighting: Sighting, over: Step, change: Change, fp: Content | None) -> bool:
    """Whether the older tree held at the anchor what was seen."""
    if change.old == fp:
        return True
    if sighting.anchor.kind is not AnchorKind.SYMBOL or change.old is None:
        return False
    return over.code.holds(sighting, state.path, change.old) is True


def _only_holder(sighting: Sighting, over: Step) -> tuple[str | None, str | None]:
    """(the only added file that holds the symbol's code, a path whose bytes are needed and not here), each or None."""
    targets = set(over.renames.values())
    found: list[str] = []
    unknown: str | None = None
    for change in over.difference:
        if change.old is None and change.new is not None and change.path not in targets:
            holds = over.code.holds(sighting, change.path, change.new)
            if holds:
                found.append(change.path)
            elif holds is None:
                unknown = change.path
    if len(found) > 1:
        return None, None
    if unknown is not None:
        return None, unknown
    return (found[0] if found else None), None


class _FolderStep:
    """A step of one folder or glob anchor; collects the new state."""

    def __init__(self, state: AnchorState, over: Step, pattern: str | None) -> None:
        self._state = state
        self._seen = state.seen
        self._over = over
        self._pattern = pattern
        self._folder = state.path
        self._members = dict(state.members)
        self._away = dict(state.away)
        self._touched = set(state.touched)
        self._doubts = state.doubts
        self._moves = state.moves

    def take(self, inside: Sequence[Change]) -> AnchorState:
        target = self._moved_to([change for change in inside if change.new is None])
        if target is not None:
            inside = self._follow(target)
        joined_by_move: set[str] = set()
        for change in inside:
            if change.new is None:
                joined_by_move.add(self._removed(change))
        for change in inside:
            if change.old is None and change.path not in joined_by_move:
                self._added(change)
            elif change.old is not None and change.new is not None:
                self._changed(change)
        return replace(
            self._state,
            path=self._folder,
            members=self._members,
            away=self._away,
            touched=frozenset(self._touched),
            doubts=self._doubts,
            moves=self._moves,
        )

    def _moved_to(self, removed: Sequence[Change]) -> str | None:
        """The folder into which all files of the anchor moved, if there is one."""
        over, folder, pattern = self._over, self._folder, self._pattern
        if not removed or not folder:
            return None
        first = removed[0].path[len(folder) :]
        candidates = sorted(
            {
                change.path[: -len(first)]
                for change in over.difference
                if change.old is None and change.new == removed[0].old and change.path.endswith("/" + first)
            },
            key=lambda path: path.encode("utf-8", "surrogateescape"),
        )
        if not candidates:
            return None
        gone = {change.path: change.old for change in removed}
        files = [path for path in over.files_before(folder) if governs(pattern, path[len(folder) :])]
        if not files or not all(path in gone for path in files):
            return None
        for target in candidates:
            arrived = (over.changes.get(target + path[len(folder) :]) for path in files)
            fits = all(c and c.old is None and c.new == gone[path] for c, path in zip(arrived, files, strict=True))
            if fits and not any(True for _ in over.files_before(target)):
                return target
        return None

    def _follow(self, target: str) -> list[Change]:
        """Take the anchor to `target`; what is left to look at are the files that join there."""
        over, old = self._over, self._folder
        self._moves = (*self._moves, Move(over.newer, old, target, over.order))
        self._folder = target
        self._away = {
            target + path[len(old) :] if path.startswith(old) else path: value for path, value in self._away.items()
        }
        moved = {target + change.path[len(old) :] for change in over.below(old) if change.new is None}
        return [
            change
            for change in over.below(target)
            if change.old is None and _rest(target, self._pattern, change.path) is not None and change.path not in moved
        ]

    def _removed(self, change: Change) -> str:
        """Take out a removed file; its new path if it moved inside, else an empty text."""
        path = change.path
        rest = path[len(self._folder) :]
        fp = self._fp(rest, change)
        target = self._over.renames.get(path)
        inside = target is not None and _rest(self._folder, self._pattern, target) is not None
        self._members[rest] = None
        self._touched.add(rest)
        if inside and target is not None:
            held = self._away.pop(path, None)
            if held is not None:
                self._away[target] = held
            if fp is not None:
                self._members[target[len(self._folder) :]] = fp
                return target
            return ""
        if fp is None:
            self._away.pop(path, None)
            return ""
        kind = DoubtKind.REMOVED if target is None else DoubtKind.MOVED_OUT
        self._doubt(path, kind, change.old == fp)
        self._away[path] = (fp, None)
        return ""

    def _added(self, change: Change) -> None:
        rest, now = change.path[len(self._folder) :], change.new
        assert now is not None
        seen = self._seen.get(rest)
        if rest not in self._members and seen is not None:
            # A file seen before it was committed.
            self._settle(change, rest, seen.fp, DoubtKind.LANDED_OTHER)
            return
        self._members[rest] = now
        if change.path in self._away:
            fp = self._away[change.path][0]
            if fp == now:
                del self._away[change.path]
            else:
                self._away[change.path] = (fp, now)

    def _changed(self, change: Change) -> None:
        rest = change.path[len(self._folder) :]
        fp = self._fp(rest, change)
        seen = self._seen.get(rest)
        first_landing = (
            rest not in self._members
            and seen is not None
            and seen.fp != seen.base
            and change.old == seen.base
            and rest not in self._touched
        )
        self._settle(change, rest, fp, DoubtKind.LANDED_OTHER if first_landing else DoubtKind.CHANGED)

    def _settle(self, change: Change, rest: str, fp: Content | None, kind: DoubtKind) -> None:
        self._touched.add(rest)
        if change.new == fp:
            self._away.pop(change.path, None)
            return
        self._doubt(change.path, kind, change.old == fp)
        self._away[change.path] = (fp, change.new)

    def _fp(self, rest: str, change: Change) -> Content | None:
        """What was seen of a file; of one that nobody saw join, the bytes it had (and they stay what was seen)."""
        if rest in self._members:
            return self._members[rest]
        seen = self._seen.get(rest)
        if seen is not None:
            return seen.fp
        self._members[rest] = change.old
        return change.old

    def _doubt(self, path: str, kind: DoubtKind, from_seen: bool) -> None:
        over = self._over
        self._doubts = _kept(self._doubts, Doubt(over.newer, path, kind, from_seen, over.order, over.older))


def _rest(folder: str, pattern: str | None, path: str) -> str | None:
    """`path` below `folder` if it is governed, else None."""
    if not path.startswith(folder):
        return None
    rest = path[len(folder) :]
    return rest if governs(pattern, rest) else None


def _kept(doubts: tuple[Doubt, ...], new: Doubt) -> tuple[Doubt, ...]:
    if len(doubts) > _N_DOUBTS:
        return (doubts[0], *doubts[2:], new)
    return (*doubts, new)
