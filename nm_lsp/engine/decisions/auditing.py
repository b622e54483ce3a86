"""The audit chain as people ask for it: verified, anchored, written out."""

from __future__ import annotations

import re

from nm_lsp.audit.text import format_anchor, format_line, parse_anchor
from nm_lsp.base.errors import NotFound, StoreProblem
from nm_lsp.engine.decision_requests import (
    AuditAnchorResult,
    AuditExportParams,
    AuditExportResult,
    AuditRotateResult,
    Caller,
    VerifyParams,
    VerifyResult,
)
from nm_lsp.engine.decisions.keeper import Keeper
from nm_lsp.storage.decisions import DecisionStore

_NO_CHAIN = "0" * 64
_HASH = re.compile("[0-9a-f]{64}")


def verify(keeper: Keeper, params: VerifyParams) -> VerifyResult:
    """Checks the table, its text copy, their agreement and, if given, an anchor kept elsewhere."""
    kept = params.head.strip() if params.head is not None else None
    is_hash = kept is not None and _HASH.fullmatch(kept) is not None
    anchors = [parse_anchor(kept)] if kept is not None and not is_hash else []
    store = keeper.store()
    if store is None:
        faults = ("the anchor names a chain, and there is none here",) if kept not in (None, _NO_CHAIN) else ()
        return VerifyResult(not faults, 0, _NO_CHAIN, 0, 0, 0, faults)
    report = store.audit.verify(anchors)
    verdict = report.verdict
    problems = [f"{finding.copy}, line {finding.line}: {finding.message}" for finding in verdict.findings]
    is_cut = is_hash and kept != _NO_CHAIN and all(record.hash != kept for record in store.audit.records())
    if is_cut:
        problems.append(f"no record has the hash {kept}: the chain was cut or rewritten")
    problems += _loss_in_words(report.n_dropped, report.n_waiting)
    return VerifyResult(
        valid=report.sound and not is_cut,
        records=verdict.n_records,
        head=verdict.head.hash,
        dropped=report.n_dropped,
        waiting=report.n_waiting,
        redacted=len(verdict.redacted),
        problems=tuple(problems),
    )


def losses(keeper: Keeper) -> tuple[str, ...]:
    """What the audit lacks because it could not be written, in words; nothing where the store cannot be read."""
    try:
        store = keeper.store()
        return _loss_in_words(*store.audit.lost()) if store is not None else ()
    except StoreProblem:
        # The keeper names that problem itself.
        return ()


def _loss_in_words(n_dropped: int, n_waiting: int) -> tuple[str, ...]:
    found = []
    if n_dropped:
        found.append(f"{n_dropped} audit records could not be written and are missing from the chain")
    if n_waiting:
        found.append(f"{n_waiting} audit records are not in audit.jsonl yet")
    return tuple(found)


def anchor(keeper: Keeper) -> AuditAnchorResult:
    head = _store(keeper).audit.head()
    return AuditAnchorResult(head.sequence, head.hash, format_anchor(head))


def export(keeper: Keeper, params: AuditExportParams, actor: str, caller: Caller) -> AuditExportResult:
    store = _store(keeper)
    if params.rewrite:
        names = store.audit.rewrite_text(actor, caller.face, keeper.clock())
        return AuditExportResult(len(store.audit.records()), None, ", ".join(names) or None)
    records = store.audit.records()
    text = b"".join(format_line(record) for record in records).decode("utf-8")
    return AuditExportResult(len(records), text, None)


def rotate(keeper: Keeper, actor: str, caller: Caller) -> AuditRotateResult:
    """Closes audit.jsonl under an archive's name and goes on in a new one; the archive stays part of the chain.

    Raises Refused where the text copy is empty or does not agree with the table, NotFound where there is no chain.
    """
    audit = _store(keeper).audit
    archived = audit.rotate(actor, caller.face, keeper.clock())
    return AuditRotateResult(str(audit.text.path.with_name(archived.name)), archived.end.sequence, archived.end.hash)


def _store(keeper: Keeper) -> DecisionStore:
    """The store, not created for the asking: an audit begins with the first change."""
    store = keeper.store()
    if store is None:
        raise NotFound("There is no audit here yet; it begins with the first decision.")
    return store
