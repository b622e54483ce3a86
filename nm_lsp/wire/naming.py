"""Names on the wire: camelCase of the fields of dataclasses, and their types as people read them."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import Any

from nm_lsp.base.naming import camel_case


@dataclasses.dataclass(frozen=True, slots=True)
class WireField:
    """One field: its Python `name`, its name on the wire, its resolved `type`, whether it may be left out."""

    name: str
    wire_name: str
    type: Any
    optional: bool
    default: Any


_fields: dict[type, tuple[WireField, ...]] = {}


def wire_fields(cls: type) -> tuple[WireField, ...]:
    """The fields of dataclass `cls` in order of declaration."""
    known = _fields.get(cls)
    if known is None:
        known = _fields[cls] = _read_fields(cls)
    return known


def _read_fields(cls: type) -> tuple[WireField, ...]:
    hints = typing.get_type_hints(cls)
    rows = []
    for field in dataclasses.fields(cls):
        has_factory = field.default_factory is not dataclasses.MISSING
        optional = has_factory or field.default is not dataclasses.MISSING
        rows.append(WireField(field.name, camel_case(field.name), hints[field.name], optional, field.default))
    return tuple(rows)


def union_members(hint: Any) -> tuple[Any, ...] | None:
    """The members of `A | B` or `Optional[A]`, None for anything else."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.get_args(hint)
    return None


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def plain_type(hint: Any) -> Any:
    """Strips `NewType`, which JSON does not know."""
    while isinstance(hint, typing.NewType):
        hint = hint.__supertype__
    return hint
