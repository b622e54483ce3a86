"""The data of decisions: anchors, what a confirmation saw, and the record people decided.

Guarantees: every class is immutable; `to_plain` and `from_plain` of a class are inverse to each other over JSON
values; a plain value of the wrong shape raises `InvalidInput` and never yields a half-filled object.

Content tokens. What a path holds is one string: the blob id of a regular file, `link:<id>` for a symbolic link,
`commit:<id>` for a submodule, None for nothing. The executable bit is not part of it, so that a mode change is no
change, while file to link is one even if the bytes are equal.

Must not know: statuses at a HEAD (`staleness.py`), git, storage.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NewType, TypeAlias

from nm_lsp.base.errors import InvalidInput, NotFound

DecisionId = NewType("DecisionId", str)
Content: TypeAlias = str
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

N_ANCESTORS = 200
_ANCESTOR_BYTES = 8
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_ID = re.compile(r"nm-[a-z2-7]{8}\Z")
_ID_PREFIX = re.compile(r"nm-[a-z2-7]{1,8}\Z")
_CONTENT = re.compile(r"(?:link:|commit:)?(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_GLOB_SIGNS = frozenset("*?[")


class AnchorKind(Enum):
    FILE = "file"
    SYMBOL = "symbol"
    FOLDER = "folder"
    GLOB = "glob"
    SUBMODULE = "submodule"


@dataclass(frozen=True, slots=True)
class Anchor:
    """One thing a decision governs. `path` is repository-relative; a folder's ends in `/`, a glob's is the pattern."""

    kind: AnchorKind
    path: str
    symbol: str | None = None

    def __str__(self) -> str:
        """As a person writes it: `a.py`, `a.py::f`, `src/auth/`, `src/**/*.py`."""
        return f"{self.path}::{self.symbol}" if self.symbol is not None else self.path

    def to_plain(self) -> Plain:
        plain: dict[str, Plain] = {"kind": self.kind.value, "path": self.path}
        if self.symbol is not None:
            plain["symbol"] = self.symbol
        return plain

    @classmethod
    def from_plain(cls, value: Plain, field: str = "anchors") -> Anchor:
        table = plain_table(value, field, {"kind", "path", "symbol"})
        try:
            kind = AnchorKind(plain_text(table.get("kind"), f"{field}.kind"))
        except ValueError:
            raise InvalidInput(f"{field}.kind", f"there is no anchor kind {table.get('kind')!r}.") from None
        symbol = table.get("symbol")
        return checked_anchor(
            cls(
                kind,
                plain_text(table.get("path"), f"{field}.path"),
                None if symbol is None else plain_text(symbol, f"{field}.symbol"),
            ),
            field,
        )


@dataclass(frozen=True, slots=True)
class SeenFile:
    """The bytes seen in one file: `fp` as `git add` would store them, `base` those at the commit. None is "absent"."""

    path: str
    fp: Content | None
    base: Content | None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a confirmation saw at one anchor, by the anchor's name at that commit.

    `files` has one entry for a file, symbol or submodule anchor and one per governed file for a folder or glob.
    `packed_text` is the symbol's text (`pack_text`), None for other kinds and where it was redacted.
    """

    anchor: Anchor
    files: tuple[SeenFile, ...]
    packed_text: str | None = None

    def to_plain(self) -> Plain:
        plain: dict[str, Plain] = {
            "anchor": self.anchor.to_plain(),
            "files": [[seen.path, seen.fp, seen.base] for seen in self.files],
        }
        if self.packed_text is not None:
            plain["text"] = self.packed_text
        return plain

    @classmethod
    def from_plain(cls, value: Plain) -> Sighting:
        table = plain_table(value, "confirmation.seen", {"anchor", "files", "text"})
        files = []
        for row in plain_list(table.get("files"), "confirmation.seen.files"):
            if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], str):
                raise InvalidInput("confirmation.seen.files", "each entry must be [path, seen id, committed id].")
            files.append(SeenFile(row[0], _content(row[1]), _content(row[2])))
        text = table.get("text")
        return cls(
            Anchor.from_plain(table.get("anchor"), "confirmation.seen.anchor"),
            tuple(files),
            None if text is None else plain_text(text, "confirmation.seen.text"),
        )


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One person's word that the decision holds: at `commit` (None before the first commit) with what was seen there.

    `ancestors` names the last 200 first-parent ancestors of the commit, nearest first, each by its first 8 bytes
    (`pack_ancestors`); it finds where a lost commit branched off and never decides a status.
    """

    commit: str | None
    seen: tuple[Sighting, ...]
    ancestors: str = ""

    def to_plain(self) -> Plain:
        plain: dict[str, Plain] = {"commit": self.commit, "seen": [sighting.to_plain() for sighting in self.seen]}
        if self.ancestors:
            plain["ancestors"] = self.ancestors
        return plain

    @classmethod
    def from_plain(cls, value: Plain) -> Confirmation:
        table = plain_table(value, "confirmation", {"commit", "seen", "ancestors"})
        commit = table.get("commit")
        if commit is not None and not (isinstance(commit, str) and _COMMIT.match(commit)):
            raise InvalidInput("confirmation.commit", "must be a full commit id, or null before the first commit.")
        seen = tuple(Sighting.from_plain(row) for row in plain_list(table.get("seen"), "confirmation.seen"))
        ancestors = table.get("ancestors", "")
        return cls(commit, seen, plain_text(ancestors, "confirmation.ancestors"))


@dataclass(frozen=True, slots=True)
class Decision:
    """What people decided, as it reads now. The anchors are named as they were given; where they are now is derived."""

    id: DecisionId
    title: str
    rationale: str
    anchors: tuple[Anchor, ...]
    type: str | None = None
    confidence: float | None = None
    author: str | None = None
    tags: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    depends_on: tuple[DecisionId, ...] = ()
    evidence: tuple[str, ...] = ()


def parse_anchor(text: str, *, submodule: bool = False, field: str = "files") -> Anchor:
    """The anchor that `text` spells, if its path is in normal form.

    `path::symbol` is a symbol, a trailing `/` a folder, `*`, `?` or `[` in the path a glob. Whether it exists, and
    whether a path is a submodule, is the caller's to know. Raises `InvalidInput`.
    """
    path, mark, symbol = text.partition("::")
    if mark:
        return checked_anchor(Anchor(AnchorKind.SYMBOL, path, symbol), field)
    if submodule:
        return checked_anchor(Anchor(AnchorKind.SUBMODULE, path.rstrip("/")), field)
    if _GLOB_SIGNS.intersection(path):
        return checked_anchor(Anchor(AnchorKind.GLOB, path), field)
    return checked_anchor(Anchor(AnchorKind.FOLDER if path.endswith("/") else AnchorKind.FILE, path), field)


def checked_anchor(anchor: Anchor, field: str = "files") -> Anchor:
    """`anchor` itself if its path is in normal form and its parts fit its kind, else `InvalidInput`."""
    path = anchor.path[:-1] if anchor.kind is AnchorKind.FOLDER and anchor.path.endswith("/") else anchor.path
    if len(path) > 4096 or "\0" in path:
        raise InvalidInput(field, "a path is at most 4,096 characters long and holds no NUL.")
    if not path or any(part in ("", ".", "..") for part in path.split("/")):
        raise InvalidInput(field, f"{anchor.path!r} is not a path relative to the repository, like src/auth/token.py.")
    if anchor.kind is AnchorKind.FOLDER and not anchor.path.endswith("/"):
        raise InvalidInput(field, f"the folder {anchor.path!r} must end in a slash.")
    if (anchor.kind is AnchorKind.SYMBOL) != (anchor.symbol is not None) or anchor.symbol == "":
        raise InvalidInput(field, f"{anchor!s}: a symbol is written path::name, and only a symbol has a name.")
    if anchor.symbol is not None and (len(anchor.symbol) > 1000 or not anchor.symbol.isprintable()):
        raise InvalidInput(field, "a symbol's name is one printable line of at most 1,000 characters.")
    return anchor


def new_id(random: bytes) -> DecisionId:
    """The id made of five random bytes: `nm-` and 8 base32 characters."""
    if len(random) != 5:
        raise InvalidInput("random", "an id is made of exactly 5 random bytes.")
    return DecisionId("nm-" + base64.b32encode(random).decode("ascii").lower())


def is_id(text: str) -> bool:
    return _ID.match(text) is not None


def resolve_id(text: str, ids: Sequence[DecisionId]) -> DecisionId:
    """The one of `ids` that `text` names in full or as a unique prefix (with or without `nm-`, in any case).

    Raises `InvalidInput` for what is no id or is ambiguous, `NotFound` where nothing matches.
    """
    wanted = text.strip().lower()
    if not wanted.startswith("nm-"):
        wanted = "nm-" + wanted
    if not _ID_PREFIX.match(wanted):
        raise InvalidInput("id", f"{text[:40]!r} is not a decision id, like nm-{_ID_ALPHABET[:8]}.")
    found = sorted({known for known in ids if known.startswith(wanted)})
    if not found:
        raise NotFound(f"There is no decision {wanted}.", hint="`nm-lsp decisions list` shows all ids.")
    if len(found) > 1:
        raise InvalidInput("id", f"{wanted} is short for {len(found)} decisions: {', '.join(found[:5])}.")
    return found[0]


def pack_text(text: bytes) -> str:
    """A symbol's text as one line of ASCII (zlib, base64)."""
    return base64.b64encode(zlib.compress(text, 6)).decode("ascii")


