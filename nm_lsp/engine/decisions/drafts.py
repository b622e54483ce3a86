"""A decision that another tool wrote down, on its way to becoming one of ours."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from nm_lsp.decisions.model import DecisionId, Plain, new_id


@dataclass(frozen=True, slots=True)
class Seen:
    """What the other tool kept of the moment of recording: the commit, the time, and blob ids by path as written."""

    commit: str | None
    time: str | None
    blobs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Draft:
    """`id` follows from where it comes from, so that a second import finds the first one's decision.

    `fields` are in the form of an event, without anchors. `files` are the paths it names, of which those that exist
    become anchors; `fallback`, itself a path, is taken where none does. `lost` is why it no longer holds. `seen` is set
    where the confirmation is to be the other tool's and not one of now.
    """

    source: str
    id: DecisionId
    fields: Mapping[str, Plain]
    files: tuple[str, ...]
    fallback: str | None = None
    depends_on: tuple[DecisionId, ...] = ()
    lost: str | None = None
    superseded_by: DecisionId | None = None
    seen: Seen | None = None


def derived_id(kind: str, key: str) -> DecisionId:
    """The id of what another tool calls `key`; the same in every clone."""
    digest = hashlib.sha256(f"{kind}:{key}".encode("utf-8", "surrogatepass")).digest()
    return new_id(digest[:5])
