"""What a file defines, in the order of the source, and what encloses what.

Guarantees that entries nest: each begins and ends inside the one around it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nm_lsp.graph.model import NodeKind
from nm_lsp.graph.source import Source

# Definitions nested deeper than anybody writes get no node of their own: a name holds those of all around it.
_MAX_DEPTH = 60
_KINDS = {
    "class": NodeKind.CLASS,
    "function": NodeKind.FUNCTION,
    "method": NodeKind.METHOD,
    "constant": NodeKind.CONSTANT,
    "namespace": NodeKind.CLASS,
}


@dataclass(slots=True)
class Entry:
    """A definition, or a scope that only qualifies, in the order of the source."""

    start: int
    end: int
    kind: NodeKind | None  # None for a scope
    name: str
    name_start: int
    name_end: int
    signature_start: int
    signature_end: int
    owner: str
    lead: tuple[int, ...]  # start bytes of the comments above
    holds_methods: bool = False
    around: int = 0  # index of the entry that encloses it
    qualified: str = ""
    node: int = 0  # index into the nodes; for a scope that of the type it belongs to, or of the node around


def entries_of(source: Source) -> list[Entry]:
    """All definitions and scopes; the first entry is the module, which encloses everything."""
    above = _index_above(source)
    leads = {end: start for start, end in source.spans("lead")}
    wrappers = _wrappers(source)
    describe, data = source.language.describe, source.data
    end_of_file = len(data)
    module = Entry(0, end_of_file, NodeKind.MODULE, source.path.rsplit("/", 1)[-1], 0, 0, 0, 0, "", ())
    entries: list[Entry] = []
    seen: set[tuple[int, int]] = set()
    for capture in ("class", "namespace", "impl", "scope", "function", "method", "constant"):
        for node in source.captures.get(capture, ()):
            start, end = node.start_byte, node.end_byte
            if (start, end) in seen:
                continue
            found = describe(capture, node, data)
            # Where a name is missing, the parser goes on with an empty one.
            if found is None or not found.name or "\n" in found.name:
                continue
            seen.add((start, end))
            signature_start = start
            while (wrapper := wrappers.get(start)) is not None and wrapper[0] < start and wrapper[1] >= end:
                start, end = wrapper
                if not data.startswith(b"@", start):
                    # Decorators are no part of a signature; `export const` and modifiers are.
                    signature_start = start
            # Some grammars count the line's end as part of a definition.
            while end > start and data[end - 1] in b"\r\n":
                end -= 1
            start, lead = _lead(source, above, leads, start)
            entries.append(
                Entry(
                    start, end, _KINDS.get(capture), found.name, found.name_start, found.name_end, signature_start,
                    found.signature_end, found.owner, lead, capture in ("class", "impl"),
                )
            )  # fmt: skip
    entries.sort(key=lambda entry: (entry.start, -entry.end))
    entries.insert(0, module)
    _qualify(entries)
    return entries


def places_of(entries: list[Entry], positions: list[int]) -> Iterator[int]:
    """The index of the innermost entry around each position; positions must not decrease."""
    last, at = len(entries) - 1, 0
    for position in positions:
        while at < last and entries[at + 1].start <= position:
            at += 1
        index = at
        while index and entries[index].end <= position:
            index = entries[index].around
        yield index


def _wrappers(source: Source) -> dict[int, tuple[int, int]]:
    """Start of a wrapped node, the last child of its wrapper, to the span of the wrapper."""
    wrappers: dict[int, tuple[int, int]] = {}
    for wrapper in source.captures.get("wrapper", ()):
        count = wrapper.named_child_count
        if not count:
            continue
        wrapped = wrapper.named_child(count - 1)
        if count > 1 and any(child.type == wrapped.type for child in wrapper.named_children[:-1]):
            # `int a, b;` belongs to neither of the two.
            continue
        if wrapped.start_byte > wrapper.start_byte:
            wrappers[wrapped.start_byte] = (wrapper.start_byte, wrapper.end_byte)
    return wrappers


def _index_above(source: Source) -> dict[int, int]:
    """The comments that begin their lines, start by the line they end on: they may belong to a definition below."""
    above: dict[int, int] = {}
    line, starts, data = source.lines.line, source.lines.starts, source.data
    for start, end in source.comments:
        first = line(start)
        if data[starts[first] : start].isspace() or starts[first] == start:
            # Some grammars count the line's end as part of a line comment.
            above[line(end - 1 if data[end - 1 : end] == b"\n" else end)] = start
    return above


def _lead(source: Source, above: dict[int, int], leads: dict[int, int], start: int) -> tuple[int, tuple[int, ...]]:
    """Where a definition begins with what belongs to it, and the comments there: attributes with nothing but blanks
    between, and comments directly above it in the same column."""
    line, starts, data = source.lines.line, source.lines.starts, source.data
    comments: list[int] = []
    while True:
        while leads and (lead := leads.get(_end_before(data, start))) is not None:
            start = lead
        row = line(start)
        comment = above.get(row - 1)
        if comment is None or comment - starts[line(comment)] != start - starts[row] or data.startswith(b"#!", comment):
            return start, tuple(reversed(comments))
        start = comment
        comments.append(start)


def _end_before(data: bytes, position: int) -> int:
    """Where the text before the blanks before `position` ends."""
    while position and data[position - 1] in b" \t\r\n":
        position -= 1
    return position


def _qualify(entries: list[Entry]) -> None:
    """Sets what encloses each entry, its qualified name and, where a class is around, the kind method."""
    around = [0]
    node = 0
    names: set[str] = set()
    for index in range(1, len(entries)):
        entry = entries[index]
        while entries[around[-1]].end < entry.end or entries[around[-1]].end <= entry.start:
            if len(around) == 1:
                break
            around.pop()
        outer = entries[around[-1]]
        entry.around = around[-1]
        if len(around) > _MAX_DEPTH:
            entry.kind = None
            entry.qualified = outer.qualified
            continue
        entry.qualified = ".".join(part for part in (outer.qualified, entry.owner, entry.name) if part)
        inside_class = outer.holds_methods or bool(entry.owner)
        if entry.kind is NodeKind.FUNCTION and inside_class:
            entry.kind = NodeKind.METHOD
        elif entry.kind is NodeKind.METHOD and not inside_class and outer.kind is not NodeKind.CONSTANT:
            entry.kind = NodeKind.FUNCTION
        if entry.kind is NodeKind.CONSTANT and entry.qualified in names:
            # Assigned again: the name has its node already.
            entry.kind = None
        if entry.kind is not None:
            node += 1
            entry.node = node
            names.add(entry.qualified)
        around.append(index)
