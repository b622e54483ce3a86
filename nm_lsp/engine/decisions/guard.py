"""Which decisions govern a few paths and whether they hold: the answer for hooks of agents and for CI.

Guarantees: the verdicts are those of a whole look (`worktree.WorkTree`), since only decisions that may govern the paths
are left out of the judging; nothing is written, not even a lock file; where git or the store cannot answer, that is
said, and no decision is then called ACTIVE. Imports neither numpy nor a grammar unless one is needed.

A decision may govern a path if one of its anchors was ever named so or is a folder or a glob, if a name of it is not
among HEAD's files (it moved or is gone), or if it was named as a file that left in a commit that added the path.
Limit: a name that was given away in a branch over several commits and taken anew since is not followed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nm_lsp.base.errors import GitUnavailable, StoreProblem
from nm_lsp.decisions.describing import unknown_everywhere
from nm_lsp.decisions.fold import DecisionRecord, Memory
from nm_lsp.decisions.model import DecisionId
from nm_lsp.decisions.staleness import Judge
from nm_lsp.decisions.validation import escaped
from nm_lsp.decisions.verdicts import AnchorView, Status, Verdict
from nm_lsp.engine.decision_shapes import DecisionRow
from nm_lsp.engine.decisions.governing import WIDE, Asked, Governing
from nm_lsp.engine.decisions.home import STORE_FOLDER, Home, home_of, root_by_hand
from nm_lsp.engine.decisions.narrowing import NarrowHistory, places_of
from nm_lsp.engine.decisions.rows import Describer
from nm_lsp.engine.rewrites import read_rewrites
from nm_lsp.git import CommitInfo, Place, Repository, discover
from nm_lsp.storage.decision_reading import DecisionReader, read_store

if TYPE_CHECKING:
    from nm_lsp.engine.decisions.code import Grammars

_DATABASE = "memory.db"
_TEXT_COPY = "audit.jsonl"
_MAX_FORMER = 2_000
"""Former names followed; beyond them every decision is judged."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A decision that governs a path: anchored at this very file (or a symbol of it), or at a folder or glob around."""

    decision: DecisionRow
    rationale: str
    symbols: tuple[str, ...]
    is_here: bool


@dataclass(frozen=True, slots=True)
class GuardedPath:
    """`path` as it was asked for; `exists`: something is there. `root` is the absolute path that `repo_path` and those
    of anchors are relative to, None where nothing governs."""

    path: str
    root: str | None
    repo_path: str | None
    decisions: tuple[Guarded, ...]
    exists: bool = True


