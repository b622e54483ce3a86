"""`textDocument/hover`: the decisions that govern a file, with status and reason, and what goes with a symbol if asked.

At a decision's anchor (its symbol, or the file's first line) it is shown in full, elsewhere in the file in one line.
Over the id of a decision, in any text, that decision is shown in full. All of it is data: see `markup`. In whatever is
no file of an open folder, and where nothing governs, the answer is null. Reads memory, and a file only to find its
symbols; in a thread of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from nm_lsp.base.text import Position, to_index
from nm_lsp.engine.decision_requests import DecisionRow, Governing, Marks
from nm_lsp.engine.settings import Settings
from nm_lsp.server.features.document_link import id_at
from nm_lsp.server.features.markup import MAX_TEXT, Markup, cut
from nm_lsp.server.features.places import At, opened_place_of
from nm_lsp.server.features.planning import STALE
from nm_lsp.server.features.ranges import TextRanges, touches

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

GRACE_S = 0.1
"""A hover that comes while the folder is just being opened: the pointer has moved on before more than that."""
N_FULL = 6
N_LINES = 12

_WORDS = {"active": "ACTIVE", "stale": "STALE", "invalidated": "INVALIDATED", "unknown": "unknown"}
_ORDER = {"stale": 0, "unknown": 1, "active": 2, "invalidated": 3}


def register(server: NmServer) -> None:
    async def hover(params: types.HoverParams) -> types.Hover | None:
        at = await opened_place_of(server, params.text_document.uri, GRACE_S)
        if at is None:
            return None
        settings = server.surface.settings_of(at.root)
        if not (settings.decisions.hover or settings.synapses.hover):
            return None
        document = server.documents.get(params.text_document.uri)
        line = document.buffer.line(params.position.line) if document is not None else ""
        column = to_index(line, params.position.character, server.client.encoding)
        named = id_at(line, column)
        position = Position(params.position.line, params.position.character)
        marks = server.surface.feed.marks_of(at.root)
        return await server.backend.in_thread(_hover, server, at, position, named, marks, settings)

    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)


def _hover(
    server: NmServer, at: At, position: Position, named: str | None, marks: Marks | None, settings: Settings
) -> types.Hover | None:
    governs = at.desk.governing(at.path) if settings.decisions.hover else ()
    governing = sorted(governs, key=lambda one: (not one.is_here, _ORDER[one.decision.status]))
    here, elsewhere = _parted(governing, position)
    writer = _Writer(at, Markup(server.client.shows_markdown), marks)
    full = [writer.full(one.decision, one.rationale) for one in here[:N_FULL]]
    row = at.desk.row(named) if named is not None and settings.decisions.hover else None
    if row is not None and all(one.decision.id != row.id for one in here):
        full.insert(0, writer.full(row, at.desk.rationale(row.id) or ""))
    lines = [writer.short(one.decision) for one in elsewhere[:N_LINES]]
    n_more = len(here) - len(here[:N_FULL]) + len(elsewhere) - len(lines)
    if n_more:
        lines.append(writer.markup.item(f"and {n_more} more"))
    blocks = [*full, "\n".join(lines)] if lines else full
    if settings.synapses.hover:
        blocks += _associations(at, position.line, writer.markup)
    text = writer.markup.rule().join(blocks)
    if not text:
        return None
    kind = types.MarkupKind.Markdown if writer.markup.is_markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, cut(text, MAX_TEXT)), _range(server, at, here))


def _associations(at: At, line: int, markup: Markup) -> list[str]:
    """What was learned to go with the symbol at a line, as one block or none."""
    rows = at.host.memory.associations(at.path, line)
    lines = [markup.item(f"{markup.name(node)} · {weight:.2f}") for node, weight in rows]
    return ["\n".join(["Usually changes together with:", *lines])] if lines else []


def _parted(governing: list[Governing], position: Position) -> tuple[list[Governing], list[Governing]]:
    """Those whose anchor the position lies in, the innermost symbol's first; and the others, each decision once."""
    here = [one for one in governing if is_at(one, position, position)]
    here.sort(key=lambda one: -one.span.start_byte if one.span is not None else 1)
    full = {one.decision.id: one for one in reversed(here)}
    rest = {one.decision.id: one for one in governing if one.decision.id not in full}
    return list(reversed(full.values())), list(rest.values())


def is_at(governing: Governing, start: Position, end: Position) -> bool:
    """Whether a range touches the anchor: the lines of its symbol, or the file's first line."""
    if governing.span is not None:
        return touches(governing.span, start, end)
    return start.line == 0


def _range(server: NmServer, at: At, here: list[Governing]) -> types.Range | None:
    span = next((one.name_span for one in here if one.name_span is not None), None)
    text = at.host.outlines.text(at.path) if span is not None else None
    return TextRanges(text, server.client.encoding).of(span) if span is not None and text is not None else None


class _Writer:
    def __init__(self, at: At, markup: Markup, marks: Marks | None) -> None:
        self._at = at
        self.markup = markup
        # The sentences of the marks name the commit's subject; asking git for it here would cost the hover its time.
        self._marked: dict[str, DecisionRow] = {}
        if marks is not None:
            repo_path = at.desk.prefix.to_repository(at.path)
            self._marked = {m.decision.id: m.decision for m in marks.by_path.get(repo_path, ()) if m.code == STALE}

    def full(self, row: DecisionRow, rationale: str) -> str:
        markup = self.markup
        head = f"{markup.strong(row.title)} · {markup.name(row.id)} · {_WORDS[row.status]}"
        return markup.paragraphs(
            head, self._reason(row), markup.prose(rationale), self._replacement(row), self._origin(row)
        )

    def short(self, row: DecisionRow) -> str:
        reason = self._reason(row)
        text = f"{self.markup.line(row.title, 120)} · {self.markup.name(row.id)} · {_WORDS[row.status]}"
        return self.markup.item(f"{text}: {reason}" if reason and row.status != "active" else text)

    def _reason(self, row: DecisionRow) -> str:
        marked = self._marked.get(row.id)
        reason = marked.status_reason if marked and marked.revision == row.revision else row.status_reason
        return self.markup.line(reason) if reason else ""

    def _replacement(self, row: DecisionRow) -> str:
        if row.superseded_by is None:
            return ""
        ids = [row.superseded_by]
        end = self._at.desk.replacement(row.id)
        if end is not None and end not in ids:
            ids.append(end)
        named = [self._named(identity) for identity in ids]
        return "Superseded by " + (named[0] if len(named) == 1 else f"{named[0]}; what holds now is {named[1]}")

    def _named(self, identity: str) -> str:
        row = self._at.desk.row(identity)
        if row is None:
            return self.markup.name(identity)
        return f"{self.markup.name(identity)} “{self.markup.line(row.title, 120)}” ({_WORDS[row.status]})"

    def _origin(self, row: DecisionRow) -> str:
        by = f" by {self.markup.line(row.author, 100)}" if row.author else ""
        return f"Recorded {row.recorded_at[:10]}{by}"
