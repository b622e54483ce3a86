"""`textDocument/codeAction`: what a person can do about the decisions that govern a place.

- Quick fixes for a decision that does not hold, at its anchor, whether or not the client sends its diagnostic: show
  what changed since, restore, acknowledge, amend, supersede, invalidate; and restoring all that differ in comments or
  layout only.
- Amending, superseding and invalidating one that holds, and recording a new one for the symbol around the range or for
  the file: kind `refactor`, offered when the user asks.

Every action is a command, never an edit. It carries the revision (and for a restore the HEAD) that the user saw, so
that one that has become outdated is refused. Where a reason or a title is needed, a client with
`initializationOptions.prompts` finds `{"prompt": {"message", "value"?, "choices"?}}` in place of the text and asks its
user; every other client is asked by `window/showMessageRequest`, see `asking`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nm_lsp.base.text import Position
from nm_lsp.engine.decision_requests import DecisionRow, Governing, Marks
from nm_lsp.server.features import asking, news
from nm_lsp.server.features.hover import is_at
from nm_lsp.server.features.markup import one_line
from nm_lsp.server.features.places import At, arguments_for, command_name, opened_place_of
from nm_lsp.server.features.planning import AT_RISK, INVALIDATED, SOURCE, STALE

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

MAX_DECISIONS = 8
_TITLE_CHARS = 60
_OURS = frozenset({STALE, AT_RISK, INVALIDATED})

Action = types.Command | types.CodeAction


def register(server: NmServer) -> None:
    async def code_actions(params: types.CodeActionParams) -> list[Action]:
        at = await opened_place_of(server, params.text_document.uri)
        if at is None:
            return []
        marks = server.surface.feed.marks_of(at.root)
        return await server.backend.in_thread(_actions, server, at, params, marks)

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.Refactor]
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))(code_actions)


@dataclass(frozen=True, slots=True)
class Offer:
    """One action before it takes the client's form. `about` is the id of the decision it settles, if it does."""

    kind: types.CodeActionKind
    title: str
    command: str
    fields: dict[str, Any]
    about: str | None = None


def _actions(server: NmServer, at: At, params: types.CodeActionParams, marks: Marks | None) -> list[Action]:
    wanted = [str(getattr(kind, "value", kind)) for kind in params.context.only or ("",)]
    offers = [offer for offer in _offers(server, at, params, marks) if any(_is_of(offer.kind, kind) for kind in wanted)]
    return [_in_form(server, at, offer, params.context.diagnostics) for offer in offers]


def _is_of(kind: types.CodeActionKind, wanted: str) -> bool:
    return wanted in ("", kind.value) or kind.value.startswith(wanted + ".")


def _in_form(server: NmServer, at: At, offer: Offer, diagnostics: Sequence[types.Diagnostic]) -> Action:
    command = types.Command(
        offer.title, command_name(server, offer.command), arguments=arguments_for(at.root, offer.fields)
    )
    if not server.client.literal_actions:
        return command
    fixed = [each for each in diagnostics if offer.about is not None and _id_of(each) == offer.about]
    return types.CodeAction(offer.title, kind=offer.kind, diagnostics=fixed or None, command=command)


def _id_of(diagnostic: types.Diagnostic) -> str | None:
    """The decision of a diagnostic of ours. Clients that keep no `data` keep the message, which ends with the id."""
    if diagnostic.source != SOURCE or diagnostic.code not in _OURS:
        return None
    data: Any = diagnostic.data
    if isinstance(data, dict) and isinstance(data.get("id"), str):
        return str(data["id"])
    return diagnostic.message.rpartition("(")[2].rstrip(")")


def _offers(server: NmServer, at: At, params: types.CodeActionParams, marks: Marks | None) -> Iterator[Offer]:
    start = Position(params.range.start.line, params.range.start.character)
    end = Position(params.range.end.line, params.range.end.character)
    named = {_id_of(diagnostic) for diagnostic in params.context.diagnostics}
    asked = params.context.trigger_kind is not types.CodeActionTriggerKind.Automatic
    governing: dict[str, Governing] = {}
    for one in at.desk.governing(at.path):
        if one.decision.id in named or is_at(one, start, end):
            governing.setdefault(one.decision.id, one)
    rows = [one.decision for one in governing.values()]
    # A diagnostic may sit on a file that no longer is, or never was, an anchor.
    rows += [row for i in named if i is not None and i not in governing and (row := at.desk.row(i)) is not None]
    # What is shown may tell layout from change already, and is what the user saw.
    marked = news.stale_rows(marks) if marks is not None else {}
    rows = [marked.get(row.id, row) if row.status == "stale" else row for row in rows]
    stale = [row for row in rows if row.status == "stale"][:MAX_DECISIONS]
    head = marks.revision[0] if marks is not None else None
    for row in stale:
        yield from _for_stale(server, row, head)
    if marks is not None:
        yield from _for_all(stale, marks)
    if asked:
        for row in [row for row in rows if row.status == "active"][:MAX_DECISIONS]:
            yield Offer(types.CodeActionKind.Refactor, f"Show {_title(row)}", asking.COMMAND, _ask("show", row))
            yield from _changing(server, row, types.CodeActionKind.Refactor)
        yield from _recording(server, at, start)


