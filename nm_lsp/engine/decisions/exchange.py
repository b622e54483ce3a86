"""Decisions out of the store and into it: Markdown for people, a folder for a team, and what other tools wrote.

A folder holds one file a decision with all of its events, so that two clones that exchange it through git lose nothing
of either side. Guarantees: a file changes only if its decision did; no event that is in the folder and not here is ever
overwritten; an import is one transaction with an audit record, or nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nm_lsp.audit.chain import Act
from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Conflict, InvalidInput, NotFound, Refused
from nm_lsp.base.uris import checked_path
from nm_lsp.base.wording import counted
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.fold import Standing
from nm_lsp.decisions.model import DecisionId, Plain
from nm_lsp.decisions.validation import escaped
from nm_lsp.decisions.verdicts import Status
from nm_lsp.engine.decision_requests import (
    DecisionExportParams,
    DecisionExportResult,
    DecisionImportParams,
    DecisionImportResult,
)
from nm_lsp.engine.decisions.acts import Scene
from nm_lsp.engine.decisions.adopting import adopt, prepare
from nm_lsp.engine.decisions.anchoring import repository_path
from nm_lsp.engine.decisions.keeper import Held
from nm_lsp.engine.decisions.markdown_format import blocks, file_name, to_file, to_section
from nm_lsp.engine.decisions.merging import Merge, merge
from nm_lsp.engine.decisions.rows import SHORT, Describer
from nm_lsp.engine.decisions.sources import Found, read_source
from nm_lsp.engine.decisions.worktree import Look
from nm_lsp.engine.exporting import is_in_git_folder
from nm_lsp.storage.files import replace_file

STATUSES: Final = ("active", "all")
_ATTEMPTS: Final = 3

History = Mapping[DecisionId, Sequence[Event]]


def export(scene: Scene, look: Look, params: DecisionExportParams, cancel: Cancellation) -> DecisionExportResult:
    """One text with the decisions of `params.status`; or a folder with a file for every decision, whatever its status:
    one that was left out would be lost to whoever imports it. `files` of the result are those that were written."""
    if params.status not in STATUSES:
        raise InvalidInput("status", f"{params.status[:40]!r} is not one of {', '.join(STATUSES)}.")
    history = _history(scene)
    if params.dir is None:
        result = _as_text(scene, look, params.status, history)
        target = "text"
    else:
        folder = _export_folder(scene, params.dir)
        result = _as_files(scene, look, folder, history, cancel)
        target = folder.relative_to(scene.tree.root).as_posix()
    store = scene.tree.keeper.store()
    if store is not None:
        after: dict[str, Plain] = {"target": target, "decisions": result.count}
        act = Act(scene.actor(), scene.caller.face, "decisions.exported", target, None, after)
        store.audit.append_or_count([act], scene.tree.keeper.clock())
    return result


def _history(scene: Scene) -> History:
    """All events by decision, in the order of their writing, read at once."""
    store = scene.tree.keeper.store()
    history: dict[DecisionId, list[Event]] = defaultdict(list)
    for event in store.changes(0).events if store is not None else ():
        if event.decision is not None:
            history[event.decision].append(event)
    return history


def _as_text(scene: Scene, look: Look, status: str, history: History) -> DecisionExportResult:
    chosen = [i for i in look.records if status == "all" or _is_believed(look, i)]
    chosen.sort(key=lambda i: (look.records[i].recorded_at, i))
    describer = Describer.of(scene.tree, look, scene.prefix, chosen)
    at = f" at {look.head.commit[:SHORT]}" if look.head.commit is not None else ""
    parts = [
        "# Decisions\n",
        f"{counted(len(chosen), 'decision')} as {'it stands' if len(chosen) == 1 else 'they stand'}{at}.\n",
    ]
    for identity in chosen:
        verdict = look.verdicts[identity]
        said = None if verdict.status is Status.INVALIDATED else verdict.status.value
        if verdict.status in {Status.STALE, Status.UNKNOWN}:
            said = f"**{said}**: {describer.sentence(look.records[identity], verdict)}"
        parts.append(to_section(history[identity], said))
    return DecisionExportResult(len(chosen), "\n".join(parts), ())


def _is_believed(look: Look, identity: DecisionId) -> bool:
    status = look.verdicts[identity].status
    is_kept = look.records[identity].standing is Standing.ACTIVE
    return status is Status.ACTIVE or (status is Status.UNKNOWN and is_kept)


# -- a folder ------------------------------------------------------------------------------------------------------


def _export_folder(scene: Scene, text: str) -> Path:
    if not text.strip():
        raise InvalidInput("dir", "must not be empty.")
    root = scene.tree.root
    folder = root / repository_path(root, scene.prefix, text, "dir")
    real = folder.resolve()
    if not real.is_relative_to(root.resolve()):
        raise Refused(f"{escaped(text, one_line=True)} is a link that leaves the repository.")
    if is_in_git_folder(real.relative_to(root.resolve())):
        raise Refused(f"{escaped(text, one_line=True)} lies in a folder of git's own.", hint="Name another folder.")
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{escaped(text, one_line=True)} is a file.", hint="Give a folder, like docs/decisions.")
    return folder


def _as_files(scene: Scene, look: Look, folder: Path, history: History, cancel: Cancellation) -> DecisionExportResult:
    there = _files_by_decision(folder)
    texts: dict[Path, str] = {}
    ahead = []
    for identity in sorted(look.records):
        cancel.check()
        known = there.get(identity, [])
        path = known[0] if known else folder / file_name(look.records[identity])
        ours = {event.id: event for event in history[identity]}
        old = _read(path) if known else None
        order = [event.id for block in blocks(old) for event in block.events] if old is not None else []
        if any(name not in ours for name in order):
            ahead.append(path.name)
            continue
        # The order that the file has stays, so that two clones that hold the same events write the same file.
        ordered = {name: ours[name] for name in order} | ours
        texts[path] = to_file(list(ordered.values()))
    if ahead:
        raise Refused(
            f"{len(ahead)} files hold changes that are not in this store, {ahead[0]} among them.",
            hint="Import the folder first, then export it again.",
        )
    if texts:
        folder.mkdir(parents=True, exist_ok=True)
    changed = [path for path, text in texts.items() if _read(path) != text]
    for path in changed:
        replace_file(path, texts[path].encode("utf-8"))
    names = tuple(path.relative_to(scene.tree.root).as_posix() for path in changed)
    return DecisionExportResult(len(texts), None, names)


def _files_by_decision(folder: Path) -> dict[str, list[Path]]:
    """The files that are there by the id their name begins with: a name stays when the title changes."""
    found: dict[str, list[Path]] = defaultdict(list)
    if folder.is_dir():
        for path in sorted(folder.glob("nm-*.md")):
            found["-".join(path.stem.split("-")[:2])].append(path)
    return found


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return None


# -- importing -----------------------------------------------------------------------------------------------------


def import_(scene: Scene, params: DecisionImportParams, cancel: Cancellation) -> DecisionImportResult:
    """Take in what `params.source` holds. What cannot be taken in is among the problems; nothing else is left out."""
    path = _source(scene, params.source)
    found = read_source(scene.tree.root, path, cancel)
    for attempt in range(_ATTEMPTS):
        cancel.check()
        held = scene.tree.keeper.held()
        result, problems = _plan(scene, found, held)
        if params.dry_run or not (result.events or result.redactions):
            break
        try:
            _carry_out(scene, result, held, escaped(path.name, one_line=True))
            break
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
    return DecisionImportResult(
        imported=tuple(result.imported),
        merged=tuple(result.merged),
        unchanged=result.unchanged,
        problems=tuple(dict.fromkeys([*found.problems, *problems])),
    )


def _source(scene: Scene, text: str) -> Path:
    """The path that `text` names. Only somebody at a command line may name one outside the repository."""
    root = scene.tree.root
    checked_path(text, "source")
    given = Path(text).expanduser() if text.startswith("~") else Path(text)
    if given.is_absolute() and given.exists():
        path = given.resolve()
        if scene.caller.face != "cli" and not path.is_relative_to(root.resolve()):
            raise Refused(f"{escaped(text, one_line=True)} lies outside the repository.", hint="Import it with nm-lsp.")
        return path
    if scene.caller.face == "cli" and text.startswith(".."):
        path = (root / scene.prefix.text / text).resolve()
    elif text.replace("\\", "/").lstrip("/").startswith(".neuralmind/"):
        # Nothing there can be governed, but NeuralMind keeps its store there.
        path = root / text.lstrip("/")
    else:
        path = root / repository_path(root, scene.prefix, text, "source")
    if not path.exists():
        raise NotFound(f"There is no {escaped(text, one_line=True)} here.")
    return path


def _plan(scene: Scene, found: Found, held: Held) -> tuple[Merge, list[str]]:
    records = held.memory.records
    history = _history(scene)
    look = scene.tree.look()

    def make(kind: EventKind, decision: DecisionId, **parts: object) -> Event:
        return scene.event(look, kind, decision, **parts)

    result = merge(found.blocks, records, history, make)
    problems = list(result.problems)
    if found.drafts:
        scene.answering_look()
        ready = prepare(scene, found.drafts, records, problems)
        adopted = adopt(ready, records, lambda identity: history.get(identity, ()), make)
        result.events += adopted.events
        result.imported += adopted.imported
        result.merged += adopted.merged
        result.unchanged += adopted.unchanged
        problems += adopted.problems
    return result, problems


def _carry_out(scene: Scene, result: Merge, held: Held, name: str) -> None:
    keeper = scene.tree.keeper

    def events(now: Held) -> Iterable[Event]:
        if now.revision != held.revision:
            raise Conflict("other decisions were written meanwhile", hint="Send the request again.")
        return result.events

    actor = scene.actor()
    imported: list[Plain] = list(result.imported)
    merged: list[Plain] = list(result.merged)
    after: dict[str, Plain] = {"source": name, "imported": imported, "merged": merged}
    act = Act(actor, scene.caller.face, "decisions.imported", name, None, after)
    keeper.append(events, acts=[act], merged=True)
    store = keeper.writable_store()
    for event in result.redactions:
        store.redact(event, now=keeper.clock())
