"""Decisions in a folder without a repository: saving a file with other bytes plays the part of a commit.

Limit: a file that is changed and changed back while nobody looks is not noticed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nm_lsp.decisions.fold import Memory
from nm_lsp.decisions.globs import anchor_governs
from nm_lsp.decisions.model import Anchor, Confirmation, Content, DecisionId
from nm_lsp.decisions.staleness import judge_saved
from nm_lsp.decisions.verdicts import (
    AnchorView,
    Away,
    Reason,
    Relation,
    Severity,
    Status,
    Verdict,
    with_dependencies,
)
from nm_lsp.worker.sources import walk


def content_of(path: Path) -> Content | None:
    """What git would call the bytes of a file, so that decisions stay true once the folder becomes a repository."""
    try:
        if path.is_symlink():
            return "link:" + blob_id(os.fsencode(path.readlink()))
        if not path.is_file():
            return None
        return blob_id(path.read_bytes())
    except OSError:
        return None


def blob_id(data: bytes) -> Content:
    """Git's id of a blob (SHA-1 over `blob <length>\\0` and the bytes)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def governed_files(folder: Path, anchor: Anchor) -> list[str]:
    """The files that a folder or glob anchor governs on disk."""
    return [path for path in walk(folder, lambda _: None) if anchor_governs(anchor, path)]


def judge_folder(folder: Path, memory: Memory) -> dict[DecisionId, Verdict]:
    """The verdict of every decision by the bytes on disk."""
    contents: dict[str, Content | None] = {}
    verdicts = {}
    for identity, record in memory.records.items():
        for confirmation in record.confirmations:
            for path in _recorded_paths(confirmation):
                if path not in contents:
                    contents[path] = content_of(folder / path)
        status = judge_saved(record, contents)
        verdicts[identity] = _verdict(identity, status, record.confirmations, contents)
    return with_dependencies(memory.records, verdicts)


def _recorded_paths(confirmation: Confirmation) -> list[str]:
    return [seen.path for sighting in confirmation.seen for seen in sighting.files]


def _verdict(
    identity: DecisionId, status: Status, confirmations: Sequence[Confirmation], contents: Mapping[str, Content | None]
) -> Verdict:
    """The verdict in terms of the newest confirmation."""
    at = len(confirmations) - 1
    views = []
    for sighting in confirmations[at].seen if confirmations else ():
        away = tuple(
            Away(seen.path, seen.fp, contents[seen.path]) for seen in sighting.files if contents[seen.path] != seen.fp
        )
        gone = bool(sighting.files) and all(contents[seen.path] is None for seen in sighting.files)
        views.append(AnchorView(sighting.anchor, sighting.anchor, gone, bool(away), away))
    verdict = Verdict(identity, status, at, Relation.IN_HISTORY, tuple(views))
    if status is not Status.STALE:
        return verdict
    changed = [away for view in views for away in view.away]
    path = changed[0].path if changed else None
    removed = bool(changed) and changed[0].now is None
    return replace(
        verdict,
        reason=Reason.REMOVED if removed else Reason.CHANGED,
        severity=Severity.WARNING,
        path=path,
        reverted=not changed,
    )
