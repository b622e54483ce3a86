"""What the git hooks noted about rewritten commits.

Hooks decide when one looks, never what one sees, with one exception: `post-rewrite`'s list of (old, new) commits lets a
confirmation follow an amended or rebased commit. Whoever reads it here stores it as an event.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from nm_lsp.git import Place
from nm_lsp.git.hook_log import START, Offset, read_log, roll_if_large

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rewrites:
    """`pairs` are (old, new) commits in the order in which git told them; `offset` is for the next call."""

    pairs: tuple[Pair, ...]
    offset: Offset


def read_rewrites(place: Place, known: Collection[Pair] = (), since: Offset = START, *, roll: bool = False) -> Rewrites:
    """The pairs noted since `since` that are not in `known`, each once.

    From `START` it reads everything that is still there, so that nothing noted while no process ran is missed; `known`
    are the pairs that are stored. `roll` lets a large file that was read to its end be put aside: for a caller that
    has stored what it read before.
    """
    lines, offset = read_log(place.common_dir, since)
    seen = set(known)
    pairs: list[Pair] = []
    for line in lines:
        pair = line.pair()
        if pair is not None and pair not in seen:
            seen.add(pair)
            pairs.append(pair)
    if roll and not pairs:
        roll_if_large(place.common_dir, offset)
    return Rewrites(tuple(pairs), offset)
