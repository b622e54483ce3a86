"""How well decisions are found, and whether any that does not hold is: measured, not asserted.

Everything runs through the real engine in real git repositories made for it in a temporary folder. Nothing is read from
or written to the user's own.

    recall@k             = relevant decisions among the first k / relevant decisions, mean over the questions
    MRR                  = 1 / rank of the first relevant decision (0 where none is found), mean over the questions
    precision            = relevant decisions among those found / decisions found, over all tasks
    stale influence rate = decisions found that do not hold / decisions found, over all tasks
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.engine.decision_requests import (
    Caller,
    DecisionSearchParams,
    DecisionSearchResult,
    InvalidateParams,
    RecordParams,
    RestoreParams,
    SupersedeParams,
)
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.searching import MODES, DecisionSearch
from nm_lsp.engine.decisions.similar import Nearness
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.git.scratch import ScratchRepository

KS: Final = (1, 3, 5, 10)
_CALLER: Final = Caller("cli", "decisions eval")
_K_TASK: Final = 5


@dataclass(frozen=True, slots=True)
class TaskScore:
    """`intruders` are the titles found that do not hold; `missed` the relevant ones that were not."""

    name: str
    recall: float
    n_found: int
    n_relevant: int
    intruders: tuple[str, ...]
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaintenanceScore:
    mode: str
    stale_influence_rate: float
    recall_at_5: float
    precision: float
    tasks: tuple[TaskScore, ...]


@dataclass(frozen=True, slots=True)
class ModeScore:
    """`recall` by k. `n_misfires` questions to which nothing here is an answer got one. `n_not_active`: decisions found
    that do not hold, over all questions."""

    mode: str
    recall: dict[int, float]
    mrr: float
    n_questions: int
    n_misfires: int
    n_not_active: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`model` is None where there are no weights: then every mode goes by words."""

    model: str | None
    maintenance: tuple[MaintenanceScore, ...]
    queries: tuple[ModeScore, ...]


def evaluate(nearness: Nearness, cancel: Cancellation, *, git: str = "git", queries: Path | None = None) -> Evaluation:
    """Both evaluations. `queries` is a query set of the caller's own in the form of the packaged one.

    Raises `InvalidInput` for a query set of another form, `GitUnavailable` without git.
    """
    modes = MODES if nearness.model is not None else ("keyword",)
    tasks = _load("maintenance_tasks.json")["tasks"]
    queries_set = _query_set(queries)
    return Evaluation(
        nearness.model,
        _maintenance(tasks, modes, nearness, git, cancel),
        _queries(queries_set, modes, nearness, git, cancel),
    )


# -- maintenance ---------------------------------------------------------------------------------------------------


def _maintenance(
    tasks: Sequence[Mapping[str, Any]], modes: Sequence[str], nearness: Nearness, git: str, cancel: Cancellation
) -> tuple[MaintenanceScore, ...]:
    scores: dict[str, list[TaskScore]] = {mode: [] for mode in modes}
    for task in tasks:
        cancel.check()
        with _stage(nearness, git) as stage:
            stage.play(task)
            for mode in modes:
                scores[mode].append(_task_score(task, stage.search(task["question"], mode, 10)))
    return tuple(_maintenance_score(mode, rows) for mode, rows in scores.items())


def _task_score(task: Mapping[str, Any], result: DecisionSearchResult) -> TaskScore:
    """What holds is what the task says, not what the engine does."""
    keys = {one["title"]: one["key"] for one in task["decisions"]}
    relevant = set(task["relevant"])
    found = [hit.decision.title for hit in result.hits]
    among_first = {keys[title] for title in found[:_K_TASK]}
    return TaskScore(
        name=task["name"],
        recall=len(relevant & among_first) / len(relevant),
        n_found=len(found),
        n_relevant=sum(keys[title] in relevant for title in found),
        intruders=tuple(title for title in found if not _holds(task, keys[title])),
        missed=tuple(title for title, key in keys.items() if key in relevant - among_first),
    )


def _holds(task: Mapping[str, Any], key: str) -> bool:
    return key in task["relevant"] or key in task.get("alsoHold", ())


def _maintenance_score(mode: str, rows: Sequence[TaskScore]) -> MaintenanceScore:
    n_found = sum(row.n_found for row in rows)
    return MaintenanceScore(
        mode=mode,
        stale_influence_rate=sum(len(row.intruders) for row in rows) / n_found if n_found else 0.0,
        recall_at_5=sum(row.recall for row in rows) / len(rows),
        precision=sum(row.n_relevant for row in rows) / n_found if n_found else 0.0,
        tasks=tuple(rows),
    )


# -- the query set -------------------------------------------------------------------------------------------------


