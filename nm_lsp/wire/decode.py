"""JSON → parameters, strictly: an unknown field, a wrong type or an oversized text is an error that names the field.

Guarantees: nothing but `InvalidInput` is raised for any JSON value, and its message is for people. Knows only plain
dataclasses (nested ones, tuples, dicts, enums, literals and unions with None included).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from nm_lsp.base.errors import InvalidInput
from nm_lsp.wire.naming import is_enum, plain_type, union_members, wire_fields

T = TypeVar("T")

MAX_TEXT_CHARS = 20_000
"""Of one text. A rationale fits; a pasted log file does not."""

MAX_ITEMS = 1_000
"""Of one list."""

BOUNDS: Mapping[str, tuple[int, int]] = {"limit": (1, 1_000), "budget": (1, 1_500)}
"""Smallest and largest value of a whole number, by its name on the wire, wherever it appears."""

_SHOWN_CHARS = 40


def decode(cls: type[T], data: object) -> T:
    """Build the parameters `cls` from `data`, a JSON object (None stands for an empty one).

    Raises `InvalidInput` naming the field as the caller spells it, nested ones with dots and indexes: `set.tags[2]`.
    """
    return typing.cast("T", _object(cls, {} if data is None else data, ""))


def split_folder(data: object) -> tuple[str | None, object]:
    """Take `folder` (the URI of an opened folder) out of the parameters, which know nothing of it."""
    if not isinstance(data, dict) or "folder" not in data:
        return None, data
    rest = {name: value for name, value in data.items() if name != "folder"}
    folder = data["folder"]
    if folder is None:
        return None, rest
    return _text(folder, "folder"), rest


def _object(cls: type, data: object, where: str) -> object:
    if not isinstance(data, dict):
        raise InvalidInput(where or "params", f"expected an object with named fields, got {describe(data)}")
    fields = wire_fields(cls)
    known = {field.wire_name for field in fields}
    for name in data:
        if name not in known:
            shown = _join(where, str(name)[:_SHOWN_CHARS] or '""')
            raise InvalidInput(shown, "unknown field.", hint=_suggest(str(name), known))
    values: dict[str, object] = {}
    for field in fields:
        if field.wire_name in data:
            values[field.name] = _value(field.type, data[field.wire_name], _join(where, field.wire_name))
        elif not field.optional:
            raise InvalidInput(_join(where, field.wire_name), f"is missing; expected {expectation(field.type)}")
    return cls(**values)


def _value(hint: Any, data: object, where: str) -> object:
    hint = plain_type(hint)
    members = union_members(hint)
    if members is not None:
        if data is None and type(None) in members:
            return None
        rest = [member for member in members if member is not type(None)]
        if len(rest) == 1:
            return _value(rest[0], data, where)
        raise TypeError(f"{where}: parameters with a union of several types have no JSON form")
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _items(typing.get_args(hint)[0], data, where)
    if origin is dict:
        return _mapping(typing.get_args(hint)[1], data, where)
    if origin is typing.Literal:
        return _choice(typing.get_args(hint), data, where)
    if is_enum(hint):
        return hint(_choice(tuple(member.value for member in hint), data, where))
    if dataclasses.is_dataclass(hint):
        return _object(typing.cast("type", hint), data, where)
    return _scalar(hint, data, where)


def _scalar(hint: Any, data: object, where: str) -> object:
    if hint is str:
        return _text(data, where)
    if hint is bool:
        if not isinstance(data, bool):
            raise _mismatch(hint, data, where)
        return data
    if hint is int:
        return _whole_number(data, where)
    if hint is float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            raise _mismatch(hint, data, where)
        return float(data)
    if hint is object or hint is Any:
        return data
    raise TypeError(f"{where}: {hint!r} has no JSON form")


def _text(data: object, where: str) -> str:
    if not isinstance(data, str):
        raise _mismatch(str, data, where)
    if len(data) > MAX_TEXT_CHARS:
        raise InvalidInput(where, f"is too long: {len(data):,} characters, at most {MAX_TEXT_CHARS:,} are allowed")
    return data


def _whole_number(data: object, where: str) -> int:
    # Some clients know no integers and send 10 as 10.0.
    if isinstance(data, float) and math.isfinite(data) and data.is_integer():
        data = int(data)
    if isinstance(data, bool) or not isinstance(data, int):
        raise _mismatch(int, data, where)
    low, high = BOUNDS.get(where.rpartition(".")[2], (-(2**53), 2**53))
    if not low <= data <= high:
        raise InvalidInput(where, f"is out of range: {data} is not between {low:,} and {high:,}")
    return data


def _items(hint: Any, data: object, where: str) -> tuple[object, ...]:
    if not isinstance(data, list):
        raise InvalidInput(where, f"expected a list, got {describe(data)}")
    if len(data) > MAX_ITEMS:
        raise InvalidInput(where, f"is too long: {len(data):,} entries, at most {MAX_ITEMS:,} are allowed")
    return tuple(_value(hint, item, f"{where}[{index}]") for index, item in enumerate(data))


def _mapping(hint: Any, data: object, where: str) -> dict[str, object]:
    if not isinstance(data, dict):
        raise InvalidInput(where, f"expected an object, got {describe(data)}")
    if len(data) > MAX_ITEMS:
        raise InvalidInput(where, f"is too long: {len(data):,} entries, at most {MAX_ITEMS:,} are allowed")
    return {str(name): _value(hint, value, _join(where, str(name))) for name, value in data.items()}


def _choice(choices: tuple[object, ...], data: object, where: str) -> object:
    if isinstance(data, bool | int | float | str) and data in choices:
        return data
    listed = ", ".join(f'"{choice}"' for choice in choices)
    raise InvalidInput(where, f"expected one of {listed}, got {describe(data)}")


def _mismatch(hint: Any, data: object, where: str) -> InvalidInput:
    return InvalidInput(where, f"expected {expectation(hint)}, got {describe(data)}")


def expectation(hint: Any) -> str:
    """What a field wants, in words: "a text", "a list", "one of …"."""
    hint = plain_type(hint)
    members = union_members(hint)
    if members is not None:
        return " or ".join(expectation(member) for member in members)
    if is_enum(hint):
        return "one of " + ", ".join(f'"{member.value}"' for member in hint)
    words: dict[Any, str] = {
        str: "a text",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        type(None): "null",
    }
    if typing.get_origin(hint) is tuple:
        return "a list"
    return words.get(hint, "an object")


def describe(data: object) -> str:
    """What was sent instead, in words, cut to a readable length."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, int | float):
        return f"the number {str(data)[:_SHOWN_CHARS]}"
    if isinstance(data, str):
        shown = data if len(data) <= _SHOWN_CHARS else data[:_SHOWN_CHARS] + "…"
        return f'the text "{shown}"'
    return "a list" if isinstance(data, list) else "an object"


def _suggest(name: str, known: set[str]) -> str:
    if not known:
        return "This call takes no fields."
    close = difflib.get_close_matches(name[:_SHOWN_CHARS], sorted(known), n=1)
    listed = ", ".join(sorted(known))
    return f'Did you mean "{close[0]}"? Known fields: {listed}.' if close else f"Known fields: {listed}."


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
