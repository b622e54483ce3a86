"""The audit chain as people ask for it: verified, anchored, written out."""

from __future__ import annotations

from nm_lsp.audit.text import format_anchor, format_line, parse_anchor
from nm_lsp.engine.decision_requests import (
    AuditAnchorResult,
    AuditExportParams,
    AuditExportResult,
    Caller,
    VerifyParams,
    VerifyResult,
)
from nm_lsp.engine.decisions.keeper import Keeper

_NO_CHAIN = "0" * 64


def verify(keeper: Keeper, params: VerifyParams) -> VerifyResult:
    """Checks the table, its text copy, their agreement and, if given, an anchor kept elsewhere."""
    anchors = [parse_anchor(params.head)] if params.head is not None else []
    store = keeper.store()
    if store is None:
        faults = ("the anchor names a chain, and there is none here",) if anchors else ()
        return VerifyResult(not faults, 0, _NO_CHAIN, 0, 0, 0, faults)
    report = store.audit.verify(anchors)
    verdict = report.verdict
    problems = [f"{finding.copy}, line {finding.line}: {finding.message}" for finding in verdict.findings]
    if report.n_dropped:
        problems.append(f"{report.n_dropped} records could not be written and are missing from the chain")
    if report.n_waiting:
        problems.append(f"{report.n_waiting} records are not in audit.jsonl yet")
    return VerifyResult(
        valid=report.sound,
        records=verdict.n_records,
        head=verdict.head.hash,
        dropped=report.n_dropped,
        waiting=report.n_waiting,
        redacted=len(verdict.redacted),
        problems=tuple(problems),
    )


def anchor(keeper: Keeper) -> AuditAnchorResult:
    head = keeper.writable_store().audit.head()
    return AuditAnchorResult(head.sequence, head.hash, format_anchor(head))


def export(keeper: Keeper, params: AuditExportParams, actor: str, caller: Caller) -> AuditExportResult:
    store = keeper.writable_store()
    if params.rewrite:
        names = store.audit.rewrite_text(actor, caller.face, keeper.clock())
        return AuditExportResult(len(store.audit.records()), None, ", ".join(names) or None)
    records = store.audit.records()
    text = b"".join(format_line(record) for record in records).decode("utf-8")
    return AuditExportResult(len(records), text, None)
