"""A history in which only some paths change: what judging a few decisions needs of many thousand commits.

Guarantees: a `Judge` over a `NarrowHistory` that has nothing `left_out` says of these decisions what one over the whole
history says. An anchor moves only with a commit that removes a path of its own, and such differences are given whole;
in all others only changes at the anchor's own paths matter to it. Where a move leads to a path that is not among the
given ones, it is named in `left_out`, and after `widen` another judge has to look; nothing is then read twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from nm_lsp.decisions.changes import Change, Difference, pair_renames
from nm_lsp.decisions.fold import Memory
from nm_lsp.decisions.globs import base_folder
from nm_lsp.decisions.model import AnchorKind, Content
from nm_lsp.git import Repository

_WIDE: Final = frozenset({AnchorKind.FOLDER, AnchorKind.GLOB})
_FEW: Final = 200
"""With more paths git compares almost everything anyway."""


def places_of(memory: Memory) -> set[str] | None:
    """The paths and folders (with `/`) that the decisions were ever anchored at; None where narrowing is of no use."""
    anchors = {s.anchor for record in memory.records.values() for given in record.confirmations for s in given.seen}
    places = {base_folder(anchor) if anchor.kind in _WIDE else anchor.path for anchor in anchors}
    return places if is_few(places) else None


def _folders(places: set[str]) -> tuple[str, ...]:
    return tuple(place for place in places if place.endswith("/"))


def is_few(places: set[str]) -> bool:
    return "" not in places and 0 < len(places) <= _FEW


class NarrowHistory:
    """A `decisions.ports.History` of `repository` for anchors at `places`."""

    def __init__(self, repository: Repository, places: set[str]) -> None:
        self._repository = repository
        self._generations = [places]
        self._places = set(places)
        self._folders = _folders(places)
        self._commits: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[str, tuple[str, ...]]]] = {}
        # Per pair what is known, and of how many generations of places; whole differences know all to come.
        self._known: dict[tuple[str | None, str], tuple[Difference, int]] = {}
        self.left_out: set[str] = set()

    def widen(self) -> bool:
        """Take what was left out in; False where so many paths are looked at then that narrowing is of no use."""
        self._generations.append(self.left_out)
        self._places |= self.left_out
        self._folders = _folders(self._places)
        self.left_out = set()
        return is_few(self._places)

    def commits(self, tips: Iterable[str], known: Iterable[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        key = (tuple(tips), tuple(known))
        if key not in self._commits:
            self._commits[key] = self._repository.commits(*key)
        return self._commits[key]

    def files(self, commit: str, under: str = "") -> dict[str, Content]:
        return self._repository.files(commit, under)

    def contents(self, commit: str, paths: Iterable[str]) -> dict[str, Content]:
        return self._repository.contents(commit, paths)

    def present(self, objects: Sequence[str]) -> set[str]:
        return self._repository.present(objects)

    def blob(self, content: Content) -> bytes | None:
        return self._repository.blob(content)

    def differences(self, pairs: Sequence[tuple[str | None, str]]) -> Sequence[Difference]:
        for generation, places in enumerate(self._generations):
            missing = [pair for pair in dict.fromkeys(pairs) if self._n_known(pair) == generation]
            self._read(missing, places, generation)
        for pair in pairs:
            difference, _ = self._known[pair]
            if any(change.new is None for change in difference):
                self._note_targets(difference)
        return [self._known[pair][0] for pair in pairs]

    def _n_known(self, pair: tuple[str | None, str]) -> int:
        return self._known[pair][1] if pair in self._known else 0

    def _read(self, pairs: Sequence[tuple[str | None, str]], places: set[str], generation: int) -> None:
        """Add what changed at one generation of places; where a path was removed, everything."""
        narrow = self._repository.differences(pairs, sorted(places))
        removing = [pair for pair, added in zip(pairs, narrow, strict=True) if any(c.new is None for c in added)]
        for pair, added in zip(pairs, narrow, strict=True):
            before = self._known[pair][0] if pair in self._known else ()
            # A folder of a later generation may hold paths of an earlier one.
            merged = tuple(dict.fromkeys((*before, *added))) if before and added else before or added
            self._known[pair] = (merged, generation + 1)
        for pair, difference in zip(removing, self._repository.differences(removing), strict=True):
            self._known[pair] = (difference, sys.maxsize)

    def _note_targets(self, difference: Sequence[Change]) -> None:
        """Where an anchor that lost a path may be afterwards: more places rather than too few."""
        renames = pair_renames(difference)
        for change in difference:
            if change.new is not None or not self._covers(change.path):
                continue
            target = renames.get(change.path)
            if target is None:
                # A symbol may have gone into any added file.
                found = {other.path for other in difference if other.old is None}
            else:
                found = {target, *self._moved_folders(change.path, target)}
            self.left_out |= {place for place in found if not self._covers(place)}

    def _moved_folders(self, path: str, target: str) -> Iterable[str]:
        """The folders that a folder around `path` may have become if its files kept their places in it."""
        for folder in self._folders:
            rest = path.removeprefix(folder)
            if rest != path and target.endswith("/" + rest):
                yield target[: -len(rest)]
            elif rest != path and target == rest:
                yield ""

    def _covers(self, place: str) -> bool:
        return place in self._places or (bool(self._folders) and place.startswith(self._folders))
