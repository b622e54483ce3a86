"""The vectors of decisions: kept in the store under model and text, held in memory, made where they are missing.

A question waits at most `WAIT_S` for vectors that are not there yet; the rest are made on a thread that ends with the
process. Nothing is ever downloaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nm_lsp.base.errors import StoreProblem
from nm_lsp.decisions.fold import DecisionRecord
from nm_lsp.decisions.model import Decision, DecisionId
from nm_lsp.engine.decisions.keeper import Keeper
from nm_lsp.engine.decisions.similar import Nearness, Vectors, embedded_text

WAIT_S: Final = 0.3
"""How long a question may wait for missing vectors."""
_CHUNK: Final = 8
_KEEP_EVERY: Final = 256


@dataclass(frozen=True, slots=True)
class Embedded:
    """`matrix` has one row (length 1) for each of `ids`; `n_missing` decisions have no vector yet."""

    ids: tuple[DecisionId, ...]
    matrix: Vectors
    n_missing: int


class DecisionVectors:
    """Thread-safe. `clock` is a monotonic clock in seconds."""

    def __init__(self, keeper: Callable[[], Keeper], nearness: Nearness, clock: Callable[[], float] = time.monotonic):
        self._keeper = keeper
        self._nearness = nearness
        self._clock = clock
        self._lock = threading.Lock()
        self._model: str | None = None
        self._kept: dict[DecisionId, tuple[bytes, Vectors]] = {}
        self._current: dict[DecisionId, tuple[Decision, Vectors]] = {}
        self._joined: Embedded | None = None
        self._unsaved: dict[DecisionId, tuple[bytes, Vectors]] = {}
        self._filler: threading.Thread | None = None

    def of(self, records: Mapping[DecisionId, DecisionRecord], *, wait_s: float = WAIT_S) -> Embedded | None:
        """The vectors of `records`, as many as there are within `wait_s`; None without a model."""
        model = self._nearness.model
        if model is None:
            return None
        deadline = self._clock() + wait_s
        with self._lock:
            self._use(model)
            missing = self._adopt(records)
        # A thread that is at work already makes them as fast as a second one would.
        done = 0 if self._is_filling() else self._embed(missing, lambda: self._clock() < deadline)
        self._save()
        if done is None:
            return None
        with self._lock:
            if done < len(missing):
                self._fill_later(missing[done:])
            if self._joined is None or len(self._joined.ids) != len(self._current):
                ids = tuple(self._current)
                rows = [self._current[i][1] for i in ids]
                self._joined = Embedded(ids, np.stack(rows) if rows else np.zeros((0, 1), np.float32), 0)
            joined = self._joined
            return Embedded(joined.ids, joined.matrix, len(records) - len(joined.ids))

    def _use(self, model: str) -> None:
        """Read what the store has of `model`, once."""
        if self._model == model:
            return
        self._current, self._joined, self._unsaved, self._kept = {}, None, {}, {}
        store = self._keeper().store()
        if store is not None:
            keys, matrix = store.embeddings(model)
            self._kept = {key[0]: (key[1], row) for key, row in zip(keys, matrix, strict=True)}
        self._model = model

    def _adopt(self, records: Mapping[DecisionId, DecisionRecord]) -> list[Decision]:
        """Take over the kept vectors of what still reads the same; returns the decisions that have none, newest
        first."""
        missing = []
        for identity, record in records.items():
            known = self._current.get(identity)
            if known is not None and known[0] is record.decision:
                continue
            kept = self._kept.get(identity)
            if kept is not None and kept[0] == _content(record.decision):
                self._current[identity] = (record.decision, kept[1])
            else:
                self._current.pop(identity, None)
                missing.append(record.decision)
            self._joined = None
        missing.reverse()
        return missing

    def _embed(self, decisions: Sequence[Decision], may_go_on: Callable[[], bool]) -> int | None:
        """Make vectors as long as `may_go_on` says so; returns how many, or None where the model failed."""
        done = 0
        while done < len(decisions) and may_go_on():
            chunk = decisions[done : done + _CHUNK]
            rows = self._nearness.vectors([embedded_text(decision) for decision in chunk])
            if rows is None:
                return None
            with self._lock:
                for decision, row in zip(chunk, rows, strict=True):
                    self._kept[decision.id] = self._unsaved[decision.id] = (_content(decision), row)
                    self._current[decision.id] = (decision, row)
                self._joined = None
            done += len(chunk)
        return done

    def _save(self) -> None:
        with self._lock:
            unsaved, self._unsaved, model = self._unsaved, {}, self._model
        if not unsaved or model is None:
            return
        # A store that is locked or read-only costs the same vectors again in the next process, and nothing else.
        with contextlib.suppress(StoreProblem):
            store = self._keeper().store()
            if store is not None:
                keys = [(identity, content) for identity, (content, _) in unsaved.items()]
                store.put_embeddings(model, keys, np.stack([row for _, row in unsaved.values()]))

    def _is_filling(self) -> bool:
        return self._filler is not None and self._filler.is_alive()

    def _fill_later(self, missing: Sequence[Decision]) -> None:
        if self._is_filling():
            return
        # No daemon: the interpreter waits for the chunk at hand, so that the runtime is not unloaded under it.
        self._filler = threading.Thread(target=self._fill, args=(missing,), name="nm-decision-vectors")
        self._filler.start()

    def _fill(self, missing: Sequence[Decision]) -> None:
        main = threading.main_thread()
        for start in range(0, len(missing), _KEEP_EVERY):
            done = self._embed(missing[start : start + _KEEP_EVERY], main.is_alive)
            self._save()
            if done is None or not main.is_alive():
                return


def _content(decision: Decision) -> bytes:
    text = embedded_text(decision).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
