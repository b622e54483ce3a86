"""The rows of the table that concern the associative brain."""

from __future__ import annotations

from nm_lsp.engine import memory_requests as m
from nm_lsp.engine.requests import Nothing
from nm_lsp.wire.command import Command


def _row(name: str, params: type, result: type, method: str, title: str, doc: str) -> Command:
    return Command(name, params, result, f"memory.{method}", title, doc, with_caller=True)


MEMORY_COMMANDS: tuple[Command, ...] = (
    _row(
        "neighbors",
        m.NeighborsParams,
        m.NeighborsResult,
        "neighbors",
        "Show what goes with a symbol",
        "What is edited, committed and used together with a symbol, strongest first, and what imports and calls say.",
    ),
    _row(
        "next",
        m.NextParams,
        m.NextResult,
        "next",
        "Show what is usually touched next",
        "What was touched after a symbol in the past, most often first; after the latest one when it is left out.",
    ),
    _row(
        "feedback",
        m.FeedbackParams,
        m.FeedbackResult,
        "feedback",
        "Say whether a hit was useful",
        "A useful node is bound to the other hits of its answer; the edges of one that was not are halved.",
    ),
    _row(
        "review",
        m.ReviewParams,
        m.ReviewResult,
        "review",
        "Review the present changes",
        "What usually changes together with the symbols of the present git difference and did not.",
    ),
    _row(
        "probe",
        m.ProbeParams,
        m.ProbeResult,
        "probe",
        "Probe the search",
        "Asks for documented symbols by their documentation instead of their names and lists those not found.",
    ),
    _row(
        "savings",
        Nothing,
        m.SavingsResult,
        "savings",
        "Show token savings",
        "What answers cost in tokens beside the whole files behind them, with the formula.",
    ),
    _row(
        "synapses.inspect",
        m.InspectParams,
        m.InspectResult,
        "inspect",
        "Inspect what was learned",
        "Namespaces, strongest pairs, counters, and whether learning works.",
    ),
    _row(
        "synapses.reset",
        m.ResetParams,
        m.ResetResult,
        "reset",
        "Forget what was learned",
        "Forgets everything in one namespace, or in all, for good.",
    ),
    _row(
        "synapses.export",
        m.MemoryExportParams,
        m.MemoryExportResult,
        "export",
        "Export what was learned",
        "All edges and transitions as a versioned JSON bundle, or the readable page as Markdown.",
    ),
    _row(
        "synapses.import",
        m.MemoryImportParams,
        m.MemoryImportResult,
        "import_",
        "Import what others learned",
        "Takes what a bundle's `personal` and `shared` hold into `shared`, where it counts half; all of it or nothing.",
    ),
    _row(
        "synapses.decay",
        Nothing,
        m.DecayResult,
        "decay",
        "Settle forgetting now",
        "Deletes what has decayed away and what belongs to symbols that are no more.",
    ),
)
