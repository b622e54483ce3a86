"""Learning for one opened folder: closed batches of notes become pairs in the repository's store.

The faces' calls only take notes; everything else happens in `tick`, on a thread of the workspace. What the index does
not know is never stored: while there is no index, batches are kept by file, `MAX_PENDING` of them, and taught after.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import StoreProblem
from nm_lsp.engine.memory.batch import Batch
from nm_lsp.engine.memory.funnel import QUIET_S, Funnel, Notes
from nm_lsp.engine.memory.history import History
from nm_lsp.engine.memory.shapes import Shapes
from nm_lsp.engine.memory.sieve import Committed, Edit, HeadWatch, Sieve
from nm_lsp.engine.memory.whereabouts import Whereabouts
from nm_lsp.engine.memory.writes import Rename, Settle, Teach, nothing
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.synapses import Teaching
from nm_lsp.synapses.edits import symbols_at
from nm_lsp.synapses.pairs import MAX_FILES, Pair, RecentTouches, association_strength, is_bulk, pair, pairs_of
from nm_lsp.synapses.rules import EDIT_STRENGTH, OPEN_STRENGTH, USED_STRENGTH

MAX_PENDING: Final = 200
WRITTEN_AS_ONE: Final = 5
"""Symbols from which a file whose every line is new stands for itself."""
MAX_LIFTS: Final = 50
"""Pairs that questions lift in a minute."""
MANY_OPENED: Final = 5
"""So many files opened in one batch are a session restored, not a choice."""
OPEN_PARTNERS: Final = 3
USED_WITHIN_S: Final = 600.0
HITS_KEPT: Final = 5
SETTLE_EVERY_S: Final = 3_600.0
COUNT_EVERY_S: Final = 60.0
_REMEMBERED: Final = 500

Publish = Callable[[str, Callable[[], dict[str, object]]], None]
"""Kind of event and what makes its content, called only if somebody listens."""


@dataclass(frozen=True, slots=True)
class _Asked:
    hits: tuple[str, ...]
    at: float
    used: frozenset[str] = frozenset()


class Learner:
    """`corpus` gives the index, None while it is not to be relied on. `clock` is Unix time in seconds. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        where: Whereabouts,
        corpus: Callable[[], Corpus | None],
        clock: Callable[[], float],
        publish: Publish,
        woken: Callable[[], None],
    ) -> None:
        self._where = where
        self._corpus = corpus
        self._clock = clock
        self._publish = publish
        self.funnel = Funnel(clock, woken)
        self.shapes = Shapes()
        self._sieve = Sieve(folder, self._is_generated)
        self._heads = HeadWatch()
        self._lock = threading.RLock()
        self._recent: dict[str, RecentTouches] = {}
        self._dealt: OrderedDict[bytes, str] = OrderedDict()
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._pending: deque[Batch] = deque()
        self._asked: deque[_Asked] = deque(maxlen=5)
        self._renames: deque[dict[str, str]] = deque()
        self._history = History(where, self.shapes, corpus, self._pending.append, self._rename, self._texts.clear)
        self._settled_at = self._counted_at = clock()
        self._lifts: dict[Pair, None] = {}
        self.refused: dict[str, int] = {}

    # -- notes, from any thread -------------------------------------------------------------------------------------

    def renamed(self, renames: Mapping[str, str]) -> None:
        """The editor moved files or folders, folder-relative."""
        prefix = self._where.prefix
        self._renames.append({prefix.to_repository(old): prefix.to_repository(new) for old, new in renames.items()})

    def asked(self, hits: Sequence[str]) -> None:
        """A question was answered with these nodes, best first."""
        kept = tuple(hits[:HITS_KEPT])
        self._asked.append(_Asked(kept, self._clock()))
        if len(self._lifts) < MAX_LIFTS:
            self._lifts = {**self._lifts, **dict.fromkeys(pair(kept[0], other) for other in kept[1:])}

    @property
    def n_pending(self) -> int:
        return len(self._pending)

    @property
    def has_work(self) -> bool:
        """Whether anything was noted that is not learned yet."""
        return bool(self._pending or self._renames) or self.funnel.due_in(self._clock()) is not None

    # -- the thread that learns -------------------------------------------------------------------------------------

    def tick(self, *, all_of_it: bool = False) -> None:
        """Do what is due. `all_of_it`: close the open batch in any case, for the end of a session."""
        with self._lock:
            now = self._clock()
            self._heads.look(self._where.git, now)
            self._take_renames(now)
            notes = self.funnel.take(now, all_of_it=all_of_it)
            if notes is not None:
                self._close(notes)
            self._history.look(now)
            if not all_of_it:
                self._history.learn_past(now)
            self._teach_pending()
            self._housekeeping(now)

    def _close(self, notes: Notes) -> None:
        keeper = self._where.keeper
        counters = {"batches": 1}
        if notes.n_paths > MAX_FILES:
            self._texts.clear()
            keeper.count({**counters, "bulk": 1})
            return
        git, prefix = self._where.git, self._where.prefix
        self._heads.look(git, self._clock())
        head_moved, index_moved = self._heads.moved_since(notes.started - QUIET_S)
        committed = Committed(git, prefix.to_repository, notes.disk, staged=index_moved)
        sifted = self._sieve.sift(
            notes, known=self._is_known, last_text=self._texts.get, committed=committed, head_moved=head_moved
        )
        for path, note in notes.screen.items():
            self._remember_text(path, note.after)
        for reason in sifted.refused.values():
            self.refused[reason] = self.refused.get(reason, 0) + 1
        seen = [(edit.key, edit.source) for edit in sifted.edits]
        for key in sifted.dealt_with:
            self._dealt[key] = next((source for other, source in seen if other == key), "none")
        while len(self._dealt) > _REMEMBERED:
            self._dealt.popitem(last=False)
        symbols = [symbol for edit in sifted.edits for symbol in self._symbols(edit)]
        if is_bulk(len(symbols), len(sifted.edits)):
            keeper.count({**counters, "bulk": 1})
            return
        opened = tuple(notes.opened) if len(notes.opened) < MANY_OPENED else ()
        if not symbols and not opened:
            if sifted.refused:
                keeper.count({**counters, "refused": 1})
            return
        keeper.count(counters)
        at = max((notes.closed - QUIET_S, notes.started))
        self._pending.append(Batch(tuple(symbols), opened, tuple(seen), at, EDIT_STRENGTH))
        self._publish("file_activity", lambda: {"files": sorted({edit.path for edit in sifted.edits})})

    def _symbols(self, edit: Edit) -> list[str]:
        self._remember_text(edit.path, edit.text)
        shape = self.shapes.of(edit.path, edit.text)
        if len(shape.symbols) > WRITTEN_AS_ONE and edit.is_whole:
            # A file written in one go says what it goes with as a whole, not by every symbol in it.
            return [edit.path]
        return symbols_at(shape.symbols, edit.ranges) or [edit.path]

    def _remember_text(self, path: str, text: str) -> None:
        self._texts[path] = text
        self._texts.move_to_end(path)
        while len(self._texts) > _REMEMBERED // 5:
            self._texts.popitem(last=False)

    def _is_known(self, key: bytes, source: str) -> bool:
        """Whether another reporter has dealt with that content; within this process, whether any has (for the disk)."""
        if source == "disk" and key in self._dealt:
            return True
        store = self._where.keeper.store(create=False)
        if store is None:
            return False
        try:
            return bool(store.already_seen([key], source))
        except StoreProblem:
            return False

    def _is_generated(self, path: str) -> bool:
        corpus = self._corpus()
        file = corpus.file_numbers.get(path) if corpus is not None else None
        return corpus is not None and file is not None and corpus.file_is_generated(file)

    # -- teaching ---------------------------------------------------------------------------------------------------

    def _teach_pending(self) -> None:
        while len(self._pending) > MAX_PENDING:
            self._pending.popleft()
            self._where.keeper.count({"dropped": 1})
        corpus = self._corpus() if self._pending else None
        if corpus is None:
            return
        if self._lifts and self._pending:
            # They go with this write rather than cause one of their own.
            self.write_counts(self._clock())
        while self._pending:
            self._teach(self._pending.popleft(), corpus)

    def _teach(self, batch: Batch, corpus: Corpus) -> None:
        symbols = known_nodes(corpus, batch.symbols)
        namespace = batch.namespace or self._where.standpoint().namespace
        recent = self._recent.setdefault(namespace, RecentTouches())
        counters = {"unknown": len(set(batch.symbols)) - len(symbols)}
        if batch.commit is not None:
            counters["bulk" if batch.is_bulk else "commits"] = 1
        pairs: dict[Pair, float] = dict.fromkeys(pairs_of(symbols), batch.strength)
        steps: list[tuple[str, str]] = []
        if batch.commit is None:
            for both, strength in recent.associations(symbols, batch.at).items():
                pairs.setdefault(both, strength * batch.strength)
            for both, strength in self._used(symbols, batch.opened, batch.at).items():
                pairs[both] = max(strength, pairs.get(both, 0.0))
            for both, strength in self._opened(recent, corpus, batch).items():
                pairs.setdefault(both, strength)
            steps = recent.steps(symbols, batch.at)
            recent.remember(symbols, pairs, batch.at)
        self._submit(namespace, batch, pairs, steps, counters)

    def _submit(
        self,
        namespace: str,
        batch: Batch,
        pairs: Mapping[Pair, float],
        steps: Sequence[tuple[str, str]],
        counters: Mapping[str, int],
    ) -> None:
        to_repository = self._where.prefix.text
        if batch.commit is None and (pairs or steps or batch.seen):
            # One write for both. A commit may be known already, and then nothing of it is written.
            counters = Counter(counters) + Counter(self._where.keeper.take_counts())
        taught = Teaching(
            namespace,
            batch.at,
            [(to_repository + a, to_repository + b, strength) for (a, b), strength in pairs.items()],
            steps=[(to_repository + a, to_repository + b) for a, b in steps],
            seen=batch.seen,
            commit=batch.commit,
            counters=counters,
        )
        if not (taught.pairs or taught.steps or taught.seen or taught.commit):
            return
        self._where.keeper.submit(Teach(taught))
        if pairs:
            self._publish(
                "synapse", lambda: {"namespace": namespace, "pairs": [[a, b, round(s, 4)] for a, b, s in taught.pairs]}
            )

    def _opened(self, recent: RecentTouches, corpus: Corpus, batch: Batch) -> dict[Pair, float]:
        """An opened file goes a little with what was touched just before."""
        found: dict[Pair, float] = {}
        for path in known_nodes(corpus, batch.opened):
            for touch in recent.latest(batch.at, OPEN_PARTNERS):
                if touch.symbol.partition("::")[0] != path:
                    found[pair(path, touch.symbol)] = OPEN_STRENGTH * association_strength(batch.at - touch.at)
        return found

    def _used(self, symbols: Sequence[str], opened: Sequence[str], at: float) -> dict[Pair, float]:
        """A hit that was opened or edited within ten minutes goes with the first hits of its answer."""
        found: dict[Pair, float] = {}
        for place, asked in enumerate(list(self._asked)):
            if not 0 <= at - asked.at <= USED_WITHIN_S:
                continue
            paths = set(opened)
            used = {hit for hit in asked.hits if hit in symbols or hit.partition("::")[0] in paths} - asked.used
            for hit in sorted(used):
                found.update({pair(hit, other): USED_STRENGTH for other in asked.hits[:3] if other != hit})
            if used:
                self._asked[place] = _Asked(asked.hits, asked.at, asked.used | used)
        return found

    def confirm(self, corpus: Corpus, hit: str, context: Sequence[str], now: float) -> int:
        """Somebody said that a node was useful: it goes with the nodes it was found with. Returns the pairs taught.

        `corpus` holds `hit`, and need not be complete: what somebody names is not guessed from what is there."""
        nodes = known_nodes(corpus, [hit, *context])
        pairs = {pair(nodes[0], other): USED_STRENGTH for other in nodes[1:]} if nodes else {}
        with self._lock:
            namespace = self._where.standpoint().namespace
            self._recent.setdefault(namespace, RecentTouches()).remember(nodes[:1], pairs, now)
            self._submit(namespace, Batch((), (), (), now, USED_STRENGTH), pairs, [], {"feedback": 1})
        return len(pairs)

    def last_context(self, hit: str) -> tuple[str, ...]:
        """The other hits of the latest answer that showed `hit`, else of the latest answer."""
        answers = list(self._asked)[::-1]
        chosen = next((asked for asked in answers if hit in asked.hits), answers[0] if answers else None)
        return tuple(other for other in chosen.hits if other != hit) if chosen is not None else ()

    def last_touched(self) -> str | None:
        """The symbol that was touched last on this branch, within ten minutes."""
        with self._lock:
            recent = self._recent.get(self._where.standpoint().namespace)
            latest = recent.latest(self._clock(), 1) if recent is not None else []
        return latest[0].symbol if latest else None

    # -- names ------------------------------------------------------------------------------------------------------

    def _take_renames(self, now: float) -> None:
        while self._renames:
            self._rename(self._renames.popleft(), now)

    def _rename(self, renames: Mapping[str, str], now: float) -> None:
        """Repository-relative names of files, folders or symbols."""
        namespace = self._where.standpoint().namespace
        to_folder = self._where.prefix.to_folder
        pairs = {to_folder(old): to_folder(new) for old, new in renames.items()}
        inside = {old: new for old, new in pairs.items() if old is not None and new is not None}
        recent = self._recent.get(namespace)
        if recent is not None:
            recent.rename(inside)
        if self._where.keeper.store(create=False) is not None or self._where.keeper.n_queued:
            self._where.keeper.submit(Rename(namespace, dict(renames), now))

    # -- now and then -----------------------------------------------------------------------------------------------

    def _housekeeping(self, now: float) -> None:
        keeper = self._where.keeper
        if not 0 <= now - self._counted_at < COUNT_EVERY_S:
            self._counted_at = now
            self.write_counts(now)
        if not 0 <= now - self._settled_at < SETTLE_EVERY_S:
            self._settled_at = now
            self._history.look_at_branches(now)
            if keeper.store(create=False) is not None:
                keeper.submit(Settle(now, self._where.standpoint().namespace, self.is_gone()))

    def write_counts(self, now: float) -> None:
        """Have counters and what questions lifted written, if anything was ever learned here."""
        keeper = self._where.keeper
        if keeper.store(create=False) is None:
            return
        lifts, self._lifts = self._lifts, {}
        prefix = self._where.prefix.text
        if lifts:
            lifted = [(prefix + a, prefix + b) for a, b in lifts]
            keeper.submit(Teach(Teaching(self._where.standpoint().namespace, now, lifted=lifted)))
        elif keeper.pending_counts:
            keeper.submit(nothing)

    def is_gone(self) -> Callable[[str], bool] | None:
        """Whether a repository-relative node is no more, as far as this folder's index reaches; None without one."""
        corpus = self._corpus()
        if corpus is None or self._where.standpoint().head.branch is None:
            return None
        prefix = self._where.prefix.text
        return lambda node: node.startswith(prefix) and corpus.find(node[len(prefix) :]) is None


def known_nodes(corpus: Corpus, symbols: Iterable[str]) -> list[str]:
    """The nodes of the index that `symbols` mean, each once: itself, else the nearest around it, else its file."""
    found: dict[str, None] = {}
    for symbol in symbols:
        node: str | None = symbol
        while node is not None and corpus.find(node) is None:
            path, mark, name = node.partition("::")
            outer = name.partition("#")[0].rpartition(".")[0]
            node = f"{path}::{outer}" if outer else path if mark else None
        if node is not None:
            found.setdefault(node)
    return list(found)
