"""The table of commands: every call of every face, one row each.

Dispatch, the advertised command list, `editors/PROTOCOL.md` and the command line's JSON come from these rows. A new
call is a new row plus a method of the host; a test holds the rows against the host's signatures.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nm_lsp.engine import requests as r
from nm_lsp.wire.command import Command
from nm_lsp.wire.decision_commands import DECISION_COMMANDS
from nm_lsp.wire.memory_commands import MEMORY_COMMANDS

COMMANDS: tuple[Command, ...] = (
    Command(
        "status",
        r.Nothing,
        r.StatusResult,
        "status",
        "Show the index status",
        "How far the index is, what was left out of it and why, and what is not as it should be.",
    ),
    Command(
        "stats",
        r.Nothing,
        r.StatsResult,
        "stats",
        "Show statistics of the workspace",
        "Counts of files, symbols and edges, the communities, the model and the size of the index.",
    ),
    Command(
        "wakeup",
        r.WakeupParams,
        r.WakeupResult,
        "wakeup",
        "Introduce the workspace",
        "What this workspace is and how it is built (layers L0 and L1), for the start of a conversation.",
    ),
    Command(
        "query",
        r.QueryParams,
        r.QueryResult,
        "query",
        "Ask how something works",
        "The right context for a question within a token budget: four layers of text and the hits behind them.",
    ),
    Command(
        "search",
        r.SearchParams,
        r.SearchResult,
        "search",
        "Search the code",
        "Symbols that match a question, best first, with the rank each kind of search gave them.",
    ),
    Command(
        "explain",
        r.ExplainParams,
        r.ExplainResult,
        "explain",
        "Explain an answer",
        "Why each hit of a question is there, in sentences; of the latest question when `query` is left out.",
    ),
    Command(
        "relevance",
        r.RelevanceParams,
        r.RelevanceResult,
        "relevance",
        "Show relevance per symbol",
        "The same as `explain` for machines: ranks, raw scores and adjustments of every candidate.",
    ),
    Command(
        "index.rebuild",
        r.RebuildParams,
        r.Acknowledged,
        "rebuild",
        "Rebuild the index",
        "Builds the index anew in the background; the old one answers until the new one is ready.",
    ),
    Command(
        "index.cancel",
        r.Nothing,
        r.Acknowledged,
        "cancel_index",
        "Stop building the index",
        "Stops the build that is running; what is already indexed stays usable.",
    ),
    Command(
        "graph.export",
        r.GraphExportParams,
        r.GraphExportResult,
        "graph_export",
        "Export the code graph",
        "The code graph as schema-versioned JSON, written to a file or returned.",
    ),
    Command(
        "graph.validate",
        r.GraphValidateParams,
        r.GraphValidateResult,
        "graph_validate",
        "Validate a code graph",
        "Checks a graph.json, or the folder's own graph, against the contract.",
    ),
    *DECISION_COMMANDS,
    *MEMORY_COMMANDS,
)

BY_NAME: Mapping[str, Command] = MappingProxyType({command.name: command for command in COMMANDS})

METHOD_PREFIX = "neuralmind/"
"""Requests are always `neuralmind/<name>`; only the command prefix can be chosen by the client."""

DEFAULT_COMMAND_PREFIX = "neuralmind"
