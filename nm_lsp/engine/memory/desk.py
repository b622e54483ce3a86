"""The associative brain of one opened folder: what faces ask of it, and what the host tells it.

Requests run on the caller's thread and read memory that is refreshed when anybody wrote; only `feedback`, `reset` and
`decay` write. `tick` is called twice a second by the workspace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nm_lsp.audit.chain import Act, Payload
from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, NotFound, Refused, StoreProblem
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.memory import exchange, inspecting, linking, probing, reviewing
from nm_lsp.engine.memory.keeper import MemoryKeeper, MemoryKeepers
from nm_lsp.engine.memory.learner import Learner
from nm_lsp.engine.memory.page import MemoryPage
from nm_lsp.engine.memory.recall import Recall, RecallReader
from nm_lsp.engine.memory.whereabouts import Whereabouts
from nm_lsp.engine.memory_requests import (
    CounterRow,
    DecayResult,
    FeedbackParams,
    FeedbackResult,
    InspectParams,
    InspectResult,
    MemoryExportParams,
    MemoryExportResult,
    MemoryImportParams,
    MemoryImportResult,
    Neighbor,
    NeighborsParams,
    NeighborsResult,
    NextParams,
    NextResult,
    NextStep,
    ProbeParams,
    ProbeResult,
    ResetParams,
    ResetResult,
    ReviewParams,
    ReviewResult,
    SavingsResult,
)
from nm_lsp.engine.requests import Nothing, Place, Problem
from nm_lsp.engine.symbol_names import symbols_called
from nm_lsp.events.bus import Event
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.synapses import SynapseStore
from nm_lsp.synapses.rules import SHARED, read_factors

MAX_LIMIT: Final = 100
SHOWN_FROM: Final = 0.10
"""Weaker associations are not worth a line in a hover."""
MAX_PROBED: Final = 1_000
SAVINGS_FORMULA: Final = (
    "saved = tokens_of_files - tokens_given; tokens_of_files sums, per question, the whole files behind its hits at "
    "4 characters a token, which is what reading them would have cost"
)


class MemoryDesk:
    """Thread-safe. `corpus` gives the index as it is, complete or not; `ready` says whether it may be relied on.

    `cause` says why there is no index to rely on, None while it is only being built. `find` gives the ids of the
    first ten hits of a question.
    """

    def __init__(
        self,
        folder: Path,
        tree: WorkTree,
        keepers: MemoryKeepers,
        corpus: Callable[[], Corpus],
        ready: Callable[[], bool],
        cause: Callable[[], str | None],
        find: Callable[[str, Cancellation], Sequence[str]],
        *,
        enabled: Callable[[], bool],
        writes_page: Callable[[], bool],
        woken: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._corpus = corpus
        self._ready = ready
        self._cause = cause
        self._find = find
        self._enabled = enabled
        self._clock = keepers.clock
        self._writes_page = writes_page
        self._where = Whereabouts(folder, tree, keepers)
        self._reader = RecallReader()
        self._page: MemoryPage | None = None
        self._ticking = threading.Lock()
        self.learner = Learner(
            folder, self._where, lambda: corpus() if ready() else None, keepers.clock, self._publish, woken
        )

    # -- what the host tells, O(1) ----------------------------------------------------------------------------------

    def document_opened(self, path: str) -> None:
        if self._enabled():
            self.learner.funnel.opened(path)

    def document_changed(
        self, path: str, before: str, after: str, version: int | None, before_version: int | None
    ) -> None:
        if self._enabled():
            self.learner.funnel.changed(path, before, after, version, before_version)

    def document_saved(self, path: str) -> None:
        self.learner.funnel.saved(path)

    def files_changed(self, paths: Sequence[str]) -> None:
        if self._enabled():
            self.learner.funnel.on_disk(paths)

    def renamed(self, renames: Mapping[str, str]) -> None:
        """Files or folders were moved by the editor: old → new path."""
        if self._enabled():
            self.learner.renamed(renames)

    def answered(self, hits: Sequence[str], *, tokens: int | None = None, files: Sequence[str] = ()) -> None:
        """A question was answered. `tokens` of context were given for it, in place of reading `files`."""
        if not self._enabled():
            return
        self.learner.asked(hits)
        if tokens is not None and files:
            characters = sum(self._size(path) for path in files)
            counts = {"queries": 1, "tokens_given": tokens, "tokens_of_files": characters // 4}
            self.keeper.count(counts)
        self._publish("query", lambda: {"hits": list(hits)})

    def _publish(self, kind: str, make: Callable[[], dict[str, object]]) -> None:
        self.keeper.activity.publish(kind, make)

    def tell(self, kind: str, make: Callable[[], dict[str, object]]) -> None:
        """Put an event of another brain on the bus."""
        if self._enabled():
            self._publish(kind, make)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """`listener` hears of what happens in this repository's brains, in all processes; the result ends that."""
        return self.keeper.activity.subscribe(listener)

    def _size(self, path: str) -> int:
        stamp = self._corpus().stamp(path)
        return stamp.size if stamp is not None else 0

    # -- the workspace's thread -------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Learn what is due."""
        if not self._enabled():
            return
        with self._ticking:
            self.learner.tick()
            self._write_page(at_end=False)

    def close(self) -> None:
        """Learn what is open and write the page. Quick: what takes longer is left undone."""
        if self._enabled() and self._ticking.acquire(timeout=0.2):
            try:
                if self.learner.has_work:
                    self.learner.tick(all_of_it=True)
                self.learner.write_counts(self._clock())
                self._write_page(at_end=True)
            finally:
                self._ticking.release()

    def _write_page(self, *, at_end: bool) -> None:
        keeper = self.keeper
        if not self._writes_page() or not keeper.n_written:
            return
        if self._page is None:
            self._page = MemoryPage(keeper.folder)
        if keeper.store(create=False) is not None:
            namespace = self._where.standpoint().namespace
            self._page.write_if_due(keeper.memory(), namespace, self._clock(), at_end=at_end)

    # -- for the other brain ----------------------------------------------------------------------------------------

    @property
    def keeper(self) -> MemoryKeeper:
        return self._where.keeper

    def associations(self, path: str, line: int, limit: int = 5) -> list[tuple[str, float]]:
        """What was learned to go with the symbol at a line of an indexed file: (node id, weight), strongest first."""
        if not self._enabled():
            return []
        corpus = self._corpus()
        file = corpus.file_numbers.get(path)
        if file is None:
            return []
        node = linking.node_at(corpus, file, line)
        prefix = self._where.prefix.text
        rows = linking.learned_neighbors(self.keeper.memory(), self.namespace, prefix, node, self._clock())
        known = [row for row in rows if row.weight >= SHOWN_FROM and corpus.find(row.id) is not None]
        return [(row.id, row.weight) for row in sorted(known, key=lambda row: (-row.weight, row.id))[:limit]]

    @property
    def namespace(self) -> str:
        """Where what happens now is learned."""
        return self._where.standpoint().namespace

    def recall(self) -> Recall | None:
        """What questions may recall now; None where nothing was learned, or learning is switched off."""
        if not self._enabled():
            return None
        return self._reader.recall(self.keeper, self._where.standpoint().namespace, self._where.prefix.text)

    def problems(self) -> tuple[Problem, ...]:
        """What keeps this brain from learning, for `status`."""
        if not self._enabled():
            return ()
        found: list[Problem] = []
        keeper = self.keeper
        if keeper.problem is not None:
            found.append(Problem("not-learning", f"Not learning: {keeper.problem.message}.", keeper.problem.hint))
        if keeper.set_aside is not None:
            text = f"What use had taught was unreadable and begins anew; the old file is {keeper.set_aside}."
            found.append(Problem("synapses-set-aside", text))
        cause = self._cause()
        n_waiting = self.learner.n_pending
        if not self._ready() and (cause is not None or n_waiting):
            text = f"Not learning: {cause or 'the index is still being built'}; {n_waiting} batches of edits are kept."
            found.append(Problem("not-learning", text, "`nm-lsp index` shows what is wrong with the index."))
        return tuple(found)

    # -- use cases --------------------------------------------------------------------------------------------------

    def neighbors(self, params: NeighborsParams, cancel: Cancellation, _: Caller) -> NeighborsResult:
        """What goes with a symbol, or with a file as a whole: learned, and (weaker) by the structure of the code."""
        _check_limit(params.limit)
        corpus = self._corpus()
        node = self._node(corpus, params.symbol)
        cancel.check()
        memory, prefix, now = self.keeper.memory(), self._where.prefix.text, self._clock()
        if node in corpus.file_numbers:
            rows = linking.file_neighbors(memory, corpus, self.namespace, prefix, node, now)
        else:
            rows = linking.learned_neighbors(memory, self.namespace, prefix, node, now)
            rows += linking.structural_neighbors(corpus, node, {row.id for row in rows})
        found: list[Neighbor] = []
        for row in sorted(rows, key=lambda row: (-row.weight, -row.count, row.id)):
            doc = corpus.find(row.id)
            if doc is not None and len(found) < params.limit:
                weight = round(row.weight, 4)
                found.append(
                    Neighbor(row.id, place_of(corpus, doc), weight, row.source, row.count, row.lasting, row.last_used)
                )
        return NeighborsResult(node, tuple(found))

    def next(self, params: NextParams, cancel: Cancellation, _: Caller) -> NextResult:
        """What is usually touched after a symbol."""
        _check_limit(params.limit)
        cancel.check()
        corpus = self._corpus()
        node = self._node(corpus, params.symbol) if params.symbol is not None else self.learner.last_touched()
        if node is None:
            return NextResult(None, ())
        steps = linking.steps_from(
            self.keeper.memory(), self._where.standpoint().namespace, self._where.prefix.text, node, self._clock()
        )
        total = sum(steps.values())
        found: list[NextStep] = []
        for identity, count in sorted(steps.items(), key=lambda row: (-row[1], row[0])):
            doc = corpus.find(identity)
            if doc is not None and len(found) < params.limit:
                share = round(count / total, 4)
                found.append(NextStep(identity, place_of(corpus, doc), share, round(count, 2)))
        return NextResult(node, tuple(found))

    def feedback(self, params: FeedbackParams, cancel: Cancellation, caller: Caller) -> FeedbackResult:
        """A person or agent says whether a node was useful."""
        self._refuse_if_off()
        cancel.check()
        corpus = self._corpus()
        node = self._node(corpus, params.id)
        namespace = self._where.standpoint().namespace
        if params.useful:
            given = [self._node(corpus, other) for other in params.context] if params.context is not None else None
            context = given if given is not None else list(self.learner.last_context(node))
            if not context:
                raise InvalidInput("context", "is needed, since no question was asked before", hint="Name other nodes.")
            n_edges = self.learner.confirm(corpus, node, context, self._clock())
            self._write_now()
        else:
            store = self.keeper.store(create=True)
            if store is None:
                raise self._unusable()
            self._write_now()
            n_edges = store.weaken(namespace, self._where.prefix.text + node, self._clock())
        self._publish("feedback", lambda: {"id": node, "useful": params.useful, "actor": caller.client})
        return FeedbackResult(node, namespace, n_edges)

    def review(self, params: ReviewParams, cancel: Cancellation, _: Caller) -> ReviewResult:
        """What usually changes with the present changes, and did not."""
        _check_limit(params.limit)
        git = self._where.git
        if git is None:
            raise Refused("Without a git repository there is no difference to review.")
        corpus = self._corpus()
        changed = reviewing.changed_symbols(
            git, self._where.prefix, self._folder, corpus, self.learner.shapes, params.against, cancel
        )
        recall = self.recall()
        missing = reviewing.missing(recall, corpus, changed, params.limit) if recall is not None else ()
        return ReviewResult(tuple(changed), missing)

    def probe(self, params: ProbeParams, cancel: Cancellation, _: Caller) -> ProbeResult:
        """Ask for documented symbols by what their documentation says, and see which are not found."""
        if not 1 <= params.sample <= MAX_PROBED:
            raise InvalidInput("sample", f"{params.sample} is not between 1 and {MAX_PROBED}")
        return probing.probe(self._corpus(), self._find, params.sample, cancel)

    def savings(self, _: Nothing, cancel: Cancellation, __: Caller) -> SavingsResult:
        """What answers cost in tokens, and what reading the files behind them would have cost."""
        cancel.check()
        counts = self._counters()
        queries, given, files = (counts.get(name, 0) for name in ("queries", "tokens_given", "tokens_of_files"))
        ratio = round(files / given, 2) if given else 0.0
        return SavingsResult(queries, given, files, files - given, ratio, SAVINGS_FORMULA)

    def inspect(self, params: InspectParams, cancel: Cancellation, _: Caller) -> InspectResult:
        """What the store holds, and how the learner fares."""
        _check_limit(params.limit)
        cancel.check()
        memory, active = self.keeper.memory(), self._where.standpoint().namespace
        if params.namespace is not None and (memory is None or params.namespace not in memory.edges):
            raise NotFound(f"nothing was learned in the namespace {params.namespace!r}")
        store = self.keeper.store(create=False)
        problem = next((p.message for p in self.problems() if p.code == "not-learning"), None)
        if not self._enabled():
            problem = "Learning is switched off (setting synapses.enabled)."
        factors = read_factors(active)
        return InspectResult(
            active=active,
            learning=problem is None,
            problem=problem,
            waiting=self.learner.n_pending + self.keeper.n_queued,
            bytes=store.n_bytes() if store is not None else 0,
            namespaces=inspecting.namespace_rows(memory, factors),
            pairs=inspecting.pair_rows(memory, params.namespace, params.limit, self._clock()),
            counters=tuple(CounterRow(name, n) for name, n in sorted(self._counters().items())),
        )

    def reset(self, params: ResetParams, cancel: Cancellation, caller: Caller) -> ResetResult:
        """Forget everything in one namespace, or in all."""
        cancel.check()
        memory = self.keeper.memory()
        known = tuple(memory.edges) if memory is not None else ()
        if params.namespace != "all" and params.namespace not in known:
            listed = ", ".join(known) or "none"
            raise NotFound(f"nothing was learned in {params.namespace!r}", hint=f"What was learned is in: {listed}.")
        if not params.confirm:
            raise Refused("What was learned would be forgotten for good.", hint="Say `confirm: true` if that is meant.")
        store = self._writable()
        self._write_now()
        names = known if params.namespace == "all" else (params.namespace,)
        n_edges = store.reset(None if params.namespace == "all" else names, self._clock())
        self._audit("synapses.reset", params.namespace, {"edges": n_edges}, caller)
        return ResetResult(names, n_edges)

    def export(self, params: MemoryExportParams, cancel: Cancellation, caller: Caller) -> MemoryExportResult:
        """All that was learned, as a bundle (JSON) or as the readable page."""
        cancel.check()
        if params.form not in {"json", "markdown"}:
            raise InvalidInput("form", f"{params.form!r} is neither json nor markdown")
        memory, active = self.keeper.memory(), self._where.standpoint().namespace
        text = (
            exchange.bundle_text(exchange.bundle_of(memory, self._clock()))
            if params.form == "json"
            else inspecting.page(memory, active)
        )
        n_edges = memory.n_edges if memory is not None else 0
        if params.to is None:
            return MemoryExportResult(n_edges, None, text)
        path = exchange.write_export(self._folder, params.to, text)
        self._audit("synapses.export", path, {"edges": n_edges}, caller)
        return MemoryExportResult(n_edges, path)

    def import_(self, params: MemoryImportParams, cancel: Cancellation, caller: Caller) -> MemoryImportResult:
        """Take a bundle into the namespace `shared`, the only way into it. Taking it in again changes nothing."""
        bundle = exchange.read_bundle(self._folder, params.source, may_leave=caller.face == "cli")
        if not self._ready():
            raise Refused(
                f"Which nodes exist is not known: {self._cause() or 'the index is still being built'}.",
                hint="Import it again when `nm-lsp status` says that the index is ready.",
            )
        corpus, prefix = self._corpus(), self._where.prefix.text

        def is_known(node: str) -> bool:
            # What lies outside the opened folder is not in its index, and may well exist.
            return not node.startswith(prefix) or corpus.find(node[len(prefix) :]) is not None

        found = exchange.incoming(bundle, is_known, self._clock())
        cancel.check()
        store = self._writable()
        self._write_now()
        n_edges, n_steps = store.take_in(SHARED, found.edges, found.steps, found.at, self._clock())
        after = {"edges": n_edges, "transitions": n_steps, "unknown": found.n_unknown}
        self._audit("synapses.import", Path(params.source).name, after, caller)
        return MemoryImportResult(n_edges, n_steps, len(found.edges) - n_edges, found.n_unknown)

    def decay(self, _: Nothing, cancel: Cancellation, __: Caller) -> DecayResult:
        """Forget for good what has decayed away, and edges of symbols that are no more."""
        cancel.check()
        store = self._writable()
        self._write_now()
        now = self._clock()
        settled = store.settle(now)
        is_gone = self.learner.is_gone()
        if is_gone is not None:
            namespace = self._where.standpoint().namespace
            gone = store.settle(now, only=[namespace], is_gone=is_gone, gone_since_s=0.0)
            return DecayResult(settled.n_edges + gone.n_edges, settled.n_transitions + gone.n_transitions)
        return DecayResult(settled.n_edges, settled.n_transitions)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _node(self, corpus: Corpus, symbol: str) -> str:
        """The node that `symbol` means. Raises `NotFound`, and `InvalidInput` for a name that several have."""
        text = symbol.strip()
        if text and corpus.find(text) is not None:
            return text
        fitting = symbols_called(corpus, text)
        if not fitting:
            raise NotFound(
                f"no symbol or file is called {symbol[:200]!r}", hint="Give an id like `src/a.py::Class.name`."
            )
        if len(fitting) > 1:
            shown = ", ".join(fitting[:5])
            raise InvalidInput("symbol", f"{symbol[:200]!r} means {len(fitting)} symbols", hint=f"Among them: {shown}.")
        return fitting[0]

    def _counters(self) -> dict[str, int]:
        store = self.keeper.store(create=False)
        counts = store.counters() if store is not None else {}
        for name, value in self.keeper.pending_counts.items():
            counts[name] = counts.get(name, 0) + value
        for name, value in (("dropped", self.keeper.n_dropped), ("events_dropped", self.keeper.activity.n_dropped)):
            if value:
                counts[name] = counts.get(name, 0) + value
        return counts

    def _writable(self) -> SynapseStore:
        store = self.keeper.store(create=True)
        if store is None:
            raise self._unusable()
        return store

    def _unusable(self) -> StoreProblem:
        return self.keeper.problem or StoreProblem("The synapse store cannot be opened.", reason="io")

    def _write_now(self) -> None:
        """Have what was handed in before written before what comes now."""
        self.keeper.flush()

    def _refuse_if_off(self) -> None:
        if not self._enabled():
            raise Refused("Learning is switched off.", hint="Set `synapses.enabled` to true.")

    def _audit(self, action: str, subject: str, after: Payload, caller: Caller) -> None:
        keeper = self._where.tree.keeper
        actor = inspecting.actor_of(self._where.git)
        keeper.append(lambda _held: (), acts=[Act(actor, caller.face, action, subject, None, after)])


def place_of(corpus: Corpus, doc: int) -> Place:
    node = corpus.node(doc)
    return Place(node.path, node.span)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"{limit} is not between 1 and {MAX_LIMIT}")
