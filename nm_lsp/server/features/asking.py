"""Acts that need a word from the user, for clients that cannot ask for one: `window/showMessageRequest` offers some.

The command is `<prefix>.decisions.ask` with `{act, id?, expect?, anchor?, path?}`. It is answered at once; question,
act and a refusal (shown as a message) follow. `show` and `diff` open a page instead of asking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, NmError, NotFound
from nm_lsp.engine.decision_requests import (
    AmendFields,
    AmendParams,
    DecisionRow,
    InvalidateParams,
    RecordParams,
    SupersedeParams,
)
from nm_lsp.server.backend import HostPort
from nm_lsp.server.features.markup import cut, one_line
from nm_lsp.server.features.pages import show_page
from nm_lsp.server.features.places import caller_of
from nm_lsp.server.roots import Root
from nm_lsp.wire.decode import decode

if TYPE_CHECKING:
    from nm_lsp.server.connection import NmServer

COMMAND = "decisions.ask"
ASK_TIMEOUT_S = 600.0
"""How long a question stays open. The act then does not happen."""

REASONS = (
    "The code was replaced on purpose",
    "The reason no longer applies",
    "It was wrong from the start",
)
_MAX_TITLE = 120
_MAX_RATIONALE = 4_000
_N_REPLACEMENTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AskParams:
    """`expect`: the revision the user saw. `anchor`: of a new decision. `path`: the file to show all decisions of."""

    act: str
    id: str | None = None
    expect: int | None = None
    anchor: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A ready answer: what the button says and what it does."""

    label: str
    act: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    choices: tuple[Choice, ...]


def run(server: NmServer, root: Root, fields: Any) -> None:
    """Begin an act. Raises `InvalidInput` or `NotFound` for parameters that name none."""
    params = decode(AskParams, fields)
    host = root.ready_host()
    if host is None:
        raise NotFound("The folder is not ready yet.")
    if params.act not in {"show", "diff", "invalidate", "amend", "supersede", "record"}:
        raise InvalidInput("act", "expected show, diff, invalidate, amend, supersede or record")
    if params.act == "record":
        if params.anchor is None:
            raise InvalidInput("anchor", "is missing")
    elif params.id is None and params.path is None:
        raise InvalidInput("id", "is missing")
    server.spawn(_act(server, root, host, params))


async def _act(server: NmServer, root: Root, host: HostPort, params: AskParams) -> None:
    try:
        pages, identity = server.surface.pages_of(root, host), params.id or ""
        match params.act:
            case "show":
                path = params.path
                await show_page(server, lambda: pages.governing(path) if path else pages.decision(identity))
            case "diff":
                await show_page(server, lambda: pages.difference(identity))
            case _:
                question = await server.backend.in_thread(_question, server, host, params)
                choice = await _choose(server, question)
                if choice is not None:
                    # Beside the requests of the table: an act may wait for git or for another writer.
                    await asyncio.wrap_future(server.backend.executor.submit(choice.act))
    except NmError as error:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Error, one_line(str(error))))


async def _choose(server: NmServer, question: Question) -> Choice | None:
    actions = [types.MessageActionItem(choice.label) for choice in question.choices]
    if not actions:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, question.text))
        return None
    params = types.ShowMessageRequestParams(types.MessageType.Info, question.text, actions)
    try:
        answer = await server.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params, ASK_TIMEOUT_S)
    except (TimeoutError, JsonRpcException):
        return None
    chosen = answer.title if answer is not None else None
    return next((choice for choice in question.choices if choice.label == chosen), None)


def _question(server: NmServer, host: HostPort, params: AskParams) -> Question:
    if params.act == "record":
        return _record(server, host, params.anchor or "")
    row = host.decisions.row(params.id or "")
    if row is None:
        raise NotFound(f"There is no decision {one_line(params.id or '', 40)}.")
    match params.act:
        case "invalidate":
            return _invalidate(server, host, row, params.expect)
        case "supersede":
            return _supersede(server, host, row, params.expect)
        case _:
            return _amend(server, host, row, params.expect)