def unpack_text(packed: str) -> bytes:
    try:
        return zlib.decompress(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError, zlib.error):
        raise InvalidInput("confirmation.seen.text", "the kept text of the symbol is damaged.") from None


def pack_ancestors(commits: Sequence[str]) -> str:
    """The first 200 commit ids, each by its first 8 bytes, as one line of ASCII."""
    return base64.b64encode(b"".join(bytes.fromhex(c[: 2 * _ANCESTOR_BYTES]) for c in commits[:N_ANCESTORS])).decode()


def unpack_ancestors(packed: str) -> tuple[str, ...]:
    """The 16-digit prefixes of the ancestors, nearest first."""
    try:
        digits = base64.b64decode(packed, validate=True).hex()
    except (binascii.Error, ValueError):
        raise InvalidInput("confirmation.ancestors", "the kept list of ancestors is damaged.") from None
    step = 2 * _ANCESTOR_BYTES
    return tuple(digits[at : at + step] for at in range(0, len(digits), step))


def plain_table(value: Plain, field: str, known: set[str]) -> Mapping[str, Plain]:
    """`value` as an object without fields other than `known`."""
    if not isinstance(value, dict):
        raise InvalidInput(field, "must be an object.")
    for name in value:
        if name not in known:
            raise InvalidInput(f"{field}.{name}", "there is no such field.")
    return value


def plain_list(value: Plain, field: str) -> list[Plain]:
    if not isinstance(value, list):
        raise InvalidInput(field, "must be a list.")
    return value


def plain_text(value: Plain, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(field, "must be a text.")
    return value


def _content(value: Plain) -> Content | None:
    if value is None:
        return None
    if isinstance(value, str) and _CONTENT.match(value):
        return value
    raise InvalidInput("confirmation.seen.files", f"{str(value)[:80]!r} is not a git object id.")
