"""Names across the boundary: snake_case here, camelCase on the wire and in settings."""

from __future__ import annotations


def camel_case(name: str) -> str:
    """`index_revision` → `indexRevision`. A name that is camelCase already stays as it is."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