def _queries(
    query_set: Mapping[str, Any], modes: Sequence[str], nearness: Nearness, git: str, cancel: Cancellation
) -> tuple[ModeScore, ...]:
    decisions = query_set["decisions"]
    with _stage(nearness, git) as stage:
        stage.play(
            {
                "commits": [
                    {one["file"]: f"# {one['key']}\n" for one in decisions},
                    {one["file"]: "changed = True\n" for one in decisions if one["status"] == "stale"} or {"x": "x\n"},
                ],
                "decisions": [
                    {**one, **({"invalidated": "Replaced."} if one["status"] == "invalidated" else {})}
                    for one in decisions
                ],
            }
        )
        keys = {one["title"]: one["key"] for one in decisions}
        holding = {one["key"] for one in decisions if one["status"] == "active"}
        scores = []
        for mode in modes:
            cancel.check()
            answers = [
                ([keys[hit.decision.title] for hit in stage.search(one["query"], mode, max(KS)).hits], one["relevant"])
                for one in query_set["queries"]
            ]
            scores.append(_mode_score(mode, answers, holding))
        return tuple(scores)


def _mode_score(mode: str, answers: Sequence[tuple[list[str], list[str]]], holding: set[str]) -> ModeScore:
    asked = [(found, set(relevant)) for found, relevant in answers if relevant]
    n = max(len(asked), 1)
    return ModeScore(
        mode=mode,
        recall={k: sum(len(relevant & set(found[:k])) / len(relevant) for found, relevant in asked) / n for k in KS},
        mrr=sum(_reciprocal_rank(found, relevant) for found, relevant in asked) / n,
        n_questions=len(asked),
        n_misfires=sum(bool(found) for found, relevant in answers if not relevant),
        n_not_active=sum(key not in holding for found, _ in answers for key in found),
    )


def _reciprocal_rank(found: Sequence[str], relevant: set[str]) -> float:
    return next((1 / rank for rank, key in enumerate(found, 1) if key in relevant), 0.0)


def _load(name: str) -> dict[str, Any]:
    text = resources.files("nm_lsp.engine.decisions").joinpath("data", name).read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _query_set(path: Path | None) -> dict[str, Any]:
    if path is None:
        return _load("decision_queries.json")
    try:
        loaded = json.loads(path.read_text("utf-8"))
        statuses = {one["status"] for one in loaded["decisions"]}
        keys = {one["key"] for one in loaded["decisions"] if one["title"] and one["rationale"] and one["file"]}
        if not statuses <= {"active", "stale", "invalidated"}:
            raise InvalidInput("queries", f"{', '.join(sorted(statuses))}: not all of these are statuses.")
        for one in loaded["queries"]:
            if not (isinstance(one["query"], str) and set(one["relevant"]) <= keys):
                raise InvalidInput("queries", f"{one['query']!r} names a decision that is not in the set.")
    except OSError as error:
        raise InvalidInput("queries", f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput("queries", f"{path} is no query set: {error!r}.") from error
    return dict(loaded)


# -- the stage -----------------------------------------------------------------------------------------------------


class _Stage:
    """One repository and its desk."""

    def __init__(self, repository: ScratchRepository, desk: Desk, search: DecisionSearch) -> None:
        self._repository = repository
        self._desk = desk
        self._search = search
        self._cancel = Cancellation()

    def play(self, task: Mapping[str, Any]) -> None:
        """The first commit, the recordings, the other commits, and what people said then."""
        first, *later = task["commits"]
        self._repository.commit(first)
        ids: dict[str, str] = {}
        for one in task["decisions"]:
            params = RecordParams(
                title=one["title"],
                rationale=one["rationale"],
                files=(one["file"],),
                depends_on=tuple(ids[key] for key in one.get("dependsOn", ())),
            )
            ids[one["key"]] = self._desk.record(params, self._cancel, _CALLER).decision.row.id
        for files in later:
            self._repository.commit(files)
        for one in task["decisions"]:
            identity = ids[one["key"]]
            if one.get("restored"):
                self._desk.restore(RestoreParams(ids=(identity,)), self._cancel, _CALLER)
            if "invalidated" in one:
                self._desk.invalidate(InvalidateParams(id=identity, reason=one["invalidated"]), self._cancel, _CALLER)
            if "supersededBy" in one:
                params_ = SupersedeParams(id=identity, by=ids[one["supersededBy"]], reason="Replaced.")
                self._desk.supersede(params_, self._cancel, _CALLER)

    def search(self, query: str, mode: str, limit: int) -> DecisionSearchResult:
        look = self._desk.poll(sure=True)
        params = DecisionSearchParams(query=query, mode=mode, limit=limit)
        return self._search.search(look, self._desk.prefix, params, self._cancel)


@contextmanager
def _stage(nearness: Nearness, git: str) -> Iterator[_Stage]:
    folder = Path(tempfile.mkdtemp(prefix="nm-lsp-eval-")).resolve()
    repositories = Repositories(state=folder / "state")
    root = folder / "repository"
    root.mkdir()
    tree = WorkTree(root, repositories, git=git, revival=False, clock=time.monotonic)
    try:
        repository = ScratchRepository(root, executable=git)
        desk = Desk(
            root,
            tree,
            screen=lambda _path: None,
            spans=lambda _path, _symbol: None,
            nearness=nearness,
            on_change=lambda: None,
        )
        yield _Stage(repository, desk, DecisionSearch(tree, nearness, wait_s=math.inf))
    finally:
        tree.close()
        repositories.close()
        shutil.rmtree(folder, ignore_errors=True)
