"""A workspace without an engine: canned answers, so that the commands' own behaviour is what is tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NmError
from nm_lsp.cli import main
from nm_lsp.engine import requests as r
from nm_lsp.engine.memory_requests import SavingsResult
from nm_lsp.graph.model import Span

PLACE = r.Place("src/köln.py", Span(10, 90, 2, 6, 5, 0))
HIT = r.Hit(
    id="src/köln.py::bake",
    place=PLACE,
    kind="function",
    name="bake",
    signature="def bake(flour)",
    score=0.875,
    text="def bake(flour)\n    Turn flour \x1b[31minto loaves.",
    ranks=r.Ranks(keyword=1, vector=2, synapse=None),
)
TRACE = r.CandidateTrace(HIT.id, 1, 12.5, 2, 0.61, 0.0325, 1.0, (("definition", 1.2),), 0.039)
LAYER = r.Layer("L3", "Code", "def bake(flour)", 6, 600)
STATUS = r.StatusResult(
    folder="/somewhere",
    ready=True,
    phase=r.Phase.IDLE,
    progress=r.Progress(3, 3),
    vectors=r.Progress(2, 2),
    index_revision=4,
    files=3,
    symbols=9,
    n_skipped=1,
    skipped=(r.Skipped("big.js", "minified"),),
    decisions={"active": 2, "stale": 1, "invalidated": 0, "unknown": 0},
    head="0123456789abcdef",
    branch="main",
    is_index_writer=True,
    problems=(r.Problem("model", "There are no weights.", "Run `nm-lsp model install`."),),
)
NODES = [
    {"id": f"a.py::f{n}", "kind": "function", "path": "a.py", "doc": f"Turn number {n} into a loaf. More."}
    for n in range(9)
]


class FakeMemory:
    """Nothing was learned, and one question was answered about a small file."""

    def inspect(self, params: object, cancel: Cancellation, caller: object) -> None:
        cancel.check()

    def savings(self, params: object, cancel: Cancellation, caller: object) -> SavingsResult:
        return SavingsResult(1, 900, 300, -600, -2.0, "saved = tokens_of_files - tokens_given")


@dataclass
class FakeHost:
    """Answers with `answers[method]`, raising it if it is an error; remembers what it was asked."""

    listener: Callable[[r.HostEvent], None]
    answers: dict[str, object]
    asked: list[tuple[str, object]] = field(default_factory=list)
    waited_s: float = 0.0

    @property
    def memory(self) -> FakeMemory:
        return FakeMemory()

    def prewarm(self, question: str) -> None:
        """The model of a fake is always warm; only the wait is of interest."""

    def wait_ready(self, cancel: Cancellation, *, vectors: bool = False, within_s: float = math.inf) -> None:
        self.asked.append(("wait_ready", vectors))
        self.waited_s = within_s
        self.listener(r.IndexProgress("/somewhere", r.Phase.KEYWORD, 50, "parsing"))
        self.listener(r.IndexFinished("/somewhere", "done"))
        cancel.check()

    def wait_settled(self, cancel: Cancellation) -> None:
        """What a fake has begun is done."""

    def __getattr__(self, method: str) -> Callable[[object, Cancellation], object]:
        def call(params: object, cancel: Cancellation) -> object:
            cancel.check()
            self.asked.append((method, params))
            answer = self.answers[method]
            if isinstance(answer, NmError):
                raise answer
            return answer

        return call


@dataclass
class FakeEngine:
    """What every command of one test meets."""

    answers: dict[str, object]
    opened: list[Path] = field(default_factory=list)
    closed: int = 0
    host: FakeHost | None = None

    @property
    def asked(self) -> list[tuple[str, object]]:
        assert self.host is not None
        return self.host.asked


def canned() -> dict[str, object]:
    return {
        "status": STATUS,
        "search": r.SearchResult((HIT,), (r.Missing.MODEL,)),
        "query": r.QueryResult("def bake(flour)", 12, (LAYER,), (HIT,), (), ()),
        "wakeup": r.WakeupResult("A bakery.", 3, (LAYER,)),
        "explain": r.ExplainResult("bread", "# Why\n", (), (), (r.ExplainedHit(HIT.id, PLACE, 0.9, ("name",)),), ()),
        "relevance": r.RelevanceResult((r.Relevance(HIT.id, PLACE, TRACE),), ()),
        "rebuild": r.Acknowledged(True, "started"),
        "graph_export": r.GraphExportResult(9, 1, None, {"nodes": NODES, "edges": []}),
        "graph_validate": r.GraphValidateResult(True, (), 9, 1),
        "stats": r.StatsResult(
            3, 9, 4, 1_500_000, (r.Count("python", 3),), (r.Count("function", 9),), (r.Count("calls", 2),),
            (r.CommunityRow(0, "bakery", 3, 9),), r.Progress(2, 2), "exact", "all-MiniLM-L6-v2",
        ),
    }  # fmt: skip


@pytest.fixture
def status() -> r.StatusResult:
    return STATUS


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeEngine]:
    """The engine's place is taken in `session`; the current folder is an empty one. The workspace must be closed."""
    import nm_lsp.cli.session as session_module

    fake = FakeEngine(canned())

    class FakeWorkspace:
        def __init__(self, _settings: object, listener: Callable[[r.HostEvent], None]) -> None:
            self._listener = listener

        def add_folder(self, folder: Path) -> FakeHost:
            fake.opened.append(folder)
            fake.host = FakeHost(self._listener, fake.answers)
            return fake.host

        def close(self) -> None:
            fake.closed += 1

    monkeypatch.setattr(session_module, "Workspace", FakeWorkspace)
    monkeypatch.chdir(tmp_path)
    yield fake
    assert fake.closed == len(fake.opened)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def nm_lsp(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs `nm-lsp <arguments>` in this process, by the function behind the console script."""

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main.run(arguments)
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, captured.out, captured.err)

    return run
