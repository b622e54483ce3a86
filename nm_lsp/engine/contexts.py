"""Context for a question: the four layers composed over one view, with the decisions that govern what it shows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.context.budget import (
    DEFAULT_WAKEUP,
    MAX_BUDGET,
    MIN_BUDGET,
    LayerText,
    allot,
)
from nm_lsp.context.compose import SEPARATOR, Standing, compose_query, compose_wakeup, standing_layers
from nm_lsp.context.modules import topic_titles
from nm_lsp.engine.answers import View, body_of, checked_query, hit_of, partial_of, ranked, synapse_ranks, trace_of
from nm_lsp.engine.decision_requests import DecisionRow
from nm_lsp.engine.requests import (
    ExplainedHit,
    ExplainResult,
    Layer,
    LayerTrace,
    Place,
    QueryParams,
    QueryResult,
    Trace,
    WakeupParams,
    WakeupResult,
)
from nm_lsp.engine.snapshot import Snapshot
from nm_lsp.search.explain import reasons
from nm_lsp.search.ranking import RankedResult
from nm_lsp.worker.sources import Unreadable, decode, read_bytes

N_HITS: Final = 10
DECISIONS_SHARE: Final = 6
"""One token in so many may go to the decisions that govern the files shown."""
_REMEMBERED: Final = 64
_MAX_DESCRIPTION: Final = 2_000_000

DecisionsOf = Callable[[tuple[str, ...], int, Callable[[str], int]], tuple[str, tuple[DecisionRow, ...]]]
"""Folder-relative paths, a token budget and a counter to a text within it and the decisions it speaks of."""


class Contexts:
    """Composes and remembers: L0 and L1 per index revision, whole answers per question, revision and screen."""

    def __init__(self, decisions_of: DecisionsOf) -> None:
        self._decisions_of = decisions_of
        self._standing: OrderedDict[tuple[object, ...], Standing] = OrderedDict()
        self._snapshot: Snapshot | None = None
        self._answers: OrderedDict[tuple[object, ...], QueryResult] = OrderedDict()

    def query(self, view: View, params: QueryParams, decisions_revision: object, cancel: Cancellation) -> QueryResult:
        """`decisions_revision` changes whenever the decisions shown might."""
        question = checked_query(params.query)
        budget = _checked_budget(params.budget, view.settings.context.budget, MAX_BUDGET)
        if view.snapshot is not self._snapshot:
            # Answers of a former snapshot would keep it, and its files, in memory.
            self._snapshot = view.snapshot
            self._answers.clear()
        key = (
            question,
            budget,
            params.trace,
            view.missing,
            decisions_revision,
            view.settings,
            view.recall,
        )
        known = self._answers.get(key)
        if known is not None:
            self._answers.move_to_end(key)
            return known
        answer = self._compose(view, question, budget, cancel, with_trace=params.trace)
        if not view.texts.changed:
            self._answers[key] = answer
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)
        return answer

    def _compose(
        self, view: View, question: str, budget: int, cancel: Cancellation, *, with_trace: bool
    ) -> QueryResult:
        result = ranked(view, question, N_HITS, cancel)
        count = view.embedder.token_count()
        paths = tuple(dict.fromkeys(candidate.node.path for candidate in result.candidates))
        text, rows = self._decisions_of(paths, budget // DECISIONS_SHARE, count) if paths else ("", ())
        reserved = count(SEPARATOR + text) if text else 0
        composed = compose_query(
            view.snapshot.corpus,
            result,
            read=lambda path: _description(view, path),
            body=lambda node: body_of(view, node),
            folder_name=view.folder.name,
            count=count,
            budget=budget,
            reserved=reserved,
            standing=self._standing_of(view, budget - reserved, result.question.complexity),
            cancel=cancel,
        )
        fired = synapse_ranks(result.candidates)
        whole = SEPARATOR.join(part for part in (composed.text, text) if part)
        return QueryResult(
            text=whole,
            tokens=count(whole),
            layers=tuple(_layer(layer) for layer in composed.layers),
            hits=tuple(hit_of(view, c, result.question, count, fired.get(c.doc)) for c in result.candidates),
            decisions=rows,
            partial=partial_of(view),
            trace=_trace(result, composed.layers, composed.communities) if with_trace else None,
        )

    def _standing_of(self, view: View, budget: int, complexity: float) -> Standing:
        room = allot(budget, complexity)
        key = (view.snapshot.manifest.generation, view.snapshot.overlay, room.identity, room.summary)
        known = self._standing.get(key)
        if known is None:
            known = standing_layers(
                view.snapshot.corpus,
                lambda path: _description(view, path),
                view.folder.name,
                view.embedder.token_count(),
                room.identity,
                room.summary,
            )
            self._standing[key] = known
            if len(self._standing) > _REMEMBERED:
                self._standing.popitem(last=False)
        return known


def wakeup(view: View, params: WakeupParams, cancel: Cancellation) -> WakeupResult:
    cancel.check()
    budget = _checked_budget(params.budget, DEFAULT_WAKEUP, DEFAULT_WAKEUP)
    count = view.embedder.token_count()
    composed = compose_wakeup(
        view.snapshot.corpus, lambda path: _description(view, path), view.folder.name, count, budget
    )
    return WakeupResult(composed.text, composed.tokens, tuple(_layer(layer) for layer in composed.layers))


def explain(view: View, contexts: Contexts, query: str, revision: object, cancel: Cancellation) -> ExplainResult:
    """The whole story of one answer, as readable Markdown and in parts."""
    question = checked_query(query)
    answer = contexts.query(view, QueryParams(query=question, trace=True), revision, cancel)
    result = ranked(view, question, N_HITS, cancel)
    topics = topic_titles(view.snapshot.corpus, result.candidates)
    fired = view.recall.sentences(result.candidates) if view.recall is not None else {}
    hits = tuple(
        ExplainedHit(
            candidate.node.id,
            Place(candidate.node.path, candidate.node.span),
            round(candidate.score, 4),
            (*fired.get(candidate.node.id, ()), *reasons(candidate, result.question, result.candidates, topics)),
        )
        for candidate in result.candidates
    )
    assert answer.trace is not None
    text = _story(question, answer, answer.trace, hits)
    return ExplainResult(question, text, answer.trace.layers, answer.trace.communities, hits, answer.partial)


def _story(question: str, answer: QueryResult, trace: Trace, hits: tuple[ExplainedHit, ...]) -> str:
    lines = [f"# Why this answer to “{question}”", ""]
    if answer.partial:
        lines += [f"Answered without: {', '.join(kind.value for kind in answer.partial)}.", ""]
    lines += ["## Where the tokens went", "", "| layer | tokens | of at most | what |", "| --- | ---: | ---: | --- |"]
    for layer in trace.layers:
        lines.append(f"| {layer.layer} | {layer.tokens} | {layer.budget} | {'; '.join(layer.notes)} |")
    if trace.communities:
        lines += ["", f"Communities chosen: {'; '.join(trace.communities)}."]
    lines += ["", "## Why each hit is there", ""]
    if not hits:
        lines.append("Nothing in this workspace matches the question well enough to be shown.")
    for rank, hit in enumerate(hits, 1):
        lines.append(f"{rank}. **{hit.id}** (line {hit.place.span.start_line + 1}, score {hit.score:.2f})")
        lines += [f"   - {reason}" for reason in hit.reasons]
    return "\n".join(lines) + "\n"


def _checked_budget(budget: int | None, default: int, most: int) -> int:
    if budget is None:
        return min(default, most)
    if not MIN_BUDGET <= budget <= most:
        raise InvalidInput("budget", f"{budget} is not between {MIN_BUDGET} and {most} tokens")
    return budget


def _layer(layer: LayerText) -> Layer:
    return Layer(layer.name, layer.title, layer.text, layer.tokens, layer.budget)


def _trace(result: RankedResult, layers: tuple[LayerText, ...], communities: tuple[str, ...]) -> Trace:
    return Trace(
        complexity=result.question.complexity,
        layers=tuple(LayerTrace(layer.name, layer.tokens, layer.budget, layer.notes) for layer in layers),
        candidates=tuple(trace_of(candidate) for candidate in result.candidates),
        communities=communities,
    )


def _description(view: View, path: str) -> str | None:
    """A file that says what the project is: from the screen, else from the disk; it need not be indexed."""
    text = view.texts.screen(path)
    if text is not None:
        return text
    try:
        return decode(read_bytes(view.folder, path, _MAX_DESCRIPTION))
    except Unreadable:
        return None