@dataclass(frozen=True, slots=True)
class GuardResult:
    """`doubted`: a governing decision is STALE, or INVALIDATED without another in its place. `unknown`: of one nobody
    knows, or a `problem` kept the question from being answered."""

    paths: tuple[GuardedPath, ...]
    doubted: bool
    unknown: bool
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Judged:
    """What was looked at: a `rows.Judged`."""

    records: dict[DecisionId, DecisionRecord] = field(default_factory=dict)
    verdicts: dict[DecisionId, Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _FromRoot:
    """A `rows.Paths`: `path` in results is the repository's."""

    text: str = ""

    def to_folder(self, repo_path: str) -> str | None:
        return repo_path


def guard(paths: Sequence[str], base: Path, *, git: str = "git", revival: bool = False) -> GuardResult:
    """The decisions that govern `paths` (absolute, or relative to `base`; where nothing is there, to its repository),
    judged at the HEAD of their work tree.

    Paths need not exist; a folder asks for all files below it, `path::symbol` for its whole file. What lies outside a
    repository is governed by nothing.
    """
    groups: dict[Path, list[tuple[str, Path]]] = {}
    for path in paths:
        target = _real_parent(_place(path, base))
        folder = target if target.is_dir() and not _is_submodule(target, base) else _existing(target.parent)
        groups.setdefault(root_by_hand(folder) or folder, []).append((path, target))
    answered: dict[str, GuardedPath] = {}
    problems: list[str] = []
    for folder, asked in groups.items():
        try:
            answered.update(_guard_folder(folder, asked, git, revival))
        except (StoreProblem, GitUnavailable) as problem:
            problems.append(str(problem))
    there = {path: os.path.lexists(target) for asked in groups.values() for path, target in asked}
    rows = tuple(replace(answered.get(path) or GuardedPath(path, None, None, ()), exists=there[path]) for path in paths)
    shown = [guarded.decision for row in rows for guarded in row.decisions]
    found = {row.status for row in shown}
    doubted = any(is_doubted(row) for row in shown)
    unknown = bool(problems) or Status.UNKNOWN.value in found
    return GuardResult(rows, doubted, unknown, tuple(dict.fromkeys(problems)))


def is_doubted(row: DecisionRow) -> bool:
    """One that another took the place of is history: what the other is worth decides."""
    return row.status == Status.STALE.value or (row.status == Status.INVALIDATED.value and row.superseded_by is None)


def _guard_folder(
    folder: Path, asked: Sequence[tuple[str, Path]], git: str, revival: bool
) -> Iterator[tuple[str, GuardedPath]]:
    if not (folder / ".git").exists():
        return _without_git(folder, asked)
    if (folder / ".git").is_dir() and _store_file(Home(folder, folder)) is None:
        # The main work tree, and so the home of the store: git need not be asked.
        return iter(())
    try:
        place = discover(folder, executable=git)
    except GitUnavailable as problem:
        return _unknown(folder, asked, problem)
    if place is None or place.work_tree is None:
        return iter(())
    with Repository(place, executable=git) as repository:
        store = _store_file(home_of(place, folder, repository))
        if store is None:
            return iter(())
        return iter(list(_judged(place, repository, store, asked, revival)))


def _judged(
    place: Place, repository: Repository, store: Path, asked: Sequence[tuple[str, Path]], revival: bool
) -> Iterator[tuple[str, GuardedPath]]:
    assert place.work_tree is not None
    questions = {given: _question(path, place.work_tree) for given, path in asked}
    wanted = {name for question in questions.values() for name in question.names}
    wants_folder = any(question.folder is not None for question in questions.values())
    try:
        head = repository.head().commit
        here = repository.names(head) if head is not None else set()
        former: set[str] | None = set()
        if wants_folder:
            # So many files that every decision is judged.
            former = None
        elif head is not None:
            former = _former_names(repository, head, wanted & here)
    except GitUnavailable as problem:
        yield from _unknown(place.work_tree, asked, problem, store)
        return
    moved_here = wants_folder or bool(wanted & here)

    def ask(reader: DecisionReader) -> Memory:
        known = reader.names() if moved_here else set()
        away = known if former is None else (known - here) | (former & known)
        return Memory(reader.records(reader.named(wanted | away)), reader.rewrites())

    memory = read_store(store, ask)
    # The list of commits that a server has not stored yet counts as it will once it is stored.
    memory.rewrites.extend(read_rewrites(place, memory.rewrites).pairs)
    judge, verdicts = _look(repository, head, memory, revival)
    look = _Judged(memory.records, {**verdicts})
    placed = Governing(verdicts)
    governing = {given: placed.rows(question, here) for given, question in questions.items()}
    shown = {identity for rows in governing.values() for identity, _ in rows}
    # What only makes a reason plainer may fail without taking the verdict with it.
    with contextlib.suppress(GitUnavailable):
        look.verdicts.update(judge.classify({identity: verdicts[identity] for identity in shown}))
    commits = {v.commit for i in shown if (v := look.verdicts[i]).status is Status.STALE and v.commit is not None}
    infos: dict[str, CommitInfo] = {}
    with contextlib.suppress(GitUnavailable):
        infos = repository.describe(commits) if commits else {}
    describer = Describer(look, _FromRoot(), infos)
    for given, question in questions.items():
        rows = _described(describer, governing[given])
        yield given, GuardedPath(given, str(place.work_tree), question.names[0], rows)


def _look(
    repository: Repository, head: str | None, memory: Memory, revival: bool
) -> tuple[Judge, dict[DecisionId, Verdict]]:
    """The verdicts and the judge who gave them, over as little of the history as decides."""
    code = _LazyGrammars()
    places = places_of(memory)
    narrow = NarrowHistory(repository, places) if places is not None else None
    while narrow is not None:
        judge = Judge(narrow, code, revival=revival)
        verdicts = judge.look(head, memory)
        if not narrow.left_out:
            return judge, verdicts
        narrow = narrow if narrow.widen() else None
    judge = Judge(repository, code, revival=revival)
    return judge, judge.look(head, memory)


def _former_names(repository: Repository, head: str, names: set[str]) -> set[str] | None:
    """The files that left in a commit that added one of `names`, and so on backwards; None for too many of them."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        pairs = repository.additions(head, sorted(waiting))
        gone = {c.path for change in repository.differences(pairs) for c in change if c.new is None}
        waiting = gone - found - names
        found |= waiting
        if len(found) > _MAX_FORMER:
            return None
    return found


def _described(describer: Describer, rows: Iterable[tuple[DecisionId, list[AnchorView]]]) -> tuple[Guarded, ...]:
    found: dict[DecisionId, Guarded] = {}
    for identity, views in rows:
        if identity not in found:
            symbols = tuple(dict.fromkeys(view.now.symbol for view in views if view.now.symbol is not None))
            rationale = escaped(describer.look.records[identity].decision.rationale)
            is_here = any(view.now.kind not in WIDE for view in views)
            found[identity] = Guarded(describer.row(identity), rationale, symbols, is_here)
    return tuple(found.values())


# -- without an answer of git --------------------------------------------------------------------------------------


def _unknown(
    root: Path, asked: Sequence[tuple[str, Path]], problem: GitUnavailable, store: Path | None = None
) -> Iterator[tuple[str, GuardedPath]]:
    """By the names as they were given: nobody knows whether these hold, or where others moved."""
    store = store or _store_file(Home(root, root))
    if store is None:
        raise problem
    questions = {given: _question(path, root) for given, path in asked}
    records = read_store(store, lambda reader: _named_so(reader, questions.values()))
    verdicts = {identity: unknown_everywhere(record, str(problem)) for identity, record in records.items()}
    yield from _shown(_Judged(records, verdicts), root, questions)
    if not verdicts:
        raise problem


def _without_git(folder: Path, asked: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, GuardedPath]]:
    """Saving other bytes plays the part of a commit (rule 9): the bytes on disk decide."""
    root = next((place for place in (folder, *folder.parents) if (place / STORE_FOLDER / _DATABASE).exists()), None)
    if root is None:
        return
    # Imported here because only folders without a repository pay for it.
    from nm_lsp.engine.decisions.without_git import judge_folder

    questions = {given: _question(path, root) for given, path in asked}
    records = read_store(root / STORE_FOLDER / _DATABASE, lambda reader: _named_so(reader, questions.values()))
    yield from _shown(_Judged(records, judge_folder(root, Memory(records))), root, questions)


def _named_so(reader: DecisionReader, questions: Collection[Asked]) -> dict[DecisionId, DecisionRecord]:
    """The decisions with anchors of the names asked for, where nobody can say what has moved."""
    known = reader.names() if any(question.folder is not None for question in questions) else set()
    return reader.records(reader.named({name for question in questions for name in question.picks(known)}))


def _shown(look: _Judged, root: Path, questions: Mapping[str, Asked]) -> Iterator[tuple[str, GuardedPath]]:
    describer = Describer(look, _FromRoot(), {})
    placed = Governing(look.verdicts)
    for given, question in questions.items():
        rows = _described(describer, placed.rows(question, ()))
        yield given, GuardedPath(given, str(root), question.names[0], rows)


# -- places --------------------------------------------------------------------------------------------------------


def _store_file(home: Home) -> Path | None:
    """The store's file; None where there never was one. Raises `StoreProblem` where there was one and it is gone."""
    folder = home.folder / STORE_FOLDER
    if (folder / _DATABASE).exists():
        return folder / _DATABASE
    # Imported here because most repositories with decisions have their store at home.
    from nm_lsp.storage.locations import state_folders, state_root

    kept = state_folders(state_root(), home.kept_as)
    for elsewhere in kept:
        if (elsewhere / "store" / _DATABASE).exists():
            return elsewhere / "store" / _DATABASE
    if kept or (folder / _TEXT_COPY).exists():
        raise StoreProblem(
            f"The decision store {folder / _DATABASE} is missing, and there is something to restore it from.",
            reason="lost",
            hint="`nm-lsp decisions recover` brings it back.",
        )
    return None


def _place(path: str, base: Path) -> Path:
    """Where `path` leads: from `base`, or from the root of its repository where only there is something."""
    root = root_by_hand(base) or base
    names = [path, path.partition("::")[0]] if "::" in path else [path]
    places = [Path(os.path.normpath(start / name)) for name in names for start in (base, root)]
    # The plain file of `path::symbol` where neither is there: a name with colons is no usual one.
    return next((place for place in places if os.path.lexists(place)), places[-2])


def _real_parent(path: Path) -> Path:
    """`path` with the links of the folders above it followed, but not its own."""
    return path.parent.resolve() / path.name


def _is_submodule(folder: Path, base: Path) -> bool:
    """Whether `folder` is one as seen from `base`, so that the repository around it is asked."""
    return (folder / ".git").is_file() and not base.is_relative_to(folder) and root_by_hand(folder.parent) is not None


def _existing(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if place.is_dir()), folder)


