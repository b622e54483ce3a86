"""When a decision is STALE at HEAD: the rules of `RULES.md`, over a repository and the fold of all events.

The verdict is a function of those two alone: the same by every route, in every work tree, whenever it is looked at.
What a `Judge` remembers between looks only saves work.

| rule | where |
| --- | --- |
| 1 walk from HEAD to A | `walking`, `ancestry` |
| 2 A is not in HEAD's history | `comparing` |
| 3, 4, 7 what doubts a confirmation | `steps`, `changes`, `globs` |
| 4 comments or layout only, 5 revival, 6 several confirmations and rewritten commits | here |
| 8 dependencies | `verdicts` |
| 9 without git | `judge_saved`, here |

Readings of the rules, where they leave room:
- A confirmation made before the first commit has its A below every root commit; the route to it follows first parents.
- Rule 6: joined commits are tried in the order of the `post-rewrite` lists, over chains of lists too; a list speaks of
  a confirmation whether it came before or after it. Outside HEAD's history the newest of them that is here is compared.
- Where several confirmations fail, the reason speaks of the newest in HEAD's history, else of the newest of which a
  commit took HEAD away, else of the newest. Of several doubts the newest is the reason.
- "Only comments or layout": every doubted anchor governs whole files, and each path that does not hold the bytes seen
  holds the same code at HEAD. Bytes that were seen but never committed cannot be compared, so nothing is said then.
- Automatic revival: a confirmation stands too if every anchor it was doubted at holds what was seen again.
- If no confirmation stands and one of them cannot be judged, the status is unknown.

Must not know: sqlite, git itself, clocks, LSP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.decisions.ancestry import BEFORE
from nm_lsp.decisions.changes import Difference
from nm_lsp.decisions.comparing import Compared, Comparer
from nm_lsp.decisions.describing import (
    Outcome,
    cause_of,
    described,
    outcome,
    reverted,
    speaking,
    stale,
    unchanged,
    unknown_everywhere,
)
from nm_lsp.decisions.fold import DecisionRecord, Memory, Standing
from nm_lsp.decisions.model import AnchorKind, Confirmation, Content, DecisionId
from nm_lsp.decisions.ports import CodeComparison, History
from nm_lsp.decisions.steps import Doubt, Step, step
from nm_lsp.decisions.symbols import SymbolReader
from nm_lsp.decisions.verdicts import Away, Reason, Relation, Severity, Status, Verdict, with_dependencies
from nm_lsp.decisions.walking import AnchorIndex, States, Task, Walker

_WHOLE_FILES = frozenset({AnchorKind.FILE, AnchorKind.FOLDER, AnchorKind.GLOB})


@dataclass(slots=True)
class _Known:
    """What is kept of a decision from look to look."""

    record: DecisionRecord
    tasks: tuple[Task, ...]
    outcomes: tuple[Outcome, ...] = ()
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class _Settled:
    """A look that the same question can be answered from: verdicts of each decision by itself, and after rule 8."""

    asked: tuple[str | None, int]
    own: dict[DecisionId, Verdict]
    verdicts: dict[DecisionId, Verdict]


class Judge:
    """Judges all decisions at a head. One per repository and thread.

    Build a new one when the repository's shallow boundary moves: what lies in a commit's history is remembered.
    """

    def __init__(self, history: History, code: CodeComparison, *, revival: bool = False) -> None:
        """`revival` is the setting `decisions.revival = "automatic"`."""
        self._history = history
        self._code = code
        self._revival = revival
        self._symbols = SymbolReader(history.blob, code)
        self._walker = Walker(history, self._symbols)
        self._index = AnchorIndex()
        self._known: dict[DecisionId, _Known] = {}
        self._joined: dict[tuple[Task, str], Mapping[str, Content] | None] = {}
        self._last: dict[Task, Outcome] = {}
        self._settled: _Settled | None = None
        self._same_files: dict[tuple[str, Content, Content], bool] = {}

    def look(self, head: str | None, memory: Memory) -> dict[DecisionId, Verdict]:
        """The verdict of every decision at `head` (None on an unborn branch), by ids and symbols.

        Which of the STALE ones differ in comments or layout only is left to `classify`. Where git cannot answer, every
        decision that people hold ACTIVE is unknown.
        """
        asked = (head, len(memory.rewrites))
        changed = self._take_in(memory)
        settled, self._settled = self._settled, None
        if settled is not None and settled.asked != asked:
            settled = None
        if settled is not None and not changed:
            self._settled = settled
            return dict(settled.verdicts)
        # At the head of the last look, only what people changed since is judged anew.
        judged = {i: k for i, k in self._known.items() if i in changed} if settled is not None else self._known
        try:
            outcomes = self._outcomes(head, memory.rewrites, judged.values())
        except GitUnavailable as error:
            return unknown_verdicts(memory, str(error))
        own = {i: v for i, v in settled.own.items() if i in self._known} if settled is not None else {}
        own |= {i: self._verdict(known, outcomes) for i, known in judged.items()}
        verdicts = with_dependencies(memory.records, own)
        # What lies outside HEAD's history, or is unknown, may differ at the same HEAD after a fetch or gc.
        if all(row.stands is not None and row.end is not None for row in outcomes.values()):
            self._settled = _Settled(asked, own, verdicts)
        return dict(verdicts)

    def classify(self, verdicts: Mapping[DecisionId, Verdict]) -> dict[DecisionId, Verdict]:
        """Those of `verdicts` that turn out to differ in comments or layout only, with that reason."""
        found = {}
        for identity, verdict in verdicts.items():
            if verdict.stale_by_itself and verdict.reason is not Reason.DIFFERS and self._layout_only(verdict):
                found[identity] = replace(verdict, reason=Reason.LAYOUT, severity=Severity.INFORMATION)
        return found

    def at_risk(
        self,
        head: str | None,
        verdicts: Mapping[DecisionId, Verdict],
        uncommitted: Difference,
        blob: Callable[[Content], bytes | None] | None = None,
    ) -> dict[DecisionId, tuple[Doubt, ...]]:
        """The ACTIVE decisions that a commit of `uncommitted` (HEAD to the bytes on disk or in buffers) would doubt.

        `blob` reads the uncommitted bytes too; without it the repository's alone are read. Call it after `look`.
        """
        symbols = self._symbols.with_blobs(blob) if blob else self._symbols
        over = Step(
            uncommitted, head, None, 0, symbols, lambda folder: self._history.files(head, folder) if head else ()
        )
        hit = {task.decision for task, _ in self._index.touched(change.path for change in uncommitted)}
        found: dict[DecisionId, tuple[Doubt, ...]] = {}
        for identity in hit:
            verdict, known = verdicts.get(identity), self._known.get(identity)
            if verdict is None or known is None or verdict.status is not Status.ACTIVE:
                continue
            rows = zip(known.tasks, known.outcomes, strict=True)
            doubts = [_new_doubts(task, row.compared.states, over) for task, row in rows if row.stands]
            if doubts and all(doubts):
                found[identity] = doubts[-1]
        return found

    def _take_in(self, memory: Memory) -> set[DecisionId]:
        """Make the tasks those of `memory`; the decisions that are others than before."""
        changed: set[DecisionId] = set()
        for gone in [identity for identity in self._known if identity not in memory.records]:
            del self._known[gone]
            changed.add(gone)
        for identity, record in memory.records.items():
            known = self._known.get(identity)
            if known is not None and known.record is record:
                continue
            old = {task.confirmation: task for task in known.tasks} if known else {}
            tasks = tuple(old.get(c) or self._new_task(identity, c) for c in record.confirmations)
            self._known[identity] = _Known(record, tasks)
            changed.add(identity)
            for task in old.values():
                if task not in tasks:
                    self._last.pop(task, None)
        return changed

    def _new_task(self, decision: DecisionId, confirmation: Confirmation) -> Task:
        task = Task.of(decision, confirmation)
        for at, state in enumerate(task.initial):
            self._index.add(task, at, state.path)
        return task

    def _outcomes(
        self, head: str | None, rewrites: Sequence[tuple[str, str]], judged: Iterable[_Known]
    ) -> dict[Task, Outcome]:
        tasks = [task for known in judged for task in known.tasks]
        ancestry = self._walker.ancestry
        candidates = self._candidates(tasks, rewrites)
        ancestry.want(commit for commits in candidates.values() for commit in commits)
        if head is not None:
            self._walker.learn([head])
        inside: list[Task] = []
        outside: list[Task] = []
        for task in tasks:
            at = head if head is not None else BEFORE
            task.end = next((c for c in reversed(candidates[task]) if ancestry.has(at, c)), None)
            (outside if task.end is None else inside).append(task)
        if head is None:
            states = {task: task.initial for task in inside}
        else:
            states = self._walker.walk(head, inside, self._index) if inside else {}
        result = {task: self._inside(task, row) for task, row in states.items()}
        if outside:
            result.update(self._outside(head, outside, candidates))
        return result

    def _inside(self, task: Task, states: States) -> Outcome:
        """The outcome of a confirmation in HEAD's history; the same object while its states are."""
        last = self._last.get(task)
        if last is None or last.compared.states is not states or last.end != task.end:
            last = self._last[task] = outcome(task.end, Compared(Relation.IN_HISTORY, states))
        return last

    def _outside(
        self, head: str | None, tasks: Sequence[Task], candidates: Mapping[Task, Sequence[str]]
    ) -> dict[Task, Outcome]:
        asked = {commit for task in tasks for commit in candidates[task] if commit != BEFORE}
        present = self._history.present(sorted(asked)) | {BEFORE}
        ends: dict[Task, str] = {}
        held: dict[Task, Mapping[str, Content]] = {}
        for task in tasks:
            end = next((commit for commit in reversed(candidates[task]) if commit in present), None)
            if end is not None:
                ends[task] = end
                contents = self._joined.get((task, end))
                if contents is not None:
                    held[task] = contents
        compared = Comparer(self._walker, head).compare(tasks, ends, held)
        return {task: outcome(None, one) for task, one in compared.items()}

    def _candidates(self, tasks: Sequence[Task], rewrites: Sequence[tuple[str, str]]) -> dict[Task, list[str]]:
        """Per task its commits, the recorded one first, then those that joined it (rule 6)."""
        result = {task: [task.commit] for task in tasks}
        following: dict[str, list[str]] = {}
        for old, new in rewrites:
            following.setdefault(old, []).append(new)
        rewritten = [task for task in tasks if task.commit in following]
        if rewritten:
            self._learn_joins(rewritten, following)
        for task in rewritten:
            commits, n_before = result[task], 0
            while n_before != len(commits):
                n_before = len(commits)
                for old, new in rewrites:
                    if old in commits and new not in commits and self._joined.get((task, new)) is not None:
                        commits.append(new)
        return result

    def _learn_joins(self, tasks: Sequence[Task], following: Mapping[str, Sequence[str]]) -> None:
        """Find out which rewritten commits join which tasks, with two questions to git for each commit at most."""
        asked: dict[str, list[Task]] = {}
        for task in tasks:
            reached = {task.commit}
            waiting = [task.commit]
            while waiting:
                for new in following.get(waiting.pop(), ()):
                    if new not in reached:
                        reached.add(new)
                        waiting.append(new)
                        if (task, new) not in self._joined:
                            asked.setdefault(new, []).append(task)
        # One that is not here is asked for again: it may be fetched.
        for commit in sorted(self._history.present(sorted(asked))):
            names = {name for task in asked[commit] for name in task.recorded_names()}
            contents = self._history.contents(commit, names)
            for task in asked[commit]:
                self._joined[task, commit] = contents if _joins(task, contents) else None

    def _verdict(self, known: _Known, outcomes: Mapping[Task, Outcome]) -> Verdict:
        rows = tuple(outcomes[task] for task in known.tasks)
        if known.verdict is not None and len(rows) == len(known.outcomes):
            same = all(unchanged(new, old) for new, old in zip(rows, known.outcomes, strict=True))
            if same:
                return known.verdict
        known.outcomes = rows
        known.verdict = self._decided(known)
        return known.verdict

    def _decided(self, known: _Known) -> Verdict:
        rows = known.outcomes
        record = known.record
        standing = [at for at, row in enumerate(rows) if row.stands]
        if not standing and self._revival:
            standing = [at for at, row in enumerate(rows) if row.stands is False and reverted(row.compared.states)]
        chosen = standing[-1] if standing else speaking(rows)
        task, row = known.tasks[chosen], rows[chosen]
        held = self._joined.get((task, row.end)) if row.end is not None else None
        verdict = described(record.id, task, chosen, row.compared, held)
        if record.standing is Standing.INVALIDATED:
            return replace(verdict, status=Status.INVALIDATED)
        if standing:
            return verdict
        unknown = next((row for row in rows if row.stands is None), None)
        if unknown is not None:
            return replace(verdict, status=Status.UNKNOWN, reason=Reason.GIT, cause=cause_of(unknown.compared))
        return stale(verdict, rows[chosen].compared)

    def _layout_only(self, verdict: Verdict) -> bool:
        doubted = [view for view in verdict.anchors if view.doubted]
        away = [away for view in doubted for away in view.away]
        if not away or any(view.recorded.kind not in _WHOLE_FILES for view in doubted):
            return False
        return all(self._same_file(one) for one in away)

    def _same_file(self, away: Away) -> bool:
        if away.seen is None or away.now is None or ":" in away.seen or ":" in away.now:
            return False
        key = (away.path, away.seen, away.now)
        if key not in self._same_files:
            seen, now = self._history.blob(away.seen), self._history.blob(away.now)
            if seen is None or now is None:
                return False
            self._same_files[key] = self._code.same_file(away.path, seen, now)
        return self._same_files[key]


