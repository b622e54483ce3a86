"""What the fields of a decision may hold: limits, and which characters.

Text from a person's request is refused where it holds control or bidirectional characters, with the field and the
remedy; text that arrives by import is made harmless with `escaped` instead, so that nothing of it is lost.

Guarantees: `checked_fields` returns every field it was given, in normal form, or raises; nothing is dropped silently.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

from nm_lsp.base.errors import InvalidInput
from nm_lsp.decisions.model import Anchor, Plain, is_id, plain_list, plain_text

MAX_TITLE: Final = 200
MAX_RATIONALE: Final = 20_000
MAX_REASON: Final = 4_000
MAX_WORD: Final = 100
MAX_AUTHOR: Final = 200
MAX_ITEM: Final = 4_000
MAX_ITEMS: Final = 100
MAX_ANCHORS: Final = 1_000

# Explicit direction marks: they can make a line read as something other than what it says.
_BIDIRECTIONAL: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LINE_SEPARATORS: Final = frozenset("\u2028\u2029")


def checked_fields(fields: Mapping[str, Plain]) -> dict[str, Plain]:
    """The fields of a decision in normal form (spaces around lines gone, doubles in lists gone, anchors normal).

    `fields` may be any subset of the fields, as in an amendment. Raises `InvalidInput` with the field's name.
    """
    checked: dict[str, Plain] = {}
    for name, value in fields.items():
        check = _CHECKS.get(name)
        if check is None:
            raise InvalidInput(name, "a decision has no such field.", hint=f"It has {', '.join(_CHECKS)}.")
        checked[name] = check(value, name)
    return checked


def checked_line(value: Plain, field: str, limit: int) -> str:
    """`value` as one line of 1 to `limit` characters, without spaces around it."""
    text = plain_text(value, field).strip()
    if not text:
        raise InvalidInput(field, "must not be empty.")
    if len(text) > limit:
        raise InvalidInput(field, f"has {len(text):,} characters; at most {limit:,} are allowed.")
    _refuse_unsafe(text, field, allowed="")
    return text


def checked_prose(value: Plain, field: str, limit: int) -> str:
    """`value` as a text of 1 to `limit` characters that may have several lines and tabs."""
    text = plain_text(value, field).replace("\r\n", "\n").strip()
    if not text:
        raise InvalidInput(field, "must not be empty.")
    if len(text) > limit:
        raise InvalidInput(field, f"has {len(text):,} characters; at most {limit:,} are allowed.")
    _refuse_unsafe(text, field, allowed="\n\t")
    return text


def escaped(text: str, *, one_line: bool = False) -> str:
    """`text` with every character that `checked_prose` refuses written out, like `\\u202e`.

    With `one_line`, runs of blanks and line ends become one space first.
    """
    if one_line:
        text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    allowed = "" if one_line else "\n\t"
    return "".join(_spelled(sign) if _is_unsafe(sign, allowed) else sign for sign in text.replace("\r\n", "\n"))


def escaped_line(text: str) -> str:
    """What `checked_line` lets through as it is, anything else as one escaped line: for a record of unknown origin."""
    return text if text.isprintable() else escaped(text, one_line=True)


def fitted_line(text: str | None, limit: int) -> str | None:
    """What `checked_line` takes, of a name that somebody else chose (git's user, a branch, an editor): odd characters
    written out, cut at `limit`. None where nothing is left."""
    line = escaped(text or "", one_line=True)
    return (line if len(line) <= limit else f"{line[: limit - 1]}…") or None


def _is_unsafe(sign: str, allowed: str) -> bool:
    if sign in allowed:
        return False
    return sign in _BIDIRECTIONAL or sign in _LINE_SEPARATORS or unicodedata.category(sign) in ("Cc", "Cs")


def _spelled(sign: str) -> str:
    return f"\\u{ord(sign):04x}"


def _refuse_unsafe(text: str, field: str, allowed: str) -> None:
    if text.isascii() and text.isprintable():
        return
    for at, sign in enumerate(text):
        if _is_unsafe(sign, allowed):
            what = "a line end" if sign in "\n\r" else f"the unprintable character {_spelled(sign)}"
            raise InvalidInput(
                field, f"holds {what} at position {at + 1}.", hint="Remove it and send the request again."
            )


def _title(value: Plain, field: str) -> Plain:
    return checked_line(value, field, MAX_TITLE)


def _rationale(value: Plain, field: str) -> Plain:
    return checked_prose(value, field, MAX_RATIONALE)


def _type(value: Plain, field: str) -> Plain:
    return None if value is None else checked_line(value, field, MAX_WORD)


def _author(value: Plain, field: str) -> Plain:
    return None if value is None else checked_line(value, field, MAX_AUTHOR)


def _confidence(value: Plain, field: str) -> Plain:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(field, "must be a number from 0 to 1.")
    if not 0 <= value <= 1:
        raise InvalidInput(field, f"is {value}; it must lie from 0 to 1.")
    return float(value)


def _items(value: Plain, field: str, check: Callable[[Plain, str], str]) -> Plain:
    items = plain_list(value, field)
    if len(items) > MAX_ITEMS:
        raise InvalidInput(field, f"has {len(items):,} entries; at most {MAX_ITEMS} are allowed.")
    kept: dict[str, Plain] = {}
    for item in items:
        text = check(item, field)
        kept[text] = text
    return list(kept.values())


def _tags(value: Plain, field: str) -> Plain:
    return _items(value, field, lambda item, name: checked_line(item, name, MAX_WORD))


def _prose_items(value: Plain, field: str) -> Plain:
    return _items(value, field, lambda item, name: checked_prose(item, name, MAX_ITEM))


def _depends_on(value: Plain, field: str) -> Plain:
    def check(item: Plain, name: str) -> str:
        text = plain_text(item, name)
        if not is_id(text):
            raise InvalidInput(name, f"{text[:40]!r} is not a full decision id.")
        return text

    return _items(value, field, check)


def _anchors(value: Plain, field: str) -> Plain:
    rows = plain_list(value, field)
    if len(rows) > MAX_ANCHORS:
        raise InvalidInput(field, f"has {len(rows):,} entries; at most {MAX_ANCHORS:,} are allowed.")
    anchors = dict.fromkeys(Anchor.from_plain(row, field) for row in rows)
    return [anchor.to_plain() for anchor in anchors]


_CHECKS: Final[Mapping[str, Callable[[Plain, str], Plain]]] = {
    "title": _title,
    "rationale": _rationale,
    "anchors": _anchors,
    "type": _type,
    "confidence": _confidence,
    "author": _author,
    "tags": _tags,
    "alternatives": _prose_items,
    "dependsOn": _depends_on,
    "evidence": _prose_items,
}