def _for_stale(server: NmServer, row: DecisionRow, head: str | None) -> Iterator[Offer]:
    kind, title = types.CodeActionKind.QuickFix, _title(row)
    changed = asking.COMMAND if not server.client.prompts else "decisions.diff"
    show = {"id": row.id} if server.client.prompts else _ask("diff", row)
    yield Offer(kind, f"Show what changed since {title}", changed, show, row.id)
    if row.reason != "dependency":
        fields: dict[str, Any] = {"ids": [row.id], "expect": {row.id: row.revision}}
        if head is not None:
            fields["head"] = head
        verb = "Restore (the recorded content is back)" if row.reverted else "Restore (it still holds)"
        yield Offer(kind, f"{verb}: {title}", "decisions.restore", fields, row.id)
    if not row.acknowledged:
        fields = {"ids": [row.id], "expect": {row.id: row.revision}}
        yield Offer(kind, f"Hide until the next change: {title}", "decisions.acknowledge", fields, row.id)
    yield from _changing(server, row, kind)


def _changing(server: NmServer, row: DecisionRow, kind: types.CodeActionKind) -> Iterator[Offer]:
    title, about = _title(row), row.id if kind is types.CodeActionKind.QuickFix else None
    for act, label in (("amend", "Amend"), ("supersede", "Replace by another"), ("invalidate", "Invalidate")):
        if server.client.prompts:
            yield Offer(kind, f"{label}: {title}", f"decisions.{act}", _with_prompts(act, row), about)
        else:
            yield Offer(kind, f"{label}: {title}", asking.COMMAND, _ask(act, row), about)


def _with_prompts(act: str, row: DecisionRow) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": row.id, "expect": row.revision}
    match act:
        case "amend":
            fields["set"] = {"rationale": _prompt(f"New rationale of {_title(row)}")}
        case "supersede":
            fields["by"] = _prompt(f"Id of the decision that replaces {_title(row)}")
            fields["reason"] = _prompt("Why was it replaced?", choices=asking.REASONS)
        case _:
            fields["reason"] = _prompt("Why does it no longer hold?", choices=asking.REASONS)
    return fields


def _for_all(stale: list[DecisionRow], marks: Marks) -> Iterator[Offer]:
    """Restoring everything of one kind, offered where one of that kind is at hand."""
    kind = types.CodeActionKind.QuickFix
    head = {"head": marks.revision[0]} if marks.revision[0] is not None else {}
    if marks.n_layout > 1 and any(row.reason == "layout" for row in stale):
        title = f"Restore all {marks.n_layout} decisions where only comments or layout changed"
        yield Offer(kind, title, "decisions.restore", {"all": "layout", "confirm": marks.n_layout, **head})
    if marks.n_reverted > 1 and any(row.reverted for row in stale):
        title = f"Restore all {marks.n_reverted} decisions whose recorded content is back"
        yield Offer(kind, title, "decisions.restore", {"all": "reverted", "confirm": marks.n_reverted, **head})


def _recording(server: NmServer, at: At, start: Position) -> Iterator[Offer]:
    outline = at.host.outlines.outline(at.path)
    around = outline.around(start.line)
    anchors = [(f"{at.path}::{around.qualified_name}", around.qualified_name)] if around is not None else []
    for anchor, name in [*anchors, (at.path, at.path.rpartition("/")[2])]:
        title = f"Record a decision for {one_line(name, _TITLE_CHARS)}"
        if server.client.prompts:
            doc = around.doc if around is not None and anchor != at.path else outline.doc
            fields = {
                "title": _prompt("What was decided?", value=asking.title_from(doc)),
                "rationale": _prompt("Why?", value=doc),
                "files": [anchor],
            }
            yield Offer(types.CodeActionKind.Refactor, title, "decisions.record", fields)
        else:
            yield Offer(types.CodeActionKind.Refactor, title, asking.COMMAND, {"act": "record", "anchor": anchor})


def _ask(act: str, row: DecisionRow) -> dict[str, Any]:
    return {"act": act, "id": row.id, "expect": row.revision}


def _prompt(message: str, *, value: str = "", choices: tuple[str, ...] = ()) -> dict[str, Any]:
    prompt: dict[str, Any] = {"message": message}
    if value:
        prompt["value"] = value
    if choices:
        prompt["choices"] = list(choices)
    return {"prompt": prompt}


def _title(row: DecisionRow) -> str:
    return f"“{one_line(row.title, _TITLE_CHARS)}”"