def unknown_verdicts(memory: Memory, cause: str) -> dict[DecisionId, Verdict]:
    """The verdicts where not even HEAD can be read: unknown, but for what people invalidated and what follows."""
    own = {identity: unknown_everywhere(record, cause) for identity, record in memory.records.items()}
    return with_dependencies(memory.records, own)


def judge_saved(
    record: DecisionRecord, contents: Mapping[str, Content | None], saves: Iterable[tuple[str, Content | None]] = ()
) -> Status:
    """Rule 9: the status of a decision where there is no git.

    `contents` are the bytes on disk at the recorded names, `saves` those (path, content) that were saved since the
    confirmation was given and are remembered; a content token is any hash of the bytes. Files are compared by bytes.
    """
    if record.standing is Standing.INVALIDATED:
        return Status.INVALIDATED
    history = list(saves)
    for confirmation in record.confirmations:
        seen = {one.path: one.fp for sighting in confirmation.seen for one in sighting.files}
        now = all(contents.get(path) == fp for path, fp in seen.items())
        if now and all(content == seen[path] for path, content in history if path in seen):
            return Status.ACTIVE
    return Status.STALE


def _joins(task: Task, contents: Mapping[str, Content]) -> bool:
    """Whether a commit with `contents` holds fp or base at every recorded name."""
    files = (seen for sighting in task.confirmation.seen for seen in sighting.files)
    return all(contents.get(seen.path) in (seen.fp, seen.base) for seen in files)


def _new_doubts(task: Task, states: States, over: Step) -> tuple[Doubt, ...]:
    """The doubts that `over` would add to a confirmation."""
    added: list[Doubt] = []
    for sighting, state in zip(task.confirmation.seen, states, strict=True):
        after = step(replace(state, doubts=()), sighting, over)
        added.extend(after.doubts)
    return tuple(added)
