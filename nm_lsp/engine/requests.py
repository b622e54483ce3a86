"""What can be asked of a workspace folder and what comes back: the one contract of all faces.

Field names here are the wire's names in snake_case. `path` is relative to the workspace folder; what lies above the
folder has `path=None` and a `repo_path`. Lines count from 0, columns are UTF-8 bytes; faces convert both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from nm_lsp.engine.decision_requests import DecisionRow, DecisionsChanged
from nm_lsp.events.bus import Event
from nm_lsp.graph.model import Span
from nm_lsp.storage.times import utc_text


class Phase(Enum):
    SCANNING = "scanning"  # listing files
    KEYWORD = "keyword"  # symbols, keyword search and graph are being built
    VECTORS = "vectors"  # ready; vectors are being computed
    IDLE = "idle"


class Missing(Enum):
    """What a `partial` answer had to do without."""

    INDEX = "index"  # the index is still being built
    VECTORS = "vectors"  # not every vector is there yet
    MODEL = "model"  # no weights: keyword search and graph alone


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file of the opened folder."""

    path: str
    span: Span


# -- search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """`kinds` are node kinds ("function", "class", …); `path` restricts to a file or folder."""

    query: str
    limit: int = 10
    kinds: tuple[str, ...] | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Ranks:
    """1-based rank in each leg, None where the leg did not return it."""

    keyword: int | None
    vector: int | None
    synapse: int | None


@dataclass(frozen=True, slots=True)
class Hit:
    """One symbol. `score` in [0, 1]; `text`: signature, first line of documentation, best lines (≤ 100 tokens)."""

    id: str
    place: Place
    kind: str
    name: str
    signature: str
    score: float
    text: str
    ranks: Ranks


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Hit, ...]
    partial: tuple[Missing, ...]


# -- context -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParams:
    """`budget` scales all layers (tokens in all; default 1,100, at most 1,500)."""

    query: str
    budget: int | None = None
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """`name` is L0, L1, L2 or L3; `tokens` what its text costs, `budget` what it was allowed."""

    name: str
    title: str
    text: str
    tokens: int
    budget: int


@dataclass(frozen=True, slots=True)
class LayerTrace:
    layer: str
    tokens: int
    budget: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CandidateTrace:
    """Why a node stands where it stands: each leg's rank and raw score, then every adjustment as (name, factor)."""

    id: str
    keyword_rank: int | None
    keyword_score: float | None
    vector_rank: int | None
    vector_score: float | None
    fused: float
    synapse_boost: float
    adjustments: tuple[tuple[str, float], ...]
    score: float


@dataclass(frozen=True, slots=True)
class Trace:
    complexity: float
    layers: tuple[LayerTrace, ...]
    candidates: tuple[CandidateTrace, ...]
    communities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """`text` is the layers joined, ready for an agent, and the `decisions` that govern the files of the hits; `tokens`
    never exceeds the budget."""

    text: str
    tokens: int
    layers: tuple[Layer, ...]
    hits: tuple[Hit, ...]
    decisions: tuple[DecisionRow, ...]
    partial: tuple[Missing, ...]
    trace: Trace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeupParams:
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class WakeupResult:
    text: str
    tokens: int
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainParams:
    """Explains the answer to `query`, or the latest answered question when it is left out."""

    query: str | None = None


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    id: str
    place: Place
    score: float
    reasons: tuple[str, ...]  # plain sentences, most important first


@dataclass(frozen=True, slots=True)
class ExplainResult:
    query: str
    text: str  # the whole explanation as readable Markdown
    layers: tuple[LayerTrace, ...]
    communities: tuple[str, ...]
    hits: tuple[ExplainedHit, ...]
    partial: tuple[Missing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceParams:
    query: str
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Relevance:
    id: str
    place: Place
    trace: CandidateTrace


@dataclass(frozen=True, slots=True)
class RelevanceResult:
    nodes: tuple[Relevance, ...]
    partial: tuple[Missing, ...]


# -- the index -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Skipped:
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be; `hint` is the command or setting that repairs it."""

    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class StatusResult:
    """`ready`: symbols, keyword search and graph are complete. `skipped` holds at most 200 rows, `n_skipped` all."""

    folder: str
    ready: bool
    phase: Phase
    progress: Progress
    vectors: Progress
    index_revision: int
    files: int
    symbols: int
    n_skipped: int
    skipped: tuple[Skipped, ...]
    decisions: dict[str, int]  # by status: active, stale, invalidated, unknown
    head: str | None
    branch: str | None
    is_index_writer: bool  # False: another server on this folder builds the index and this one follows it
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Count:
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class CommunityRow:
    id: int
    title: str
    files: int
    symbols: int


@dataclass(frozen=True, slots=True)
class StatsResult:
    files: int
    symbols: int
    index_revision: int
    index_bytes: int
    languages: tuple[Count, ...]
    kinds: tuple[Count, ...]
    edges: tuple[Count, ...]
    communities: tuple[CommunityRow, ...]
    vectors: Progress
    vector_search: str  # "exact" or "annoy"
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildParams:
    """`vectors=True` also computes every vector anew instead of taking those in the shared cache."""

    vectors: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """`done` is False where there was nothing to do; `message` says so in plain words."""

    done: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphExportParams:
    """Writes graph.json to `to` (a path inside the folder or its `.neuralmind/lsp`), or returns it when left out."""

    to: str | None = None


@dataclass(frozen=True, slots=True)
class GraphExportResult:
    nodes: int
    edges: int
    path: str | None
    graph: dict[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphValidateParams:
    """`path` of a graph.json; the folder's own graph when left out."""

    path: str | None = None


@dataclass(frozen=True, slots=True)
class GraphValidateResult:
    valid: bool
    problems: tuple[str, ...]
    nodes: int
    edges: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """A call without parameters."""


# -- what the engine tells its faces, unasked ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Sent at most 10 times a second while the index is built. `percent` is None while the total is unknown."""

    folder: str
    phase: Phase
    percent: int | None
    message: str


@dataclass(frozen=True, slots=True)
class IndexFinished:
    """One for each build that sent an `IndexProgress`; `error` says in plain words what failed, if anything did."""

    folder: str
    message: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StatusChanged:
    folder: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should read once; `level` is "info", "warning" or "error", `hint` a sentence that says what
    helps."""

    level: str
    message: str
    folder: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class BrainEvent:
    """Something that happened in a brain, here or in another process. Told to faces that ask for it."""

    folder: str
    id: str
    time: str
    kind: str
    data: dict[str, object]

    @classmethod
    def of(cls, folder: str, event: Event) -> BrainEvent:
        return cls(folder, event.id, utc_text(event.at), event.kind, event.data)


HostEvent = BrainEvent | IndexProgress | IndexFinished | StatusChanged | DecisionsChanged | Notice