def _question(path: Path, root: Path) -> Asked:
    """What writing to `path` changes: its own repository path, and for a link that of its target; or a whole folder."""
    found = [path.relative_to(root).as_posix()]
    if path.is_dir() and not path.is_symlink():
        return Asked((found[0],), "" if path == root else found[0] + "/")
    target = path.resolve()
    if target != path and target.is_relative_to(root):
        found.append(target.relative_to(root).as_posix())
    return Asked(tuple(found))


class _LazyGrammars:
    """A `CodeComparison` that loads the grammars with the first text it compares."""

    def __init__(self) -> None:
        self._grammars: Grammars | None = None

    def _loaded(self) -> Grammars:
        if self._grammars is None:
            # Imported here because most answers need no grammar and loading them costs 50 ms.
            from nm_lsp.engine.decisions.code import Grammars

            self._grammars = Grammars()
        return self._grammars

    def same_file(self, path: str, seen: bytes, now: bytes) -> bool:
        return self._loaded().same_file(path, seen, now)

    def symbol_text(self, path: str, name: str, text: bytes) -> bytes | None:
        return self._loaded().symbol_text(path, name, text)

    def same_symbol(self, path: str, seen: bytes, now: bytes) -> bool:
        return self._loaded().same_symbol(path, seen, now)
