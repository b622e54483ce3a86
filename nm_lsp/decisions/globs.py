"""The paths that folder and glob anchors govern.

A pattern matches whole repository-relative paths: `*` and `?` stay within a folder, `**` as a whole part spans any
number of folders (also none), `[ab]` and `[!ab]` are one character other than `/`. A folder anchor governs every path
below it. Every anchor of these kinds splits into the folder before its first sign (`base_folder`) and a rest, so that
it can follow when that folder moves.
"""

from __future__ import annotations

import re
from functools import lru_cache

from nm_lsp.decisions.model import Anchor, AnchorKind

_SIGN = re.compile(r"[*?\[]")


def base_folder(anchor: Anchor) -> str:
    """The folder with its `/` below which all governed paths lie; empty for the whole repository."""
    if anchor.kind is AnchorKind.FOLDER:
        return anchor.path
    sign = _SIGN.search(anchor.path)
    return anchor.path[: anchor.path.rfind("/", 0, sign.start() if sign else None) + 1]


def rest_pattern(anchor: Anchor) -> str | None:
    """The pattern after `base_folder`; None where everything below it is governed."""
    return None if anchor.kind is AnchorKind.FOLDER else anchor.path[len(base_folder(anchor)) :]


def governs(pattern: str | None, rest: str) -> bool:
    """Whether the path `rest` below an anchor's base folder is governed by its `rest_pattern`."""
    return pattern is None or _compiled(pattern).fullmatch(rest) is not None


def anchor_governs(anchor: Anchor, path: str) -> bool:
    """Whether a folder or glob anchor governs `path`."""
    folder = base_folder(anchor)
    return path.startswith(folder) and path != folder and governs(rest_pattern(anchor), path[len(folder) :])


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_translated(pattern)), re.DOTALL)


def _translated(pattern: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        starts_part = at == 0 or pattern[at - 1] == "/"
        if starts_part and pattern.startswith("**/", at):
            pieces.append(r"(?:[^/]+/)*")
            at += 3
        elif starts_part and pattern[at:] == "**":
            pieces.append(r".+")
            at += 2
        elif sign == "*":
            pieces.append(r"[^/]*")
            at += 1
        elif sign == "?":
            pieces.append(r"[^/]")
            at += 1
        elif sign == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end]
            negated = inside[0] in "!^"
            body = inside[1:] if negated else inside
            escaped = re.sub(r"([\\\]\[^&~|])", r"\\\1", body)
            pieces.append(f"[^/{escaped}]" if negated else f"(?!/)[{escaped}]")
            at = end + 1
        else:
            pieces.append(re.escape(sign))
            at += 1
    return pieces
