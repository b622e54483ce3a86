"""Somebody who edits through a real server, and what the server has learned from it.

The server runs by a `MovedClock`, so that a batch of edits closes as soon as the clock says so: the rules of time are
met without waiting for them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from clocked_server import MovedClock
from decision_session import Repo, Session

QUIET_S = 3.0
"""More than the quiet moment that closes a batch."""
APART_S = 700.0
"""More than the ten minutes within which one batch goes with another."""


def module(name: str, value: int = 1) -> str:
    return f"def {name}(order):\n    return order + {value}\n"


def until_ready(s: Session, timeout: float = 60.0, **fields: Any) -> dict[str, Any]:
    """The status once symbols, keyword search and graph are complete."""
    deadline = time.monotonic() + timeout
    while not (status := s.call("status", **fields))["ready"]:
        assert time.monotonic() < deadline, status
        time.sleep(0.02)
    return dict(status)


def until_quiet(s: Session, still_s: float = 1.0, timeout: float = 30.0) -> int:
    """The revision of the index once it has stayed the same for a while: nothing is indexed again and again."""
    deadline = time.monotonic() + timeout
    revision = until_ready(s)["indexRevision"]
    while True:
        time.sleep(still_s)
        now = until_ready(s)["indexRevision"]
        if now == revision:
            return int(now)
        assert time.monotonic() < deadline, now
        revision = now


class Typist:
    """Works in files that `module` made; each change has a text of its own. Of `n_typists` that teach one store at
    once, all close as many batches, and none goes on before the others have closed theirs."""

    def __init__(
        self, s: Session, clock: MovedClock, repo: Repo, folder: Path | None = None, *, n_typists: int = 1
    ) -> None:
        self.s = s
        self.clock = clock
        self.repo = repo
        self._folder = {} if folder is None else {"folder": folder.as_uri()}
        self._version = 1
        self._n_typists = n_typists
        self._n_closed = 0

    def ready(self) -> None:
        """Wait for the index; nothing before now goes with what comes."""
        until_ready(self.s, **self._folder)
        self.clock.advance(APART_S)

    def open(self, *names: str) -> None:
        for name in names:
            self.s.open(self.repo.uri(f"{name}.py"), (self.repo.path / f"{name}.py").read_text())

    def change(self, *names: str) -> None:
        self._version += 1
        for name in names:
            self.s.change(self.repo.uri(f"{name}.py"), module(name, self._version), self._version)

    def close_batch(self, *, n_waiting: int = 0) -> None:
        """Let the quiet moment pass, and see the batch dealt with, or one of `n_waiting` where none can be written."""
        # An answer comes after everything that was sent before has been taken in.
        self.s.call("status", **self._folder)
        self._n_closed += self._n_typists
        self.clock.advance(QUIET_S)
        self.s.until(lambda: self.dealt_with() >= self._n_closed or 0 < n_waiting <= self.inspect()["waiting"])
        self.clock.advance(APART_S)

    def batch(self, *names: str) -> None:
        self.change(*names)
        self.close_batch()

    def dealt_with(self) -> int:
        return self.counters().get("batches", 0)

    def counters(self) -> dict[str, int]:
        return {row["name"]: row["count"] for row in self.inspect()["counters"]}

    def inspect(self, **fields: Any) -> dict[str, Any]:
        return dict(self.s.call("synapses.inspect", **fields, **self._folder))

    def pairs(self, namespace: str | None = None) -> dict[tuple[str, str], tuple[float, int]]:
        """Pair of symbols → (weight, count), of at most 100 pairs; files go together as their symbols do."""
        if namespace is not None and namespace not in {row["name"] for row in self.inspect()["namespaces"]}:
            return {}
        rows = self.inspect(limit=100, **({} if namespace is None else {"namespace": namespace}))["pairs"]
        found = {(row["a"], row["b"]): (row["weight"], row["count"]) for row in rows}
        return {pair: row for pair, row in found.items() if all("::" in node for node in pair)}

    def goes_with(self, symbol: str) -> dict[str, tuple[float, int]]:
        """What was learned to go with a symbol: node id → (weight, count)."""
        rows = self.s.call("neighbors", symbol=symbol, limit=50, **self._folder)["neighbors"]
        return {row["id"]: (row["weight"], row["count"]) for row in rows if row["source"] != "structural"}