def _invalidate(server: NmServer, host: HostPort, row: DecisionRow, expect: int | None) -> Question:
    def act(reason: str) -> Callable[[], object]:
        params = InvalidateParams(id=row.id, reason=reason, expect=expect)
        return lambda: host.decisions.invalidate(params, Cancellation(), caller_of(server))

    return Question(f"Why does {_title(row)} no longer hold?", tuple(Choice(reason, act(reason)) for reason in REASONS))


def _supersede(server: NmServer, host: HostPort, row: DecisionRow, expect: int | None) -> Question:
    """By one of the newest ACTIVE decisions about the same files."""
    paths = [anchor.path for anchor in row.anchors if anchor.path is not None]
    near = {one.decision.id: one.decision for path in paths for one in host.decisions.governing(path)}
    others = [other for other in near.values() if other.status == "active" and other.id != row.id]
    others.sort(key=lambda other: other.recorded_at, reverse=True)
    if not others:
        text = f"No active decision governs the same files as {_title(row)}. Record the one that replaces it first."
        return Question(text, ())

    def act(other: DecisionRow) -> Callable[[], object]:
        params = SupersedeParams(id=row.id, by=other.id, reason=f"Replaced by {_title(other)}", expect=expect)
        return lambda: host.decisions.supersede(params, Cancellation(), caller_of(server))

    choices = tuple(Choice(f"{one_line(o.title, 60)} ({o.id})", act(o)) for o in others[:_N_REPLACEMENTS])
    return Question(f"Which decision replaces {_title(row)}?", choices)


def _amend(server: NmServer, host: HostPort, row: DecisionRow, expect: int | None) -> Question:
    """Governing what is there now; texts cannot be asked for this way."""
    there = [anchor for anchor in row.anchors if anchor.state.value != "gone"]
    names = []
    for anchor in there:
        symbol = f"::{anchor.symbol}" if anchor.symbol else ""
        names.append("/" + (anchor.moved_to or f"{anchor.repo_path}{symbol}"))
    is_other = len(there) != len(row.anchors) or any(anchor.moved_to for anchor in there)
    how = f"`nm-lsp decisions amend {row.id}` changes its texts."
    if not names or not is_other:
        return Question(f"{_title(row)} governs what it was recorded for. {how}", ())

    def act() -> object:
        params = AmendParams(id=row.id, set=AmendFields(files=tuple(names)), expect=expect)
        return host.decisions.amend(params, Cancellation(), caller_of(server))

    shown = one_line(", ".join(name.removeprefix("/") for name in names), 200)
    return Question(f"Shall {_title(row)} govern {shown} from now on? {how}", (Choice("Govern these", act),))


def _record(server: NmServer, host: HostPort, anchor: str) -> Question:
    path, _, symbol = anchor.partition("::")
    outline = host.outlines.outline(path)
    found = outline.named(symbol) if symbol else None
    doc = found.doc if found is not None else outline.doc
    reasons = found.rationale if found is not None else ()
    name = symbol or path

    def act(title: str, rationale: str) -> Callable[[], object]:
        params = RecordParams(title=title, rationale=rationale, files=(anchor,))
        return lambda: host.decisions.record(params, Cancellation(), caller_of(server))

    choices = []
    if title := title_from("\n".join(reasons) or doc):
        choices.append(Choice(title, act(title, cut("\n".join([*reasons, doc]).strip(), _MAX_RATIONALE))))
    keep = f"Keep {one_line(name, 80)} as it is"
    choices.append(Choice(keep, act(keep, f"Recorded in the editor: {one_line(name)} is as it is on purpose.")))
    return Question(f"What was decided about {one_line(name, 80)}?", tuple(choices))


def title_from(doc: str) -> str:
    """A title from the first line of a documentation comment; "" where there is none."""
    first = next((line for line in doc.splitlines() if line.strip()), "")
    for mark in ("DECISION:", "WHY:", "NOTE:", "HACK:", "TODO:"):
        first = first.strip().removeprefix(mark)
    return one_line(first, _MAX_TITLE).rstrip(".")


def _title(row: DecisionRow) -> str:
    return f"“{one_line(row.title, 80)}”"
