"""Differences of two trees, and how deletions and additions in one pair up as renames that keep the bytes.

A difference lists only paths whose content token differs, so a mode change is not in it.

Reading of rule 3 ("renames are paired one to one, same base name first, then in path order"): per content, the removed
paths in byte order each take the first free added path of their base name; what is left pairs in byte order. An empty
file pairs only with its base name. A changed path is never an end of a rename.

Must not know: git, anchors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from nm_lsp.decisions.model import Content

# The ids of the empty blob for SHA-1 and SHA-256 repositories.
EMPTY_FILES: Final = frozenset(
    {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    }
)


@dataclass(frozen=True, slots=True)
class Change:
    """`path` held `old` before and holds `new` after; None is "absent". The two always differ."""

    path: str
    old: Content | None
    new: Content | None


Difference: TypeAlias = Sequence[Change]


def pair_renames(difference: Difference) -> dict[str, str]:
    """Old path → new path of every rename in `difference` that keeps the bytes."""
    removed: dict[Content, list[str]] = {}
    for change in difference:
        if change.new is None and change.old is not None:
            removed.setdefault(change.old, []).append(change.path)
    if not removed:
        return {}
    added: dict[Content, list[str]] = {}
    for change in difference:
        if change.old is None and change.new in removed:
            added.setdefault(change.new, []).append(change.path)
    pairs: dict[str, str] = {}
    for content, targets in added.items():
        _pair_one_content(_in_byte_order(removed[content]), _in_byte_order(targets), content in EMPTY_FILES, pairs)
    return pairs


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _pair_one_content(sources: list[str], targets: list[str], same_name_only: bool, pairs: dict[str, str]) -> None:
    free: dict[str, list[str]] = {}
    for target in reversed(targets):
        free.setdefault(base_name(target), []).append(target)
    taken: set[str] = set()
    for source in sources:
        candidates = free.get(base_name(source))
        if candidates:
            pairs[source] = candidates.pop()
            taken.add(pairs[source])
    if same_name_only:
        return
    rest = (target for target in targets if target not in taken)
    pairs.update(zip([source for source in sources if source not in pairs], rest, strict=False))


def _in_byte_order(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: path.encode("utf-8", "surrogateescape"))
