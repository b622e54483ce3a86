"""The names that a file uses: references by the node they stand in, and imports. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nm_lsp.graph.definitions import Entry, places_of
from nm_lsp.graph.model import EdgeKind, Import, Reference
from nm_lsp.graph.source import Source

# A dotted chain longer than this names nothing that could be found; its last part still may.
_MAX_TARGET = 200
_LAST_NAME = re.compile(r"[\w$]+[!?]?$")
_MARKS = str.maketrans(".$#!?@-", "_______")
_REFERENCE_KINDS = {"call": EdgeKind.CALLS, "base": EdgeKind.INHERITS, "ref": EdgeKind.REFERENCES}


def references_of(source: Source, entries: list[Entry]) -> tuple[Reference, ...]:
    """Each name once per node and kind, at its first line: how often a name is used makes no other edge."""
    data, line, builtins = source.data, source.lines.line, source.language.builtins
    references: list[Reference] = []
    told: dict[bytes, str] = {}
    taken = {entry.name_start for entry in entries}
    taken_ends: set[int] = set()
    for capture, kind in _REFERENCE_KINDS.items():
        uses = source.spans(capture)
        if capture == "base" and "mixin" in source.captures:
            uses = sorted({*uses, *_mixed_in(source)})
        covered = 0
        if capture == "call" and "invocation" in source.captures:
            uses = sorted([*uses, *_invocations(source)])
        seen: set[tuple[int, str]] = set()
        for (start, end), index in zip(uses, places_of(entries, [use[0] for use in uses]), strict=True):
            if kind is not EdgeKind.CALLS:
                # What is defined, called or inherited here is no further reference, nor are the parts of a name.
                known = start in taken or end in taken_ends or end <= covered
                covered = max(covered, end)
                if known:
                    continue
                taken_ends.add(end)
            written = data[start:end]
            target = told.get(written)
            if target is None:
                target = written.decode("utf-8", "replace")
                if not target.isidentifier():
                    target = _dotted(source, target)
                told[written] = target
            key = (entries[index].node, target)
            if kind is EdgeKind.REFERENCES and target == entries[index].name:
                continue
            if target and target not in builtins and key not in seen:
                seen.add(key)
                references.append(Reference(key[0], kind, target, line(start)))
        taken.update(start for start, _ in uses)
    return tuple(references)


def imports_of(source: Source) -> Iterator[Import]:
    """The imports in source order."""
    describe, data, line = source.language.imports, source.data, source.lines.line
    for node in sorted(source.captures.get("import", ()), key=lambda node: node.start_byte):
        yield from describe(node, data, line(node.start_byte))


def _invocations(source: Source) -> Iterator[tuple[int, int]]:
    field = source.language.callee_field
    for node in source.captures["invocation"]:
        callee = node.child_by_field_name(field)
        if callee is not None:
            yield node.start_byte, callee.end_byte


def _mixed_in(source: Source) -> Iterator[tuple[int, int]]:
    for node in source.captures["mixin"]:
        for name in source.language.bases(node, source.data):
            yield name.start_byte, name.end_byte


def _dotted(source: Source, written: str) -> str:
    """A use as a dotted name. A receiver that is no plain name becomes `?`, as in `?.close`."""
    if source.language.plain_names:
        return written if written.translate(_MARKS).isidentifier() and "." not in written else ""
    for separator in source.language.separators:
        if separator in written:
            written = written.replace(separator, ".")
    if written.endswith(">"):
        written = _without_type_arguments(written)
    if source.language.constructor:
        written = written.removesuffix(source.language.constructor)
    if len(written) <= _MAX_TARGET:
        if written.replace(".", "_").isidentifier() and written[0] != ".":
            return written
        if written.startswith("super()."):
            written = "super" + written[7:]
        written = "".join(written.split()).replace("..", ".").lstrip(".")
        if written.translate(_MARKS).isidentifier():
            return written
    last = _LAST_NAME.search(written[-_MAX_TARGET:])
    return f"?.{last[0]}" if last else ""


def _without_type_arguments(written: str) -> str:
    """`Find<Item>` as `Find`: cuts the last balanced pair of angle brackets."""
    depth = 0
    for at in range(len(written) - 1, -1, -1):
        depth += (written[at] == ">") - (written[at] == "<")
        if depth == 0:
            return written[:at].rstrip(".")
    return written
