"""What an import finds: exports of ours, architecture decision records, or a NeuralMind store. It only reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, Refused
from nm_lsp.decisions.model import DecisionId, Plain
from nm_lsp.decisions.validation import escaped
from nm_lsp.engine.decisions import adr
from nm_lsp.engine.decisions.drafts import Draft, Seen, derived_id
from nm_lsp.engine.decisions.markdown_format import Block, blocks, is_edited, is_export
from nm_lsp.storage.neuralmind_import import NeuralMindDecision, is_sqlite, read_neuralmind

MAX_FILES: Final = 20_000
MAX_EXPORT: Final = 200_000_000
MAX_FILE: Final = 16_000_000
MAX_ADR: Final = 200_000
_ENDINGS: Final = (".md", ".markdown")


@dataclass(slots=True)
class Found:
    """`blocks` are events of ours with the name of their file, `drafts` what other tools wrote."""

    blocks: list[tuple[str, Block]] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.blocks or self.drafts or self.problems)


def read_source(root: Path, path: Path, cancel: Cancellation) -> Found:
    """What `path` (absolute) holds. Raises `InvalidInput` where nothing of it is recognised, `StoreProblem` for a
    database that is none of NeuralMind's."""
    found = Found()
    if path.is_dir():
        _read_files(root, _markdown_files(path), found, cancel)
    elif is_sqlite(path):
        _read_neuralmind(path, found)
    else:
        _read_files(root, [path], found, cancel)
    if found.is_empty:
        raise InvalidInput(
            "source",
            f"nothing in {escaped(path.name, one_line=True)} is a decision in a form that is known.",
            hint="Give a Markdown export, a folder of exports or of ADRs (MADR, adr-tools), or a NeuralMind memory.db.",
        )
    return found


def _markdown_files(folder: Path) -> list[Path]:
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _ENDINGS and path.is_file() and not path.is_symlink()
    )
    if len(files) > MAX_FILES:
        raise Refused(f"{folder} holds {len(files):,} Markdown files; at most {MAX_FILES:,} are read.")
    return files


def _read_files(root: Path, files: Iterable[Path], found: Found, cancel: Cancellation) -> None:
    records: dict[str, tuple[Path, adr.Record]] = {}
    for path in files:
        cancel.check()
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        shown = escaped(name, one_line=True)
        try:
            text = _text(path)
        except (OSError, UnicodeDecodeError, Refused) as error:
            found.problems.append(f"{shown}: {_why(error)}")
            continue
        if is_export(text):
            in_file = blocks(text)
            found.blocks += [(shown, block) for block in in_file]
            events = in_file[0].events if in_file else ()
            if len(in_file) == 1 and events and text.startswith("---") and is_edited(text, events):
                found.problems.append(
                    f"{shown}: its text was edited by hand, which changes nothing; amend {events[0].decision} instead"
                )
            continue
        if len(text) > MAX_ADR:
            if adr.is_record_name(path.name):
                found.problems.append(f"{shown}: has {len(text):,} characters; at most {MAX_ADR:,} are read.")
            continue
        record = adr.parse(text, path.name)
        if record is not None:
            records[name] = (path, record)
        elif adr.is_record_name(path.name):
            found.problems.append(f"{shown}: has neither a status nor a decision, so it is no record that is known")
    _adr_drafts(root, records, found)


def _text(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(MAX_FILE)
    if size > MAX_FILE:
        # A single text may hold a whole store; anything else of that size is no record.
        if b"<!-- nm-lsp events" not in start or size > MAX_EXPORT:
            raise Refused(f"has {size:,} bytes, which no decision has.")
        start = path.read_bytes()
    return start.decode("utf-8")


def _why(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return "is no UTF-8 text"
        case OSError():
            return f"cannot be read: {error.strerror}"
        case _:
            return str(error)


# -- architecture decision records ---------------------------------------------------------------------------------


def _adr_drafts(root: Path, records: dict[str, tuple[Path, adr.Record]], found: Found) -> None:
    ids = {name: derived_id("adr", name) for name in records}
    for name, (path, record) in records.items():
        shown = escaped(name, one_line=True)
        if record.standing is adr.Standing.PROPOSED:
            found.problems.append(f"{shown}: is only proposed; import it when it is accepted")
            continue
        beside = {other.name: key for key, (other, _) in records.items() if other.parent == path.parent}
        target = adr.linked(beside, record.superseded_by) if record.superseded_by is not None else None
        fields: dict[str, Plain] = {
            "title": record.title,
            "rationale": record.rationale or record.title,
            "type": "adr",
            "tags": list(record.tags),
            "alternatives": list(record.alternatives),
            "evidence": [f"{name}, dated {record.date}" if record.date else name],
        }
        if record.author:
            fields["author"] = record.author
        found.drafts.append(
            Draft(
                source=shown,
                id=ids[name],
                fields=fields,
                files=record.paths,
                fallback=name if path.is_relative_to(root) else None,
                lost=None if record.standing is adr.Standing.ACCEPTED else record.status or record.standing.value,
                superseded_by=ids[beside[target]] if target is not None and target != path.name else None,
            )
        )


# -- NeuralMind ----------------------------------------------------------------------------------------------------


def _read_neuralmind(path: Path, found: Found) -> None:
    rows = read_neuralmind(path)
    ids = {row.id: derived_id("neuralmind", row.id) for row in rows}
    for row in rows:
        shown = f"NeuralMind decision {escaped(row.id, one_line=True)[:60]}"
        if row.status not in {"ACTIVE", "STALE", "INVALIDATED"}:
            found.problems.append(f"{shown}: {escaped(row.status, one_line=True)[:40]!r} is no status that is known")
            continue
        found.drafts.append(_neuralmind_draft(row, shown, ids))
    if not rows:
        found.problems.append("the NeuralMind store holds no decision")


def _neuralmind_draft(row: NeuralMindDecision, shown: str, ids: dict[str, DecisionId]) -> Draft:
    """ACTIVE and STALE are not taken over: what a commit did since is derived from what NeuralMind saw."""
    fields: dict[str, Plain] = {
        "title": row.title,
        "rationale": row.rationale if row.rationale.strip() else row.title,
        "tags": list(row.tags),
        "alternatives": list(row.alternatives),
        "evidence": list(row.evidence),
    }
    optional = {"type": row.type.lower() if row.type else None, "author": row.author, "confidence": row.confidence}
    fields |= {name: value for name, value in optional.items() if value is not None}
    lost = None
    if row.status == "INVALIDATED":
        said = [line for line in row.evidence if line.lower().startswith("invalidated")]
        lost = said[-1].partition(":")[2].strip() if said else ""
    return Draft(
        source=shown,
        id=ids[row.id],
        fields=fields,
        files=row.files,
        depends_on=tuple(ids[wanted] for wanted in row.depends_on if wanted in ids and wanted != row.id),
        lost=(lost or "invalidated in NeuralMind") if lost is not None else None,
        seen=Seen(row.commit or None, _time(row.updated_at) or _time(row.created_at), row.blobs),
    )


def _time(text: str) -> str | None:
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        return None
