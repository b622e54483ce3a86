"""What people's acts need: the confirmation that an act gives, and whether a decision can be restored now.

Guarantees: a confirmation names every file that its anchors govern, with the bytes seen and those committed; a refusal
says what to do instead.

Must not know: how bytes are read or hashed, events' times and actors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nm_lsp.base.errors import InvalidInput, Refused
from nm_lsp.decisions.globs import anchor_governs
from nm_lsp.decisions.model import (
    Anchor,
    AnchorKind,
    Confirmation,
    Content,
    DecisionId,
    SeenFile,
    Sighting,
    pack_ancestors,
    pack_text,
)
from nm_lsp.decisions.verdicts import Reason, Status, Verdict


def confirmation(
    commit: str | None,
    anchors: Sequence[Anchor],
    committed: Mapping[str, Content],
    seen: Mapping[str, Content | None],
    texts: Mapping[Anchor, bytes],
    ancestors: Sequence[str] = (),
) -> Confirmation:
    """A person's word that a decision holds at `commit` (None before the first commit).

    `committed` are the contents at the commit, `seen` those on disk or in the editor where they were read (None:
    deleted); a path that `seen` leaves out holds what is committed. Both cover what the anchors govern and may hold
    more. `texts` has the text of each symbol as it was seen, `ancestors` the first-parent ancestors, nearest first.

    Raises `InvalidInput` for an anchor that names nothing.
    """
    sightings = tuple(_sighting(anchor, committed, seen, texts) for anchor in anchors)
    return Confirmation(commit, sightings, pack_ancestors(ancestors))


def governed(anchor: Anchor, paths: Iterable[str]) -> list[str]:
    """Those of `paths` that `anchor` governs, sorted."""
    if anchor.kind in (AnchorKind.FOLDER, AnchorKind.GLOB):
        return sorted(path for path in set(paths) if anchor_governs(anchor, path))
    return [anchor.path]


def restorable(identity: DecisionId, verdict: Verdict) -> tuple[Anchor, ...]:
    """The anchors to confirm, by their names at the head of the verdict.

    Raises `Refused` with what to do instead (rule 6), but for what is not committed, which needs the files.
    """
    match verdict.status:
        case Status.INVALIDATED:
            raise Refused(f"{identity} is invalidated.", hint="Reinstate it with a reason instead.")
        case Status.ACTIVE:
            raise Refused(f"{identity} holds as it stands, so there is nothing to restore.")
        case Status.UNKNOWN:
            raise Refused(f"The status of {identity} is unknown: {verdict.cause}.", hint="Repair that first.")
        case Status.STALE if verdict.reason is Reason.DEPENDENCY:
            raise Refused(
                f"{identity} is stale only because {verdict.dependency} is.",
                hint=f"Restore {verdict.dependency} instead.",
            )
        case _:
            return anchors_at_head(identity, verdict)


def anchors_at_head(identity: DecisionId, verdict: Verdict) -> tuple[Anchor, ...]:
    """The anchors by their names at the head of the verdict. Raises `Refused` where one is gone."""
    gone = [str(view.recorded) for view in verdict.anchors if view.gone]
    if gone:
        raise Refused(
            f"{', '.join(gone)} is gone, so nobody can say that {identity} holds for it.",
            hint="Amend the decision to govern what replaced it, or invalidate it.",
        )
    return tuple(view.now for view in verdict.anchors)


def _sighting(
    anchor: Anchor,
    committed: Mapping[str, Content],
    seen: Mapping[str, Content | None],
    texts: Mapping[Anchor, bytes],
) -> Sighting:
    files = tuple(
        SeenFile(path, seen.get(path, committed.get(path)), committed.get(path))
        for path in governed(anchor, {*committed, *seen})
    )
    if all(file.fp is None for file in files):
        raise InvalidInput(
            "files", f"{anchor} names nothing in this repository.", hint="Check the spelling of the path."
        )
    if anchor.kind is not AnchorKind.SYMBOL:
        return Sighting(anchor, files)
    if anchor not in texts:
        raise InvalidInput(
            "files", f"{anchor.path} has no symbol {anchor.symbol}.", hint="Anchor the whole file instead."
        )
    return Sighting(anchor, files, pack_text(texts[anchor]))
