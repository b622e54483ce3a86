"""What was believed at another commit or time: the events that were there then, judged there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from nm_lsp.base.errors import InvalidInput, NotFound
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.fold import fold_all
from nm_lsp.decisions.validation import escaped
from nm_lsp.engine.decision_requests import AsOfParams, AsOfResult
from nm_lsp.engine.decisions.acts import find
from nm_lsp.engine.decisions.anchoring import Prefix
from nm_lsp.engine.decisions.keeper import Held
from nm_lsp.engine.decisions.rows import Describer
from nm_lsp.engine.decisions.worktree import Look, WorkTree
from nm_lsp.git import Repository


def as_of(tree: WorkTree, prefix: Prefix, params: AsOfParams, judge: Callable[[str | None, Held], Look]) -> AsOfResult:
    """What was believed at a commit (what was recorded in its history or before it was made), or at a time."""
    if (params.commit is None) == (params.time is None):
        raise InvalidInput("commit", "give either a commit or a time.")
    if params.commit is not None:
        if tree.git is None:
            raise NotFound("There is no repository, so there are no commits.")
        commit = tree.git.resolve(params.commit)
        if commit is None:
            raise NotFound(f"There is no commit {escaped(params.commit[:80], one_line=True)} here.")
        look, at = judge(commit, _held_at_commit(tree, tree.git, commit)), commit
    else:
        assert params.time is not None
        at = _utc(params.time)
        head = tree.look().head.commit
        commit = tree.git.commit_at(at, head) if tree.git is not None and head is not None else None
        look = judge(commit, _held_at(tree, at))
    ids = [find(look, params.id)] if params.id is not None else sorted(look.records)
    describer = Describer.of(tree, look, prefix, ids)
    return AsOfResult(at, commit, tuple(describer.row(i) for i in ids))


def _utc(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            "time", f"{text[:40]!r} is not a time.", hint="Write it like 2026-01-31T12:00:00Z."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _held_at(tree: WorkTree, at: str) -> Held:
    return _held(event for event in _events(tree) if event.time <= at)


def _held_at_commit(tree: WorkTree, git: Repository, commit: str) -> Held:
    """What was done while HEAD was `commit` or one before it, whenever that was, and what was done before it was made.

    The time alone counts for what was done on commits that are gone, or lie on a branch that was squashed.
    """
    events = _events(tree)
    now_called = dict(pair for event in events if event.kind is EventKind.REWRITTEN for pair in event.pairs())
    named = {event.commit: _end(event.commit, now_called) for event in events if event.commit is not None}
    here = git.present([*named.values()])
    later = {other for other, _ in git.commits(here, [commit])} if here else set[str]()
    until = f"{datetime.fromtimestamp(git.describe([commit])[commit].time_s, UTC):%Y-%m-%dT%H:%M:%S.999999Z}"

    def counts(event: Event) -> bool:
        there = named.get(event.commit) if event.commit is not None else None
        return event.kind is EventKind.REWRITTEN or event.time <= until or (there in here and there not in later)

    past = [event for event in events if counts(event)]
    known = {event.decision for event in past if event.kind is EventKind.RECORDED}
    return _held(event for event in past if event.decision is None or event.decision in known)


def _end(commit: str, now_called: Mapping[str, str]) -> str:
    seen = set[str]()
    while commit in now_called and commit not in seen:
        seen.add(commit)
        commit = now_called[commit]
    return commit


def _events(tree: WorkTree) -> Sequence[Event]:
    store = tree.keeper.store()
    return store.changes(0).events if store is not None else ()


def _held(events: Iterable[Event]) -> Held:
    past = list(events)
    return Held(len(past), fold_all(past))
