"""Results → JSON.

camelCase; a `Place` becomes `uri`, `path` and `range` beside its neighbours; a `repo_path` gets a `uri` beside it;
`folder` becomes the folder's URI; an enum its value; a field whose default is None is left out while it is None, every
other None is null. A `dict` is taken as JSON already and passed on unread, so a large graph costs nothing here.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Protocol

from nm_lsp.engine.decision_requests import DecisionRow
from nm_lsp.engine.requests import Place
from nm_lsp.graph.model import Span
from nm_lsp.wire.naming import wire_fields

Json = dict[str, object]


class Places(Protocol):
    """Where things are for one client: its URIs and its unit of columns. May read files; never on an event loop."""

    def folder_uri(self) -> str: ...

    def uri(self, path: str) -> str: ...

    def repository_uri(self, repo_path: str) -> str: ...

    def column(self, path: str, line: int, byte_column: int) -> int: ...


def encode(result: object, places: Places) -> Json:
    """The JSON object of `result`, an instance of a result dataclass."""
    encoded = _value(result, places)
    if not isinstance(encoded, dict):
        raise TypeError(f"{type(result).__name__} is no result dataclass")
    return encoded


def encode_range(path: str, span: Span, places: Places) -> dict[str, dict[str, int]]:
    """`span` as an LSP range in the client's unit."""
    return {
        "start": {"line": span.start_line, "character": places.column(path, span.start_line, span.start_col)},
        "end": {"line": span.end_line, "character": places.column(path, span.end_line, span.end_col)},
    }


def _value(value: object, places: Places) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_value(item, places) for item in value]
    if isinstance(value, Place):
        return _place(value, places)
    if dataclasses.is_dataclass(value):
        return _object(value, places)
    if isinstance(value, dict):
        return value
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _object(value: object, places: Places) -> Json:
    encoded: Json = {}
    for field in wire_fields(type(value)):
        part = getattr(value, field.name)
        if isinstance(part, Place):
            encoded.update(_place(part, places))
        elif isinstance(part, DecisionRow) and field.name == "row":
            encoded.update(_object(part, places))
        elif field.name == "folder" and isinstance(part, str):
            encoded["folder"] = places.folder_uri()
        elif part is not None or field.default is not None:
            encoded[field.wire_name] = _value(part, places)
        if field.name == "repo_path" and isinstance(part, str):
            encoded["uri"] = places.repository_uri(part)
    return encoded


def _place(place: Place, places: Places) -> Json:
    return {
        "uri": places.uri(place.path),
        "path": place.path,
        "range": encode_range(place.path, place.span, places),
    }
