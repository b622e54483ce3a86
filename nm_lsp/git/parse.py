"""What git prints with `-z`, as data. Pure.

Guarantees: names keep bytes that are no UTF-8 (`surrogateescape`); modes become content tokens (`decisions.model`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.changes import Change
from nm_lsp.decisions.model import Content

_LINK: Final = b"120000"
_SUBMODULE: Final = b"160000"
_NOTHING: Final = b"000000"


def content(mode: bytes, identity: bytes) -> Content | None:
    """The content token of a tree entry; None for "absent"."""
    if mode == _NOTHING:
        return None
    text = identity.decode("ascii")
    if mode == _LINK:
        return "link:" + text
    return "commit:" + text if mode == _SUBMODULE else text


def name(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def raw_differences(output: bytes, n_pairs: int) -> Iterator[tuple[Change, ...]]:
    """The differences in the output of `diff-tree --stdin --raw -z --always`, one per pair asked for.

    Entries whose content stays (mode changes) are left out. Raises `GitUnavailable` if differences are missing.
    """
    fields = output.split(b"\0")
    at, end, n_seen = 0, len(fields) - 1, 0
    while at < end:
        # A header: the commit alone. Entries begin with a colon, which no id does.
        at += 1
        n_seen += 1
        changes: list[Change] = []
        while at < end and fields[at].startswith(b":"):
            old_mode, new_mode, old_id, new_id, _status = fields[at][1:].split(b" ", 4)
            old, new = content(old_mode, old_id), content(new_mode, new_id)
            if old != new:
                changes.append(Change(name(fields[at + 1]), old, new))
            at += 2
        yield tuple(changes)
    if n_seen != n_pairs:
        raise GitUnavailable("git diff-tree ended before it had answered.")


def tree_entries(output: bytes) -> dict[str, Content]:
    """Path → content of the output of `ls-tree -z` (entries that are folders are left out)."""
    entries: dict[str, Content] = {}
    for row in output.split(b"\0"):
        if not row:
            continue
        facts, _, path = row.partition(b"\t")
        mode, kind, identity = facts.split(b" ")[:3]
        token = content(mode, identity)
        if kind != b"tree" and token is not None:
            entries[name(path)] = token
    return entries


def commit_parents(output: bytes) -> list[tuple[str, tuple[str, ...]]]:
    """(commit, parents) of each line of `rev-list --parents`."""
    rows = (line.split(" ") for line in output.decode("ascii").splitlines())
    return [(row[0], tuple(row[1:])) for row in rows]
