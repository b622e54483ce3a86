"""Events and stores for the storage tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.model import DecisionId
from nm_lsp.storage.database import Options
from nm_lsp.storage.decisions import DecisionStore
from nm_lsp.storage.times import utc_text

NOW = 1_769_860_800.0  # 2026-01-31 12:00 UTC
COMMIT = "ab" * 20
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

MakeEvent = Callable[..., Event]


def decision_id(n: int) -> DecisionId:
    digits = "".join(_ALPHABET[n >> shift & 31] for shift in range(35, -5, -5))
    return DecisionId(f"nm-{digits}")


def confirmation(path: str = "src/a.py") -> dict[str, Any]:
    anchor = {"kind": "file", "path": path}
    return {"commit": COMMIT, "seen": [{"anchor": anchor, "files": [[path, "cd" * 20, "cd" * 20]], "text": "c2VjcmV0"}]}


def make_event(kind: str, n: int, at: int, **values: Any) -> Event:
    """Event `at` (its id and time) of decision `n`; `values` are fields, `before`, `reason` and `actor` excepted."""
    before = values.pop("before", {})
    reason = values.pop("reason", None)
    actor = values.pop("actor", "Ada <ada@example.org>")
    if kind == "recorded":
        path = values.pop("path", "src/a.py")
        values = {
            "title": f"Decision {n}",
            "rationale": "Because it is so.",
            "anchors": [{"kind": "file", "path": path}],
            "confirmation": confirmation(path),
            **values,
        }
    elif kind in {"restored", "reinstated"}:
        values = {"confirmation": confirmation(), **values}
    return Event(
        id=f"e-{n}-{at}",
        decision=decision_id(n),
        kind=EventKind(kind),
        time=utc_text(NOW + at),
        actor=actor,
        face="cli",
        commit=COMMIT,
        reason=reason,
        before=before,
        after=values,
    )


@pytest.fixture
def event() -> MakeEvent:
    return make_event


@pytest.fixture
def ids() -> Callable[[int], DecisionId]:
    return decision_id


@pytest.fixture
def now() -> float:
    return NOW


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


OpenStore = Callable[..., DecisionStore]


@pytest.fixture
def open_store(repository: Path, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the store of `repository`; closes at the end whatever the test left open."""
    opened: list[DecisionStore] = []

    def open_it(**options: Any) -> DecisionStore:
        options.setdefault("options", Options(busy_ms=500))
        store = DecisionStore.open(
            repository / ".neuralmind" / "lsp", tmp_path / "state", options.pop("at", NOW), **options
        )
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        store.close()
