"""What can be asked of the associative brain and what comes back.

Field names are the wire's names in snake_case. Node ids are relative to the workspace folder; weights and energies lie
in [0, 1]; times are UTC as ISO 8601.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nm_lsp.engine.requests import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborsParams:
    """`symbol` is a node id (`path::Qualified.name`), a file, or a name that only one symbol has."""

    symbol: str
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Neighbor:
    """`source` is the namespace that says so. Two are not learned: `structural` is from imports and calls, for a file
    also from its folder and name; `frequent`, behind all others, is a file that often changes, with whatever else.

    `weight` is as read now, decay and the namespace's factor included. `lasting` edges are not forgotten.
    """

    id: str
    place: Place
    weight: float
    source: str
    count: int
    lasting: bool
    last_used: str | None


@dataclass(frozen=True, slots=True)
class NeighborsResult:
    id: str
    neighbors: tuple[Neighbor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextParams:
    """What is usually touched after `symbol`; after what was touched last when it is left out."""

    symbol: str | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class NextStep:
    """`share` is the part of all steps from here that went there; `count` has decayed with time."""

    id: str
    place: Place
    share: float
    count: float


@dataclass(frozen=True, slots=True)
class NextResult:
    id: str | None
    steps: tuple[NextStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackParams:
    """`useful`: the node goes with `context` (the other hits of the latest answer when it is left out); else all its
    edges are halved."""

    id: str
    useful: bool
    context: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class FeedbackResult:
    id: str
    namespace: str
    edges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewParams:
    """What usually changes with the present changes; `against` is a commit or branch, HEAD when left out."""

    against: str | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class ReviewHit:
    """`energy` in [0, 1]; `because` is the changed symbol, or its file, that brought most of it."""

    id: str
    place: Place
    energy: float
    because: str


@dataclass(frozen=True, slots=True)
class ReviewResult:
    changed: tuple[str, ...]
    missing: tuple[ReviewHit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeParams:
    """Asks for each of `sample` documented symbols by the first sentence of its documentation."""

    sample: int = 50


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """A symbol that was not among the first three. `first` is the symbol that came first instead, None where nothing
    was found; `advice` says what would help."""

    id: str
    place: Place
    question: str
    rank: int | None
    first: str | None
    advice: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`mrr` is the mean of 1/rank over the asked, 0 where the symbol was not among the first ten."""

    asked: int
    found_first: int
    found_in_ten: int
    mrr: float
    blind_spots: tuple[BlindSpot, ...]


@dataclass(frozen=True, slots=True)
class SavingsResult:
    """`formula` says how `saved` is reckoned from the other fields."""

    queries: int
    tokens_given: int
    tokens_of_files: int
    saved: int
    ratio: float
    formula: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectParams:
    """`namespace` restricts the pairs that are listed."""

    namespace: str | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """`factor` is what its weights count when they are read now, 0 where they are not read."""

    name: str
    edges: int
    lasting: int
    transitions: int
    factor: float


@dataclass(frozen=True, slots=True)
class PairRow:
    namespace: str
    a: str
    b: str
    weight: float
    count: int
    lasting: bool
    last_used: str


@dataclass(frozen=True, slots=True)
class CounterRow:
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class InspectResult:
    """`learning` is False with the cause in `problem`; `waiting` batches are kept until there is an index and
    the store can be written."""

    active: str
    learning: bool
    problem: str | None
    waiting: int
    bytes: int
    namespaces: tuple[NamespaceRow, ...]
    pairs: tuple[PairRow, ...]
    counters: tuple[CounterRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetParams:
    """Forgets everything in `namespace` ("all" for every one); `confirm` must be true."""

    namespace: str
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class ResetResult:
    namespaces: tuple[str, ...]
    edges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryExportParams:
    """`to` is a file inside the folder; the text is returned when it is left out. `form`: "json" or "markdown"."""

    to: str | None = None
    form: str = "json"


@dataclass(frozen=True, slots=True)
class MemoryExportResult:
    edges: int
    path: str | None
    text: str | None = field(default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryImportParams:
    """`source` is a JSON bundle: a file inside the folder, on the command line also elsewhere."""

    source: str


@dataclass(frozen=True, slots=True)
class MemoryImportResult:
    """`edges` and `transitions` were taken into `shared`; `unchanged` edges were there at least as strong; `unknown`
    rows name a symbol or file that is not here and were left out."""

    edges: int
    transitions: int
    unchanged: int
    unknown: int


@dataclass(frozen=True, slots=True)
class DecayResult:
    """What was forgotten for good: edges below 0.01, transitions below 0.5, edges of symbols that are no more."""

    edges: int
    transitions: int
