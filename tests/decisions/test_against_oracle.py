"""The verdicts of nm_lsp against the oracle, over generated histories, and the mistakes that this must notice.

Each history is looked at after every commit, after every seventh and only at the end, by three judges, at HEAD and at
the head of another work tree, with and without `post-rewrite` lists; some again after a garbage collection or in a
shallow clone.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nm_lsp.decisions import comparing, fold, staleness, steps, symbols, verdicts, walking
from nm_lsp.decisions.ancestry import BEFORE, Ancestry
from nm_lsp.decisions.changes import Change
from nm_lsp.decisions.staleness import Judge
from tests.decisions.holding import Code, Disagreement, Run
from tests.decisions.real_history import real_run

N_DEFAULT = 100
N_ALL = 1200
N_PER_MUTANT = 60

Monkey = pytest.MonkeyPatch


def run(seeds: Sequence[int], folder: Path, **how: Any) -> tuple[list[Disagreement], Counter[Any]]:
    found: list[Disagreement] = []
    seen: Counter[Any] = Counter()
    for seed in seeds:
        root = folder / str(seed)
        history = Run.generated(seed, root, **how)
        found += history.go()
        seen.update(history.statuses)
        seen.update(history.oracle.seen)
        shutil.rmtree(root)
    return found, seen


@pytest.mark.parametrize("part", range(4))
def test_no_false_and_no_missed_stale(tmp_path: Path, part: int) -> None:
    found, _ = run(range(part, N_DEFAULT, 4), tmp_path, n_steps=14)
    assert found == []


def test_no_false_and_no_missed_stale_with_git_itself(tmp_path: Path) -> None:
    found, _ = run(range(5000, 5008), tmp_path, n_steps=12, real_git=True)
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(24))
def test_no_false_and_no_missed_stale_at_length(tmp_path: Path, part: int) -> None:
    found, _ = run(range(10_000 + part, 10_000 + N_ALL, 24), tmp_path, n_steps=24, real_git=part % 6 == 0)
    assert found == []


@pytest.mark.slow
def test_a_long_history_looked_at_often_seldom_and_once(tmp_path: Path) -> None:
    plan = {"n_steps": 1900, "n_decisions": 20, "calm": 0.03, "alone": True}
    history = Run.generated(77, tmp_path / "long", real_git=True, check_every=350, **plan)
    assert len(history.plan.commits) > 2000
    assert history.go() == []
    assert len(history.decisions) > 15


def own_history() -> tuple[Path, str]:
    """This project's repository and its newest commit."""
    root = Path(__file__).parents[2]
    found = subprocess.run(["git", "rev-parse", "--is-shallow-repository", "HEAD"], cwd=root, capture_output=True)
    answers = found.stdout.decode().split()
    if found.returncode != 0 or answers[0] == "true" or not (root / ".git").is_dir():
        pytest.skip("this is no whole clone of the project")
    return root, answers[1]


def test_the_history_of_this_project() -> None:
    root, tip = own_history()
    history = real_run(root, tip, seed=1, n_decisions=8, calm=0.2, check_every=35)
    assert history.go() == []
    assert {"stale", "active"} <= {status for status, _, _ in history.statuses}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_history_of_this_project_at_length(seed: int) -> None:
    root, tip = own_history()
    assert real_run(root, tip, seed=seed, n_decisions=40, calm=0.3, check_every=7).go() == []


def test_the_histories_hold_what_the_rules_speak_of(tmp_path: Path) -> None:
    _, seen = run(range(20_000, 20_040), tmp_path, n_steps=16)
    wanted = {
        "walked through a second parent", "compared trees", "commit gone", "reason on another branch",
        "joined a commit", "renamed", "symbol found in an added file", "folder moved", "landed", "reverted",
        "before the first commit", "moved inside", "joined a folder", "link", "several confirmations",
    }  # fmt: skip
    assert wanted - seen.keys() == set()
    for reason in ("changed", "removed", "moved-out", "landed-other", "differs-on-branch", "dependency"):
        assert any(key[:2] == ("stale", reason) for key in seen if isinstance(key, tuple)), reason


# The seeded mistakes. Each patches one thing and must be noticed.


def _endpoints(patch: Monkey) -> None:
    """Compare A with HEAD instead of walking."""

    def walk(self: Any, head: str, tasks: Any, index: Any) -> Any:
        result = {}
        for task in tasks:
            states = task.initial
            if task.end not in (head, BEFORE):
                difference = self.history.differences([(task.end, head)])[0]
                over = self.step_over(task.end, head, difference)
                states = tuple(steps.step(s, g, over) for s, g in zip(states, task.confirmation.seen, strict=True))
            result[task] = states
        return result

    patch.setattr(walking.Walker, "walk", walk)


def _head_only(patch: Monkey) -> None:
    """Look at the newest commit alone."""
    routes = Ancestry.routes

    def newest(self: Ancestry, head: str, bits: int, known: Any) -> Any:
        full = routes(self, head, bits, lambda *_: 0)
        return replace(full, edges=[edge for edge in full.edges if edge.newer == head])

    patch.setattr(Ancestry, "routes", newest)


def _since_the_last_scan(patch: Monkey) -> None:
    """Take a decision for fresh at the first look, so that what came before it is never seen."""

    def kept(self: Any, commit: str, bits: int, bit_of: Any) -> int:
        self._heads.setdefault(commit, {})
        for task, bit in bit_of.items():
            if bit & bits:
                self._heads[commit].setdefault(task, (task.end, task.initial))
        return bits

    patch.setattr(walking.Walker, "_kept", kept)


def _raw_bytes(patch: Monkey) -> None:
    """Compare a symbol's file by its bytes."""
    patch.setattr(symbols.SymbolReader, "holds", lambda _s, sighting, _p, content: content == sighting.files[0].fp)


def _leaf_tokens(patch: Monkey) -> None:
    """Compare the words of two texts, without nesting."""

    def same(self: Code, path: str, seen: bytes, now: bytes) -> bool:
        words = [[w for line in text.splitlines() for w in line.split(b"#")[0].split()] for text in (seen, now)]
        return words[0] == words[1]

    patch.setattr(Code, "same_symbol", same)


def _stored_status(patch: Monkey) -> None:
    """Once STALE, STALE at every head until somebody acts."""
    verdict = Judge._verdict

    def stored(self: Any, known: Any, outcomes: Any) -> Any:
        before = known.verdict
        now = verdict(self, known, outcomes)
        if before is not None and before.status is verdicts.Status.STALE:
            known.verdict = before
            return before
        return now

    patch.setattr(Judge, "_verdict", stored)


def _re_anchoring(patch: Monkey) -> None:
    """Judge from the head of the last look instead of the commit of the confirmation."""
    outcomes = Judge._outcomes

    def moved(self: Any, head: Any, *rest: Any) -> Any:
        result = outcomes(self, head, *rest)
        for task, row in result.items():
            if row.stands and head is not None:
                task.confirmation = replace(task.confirmation, commit=head)
        return result

    patch.setattr(Judge, "_outcomes", moved)


def _second_parent_ignored(patch: Monkey) -> None:
    def first_parents(self: Ancestry, commit: str) -> int:
        return self._history[self._parents[commit][0]] | self._bit.get(commit, 0)

    patch.setattr(Ancestry, "_bits_of", first_parents)


def _rename_ignored(patch: Monkey) -> None:
    patch.setattr(steps, "pair_renames", lambda _: {})


def _replaced_by_restore(patch: Monkey) -> None:
    """A restore takes the place of the confirmations before it."""
    confirmed = fold._confirmed
    patch.setattr(fold, "_confirmed", lambda after, event: confirmed(replace(after, confirmations=()), event))


def _first_parent_always(patch: Monkey) -> None:
    """Compare every merge with its first parent, wherever the confirmation came in."""
    routes = Ancestry.routes

    def first(self: Ancestry, head: str, bits: int, known: Any) -> Any:
        full = routes(self, head, bits, known)
        return replace(full, edges=[replace(edge, older=self._parents[edge.newer][0]) for edge in full.edges])

    patch.setattr(Ancestry, "routes", first)


def _landing_doubts(patch: Monkey) -> None:
    """The commit that lands the bytes seen counts as a change."""
    held = steps._file_held

    def blind(state: Any, sighting: Any, over: Any, change: Any) -> Any:
        other = replace(sighting, files=(replace(sighting.files[0], fp=sighting.files[0].base),))
        return held(state, other, over, change)

    patch.setattr(steps, "_file_held", blind)


def _bytes_decide(patch: Monkey) -> None:
    """A return to the bytes seen clears STALE."""
    init = Judge.__init__
    patch.setattr(Judge, "__init__", lambda self, history, code: init(self, history, code, revival=True))


def _links_are_files(patch: Monkey) -> None:
    """A file that becomes a link to the same bytes is no change."""

    def plain(content: str | None) -> str | None:
        return content.removeprefix("link:") if content else None

    init = steps.Step.__init__

    def blind(self: Any, difference: Any, *rest: Any) -> None:
        kept = [Change(c.path, plain(c.old), plain(c.new)) for c in difference if plain(c.old) != plain(c.new)]
        init(self, kept, *rest)

    patch.setattr(steps.Step, "__init__", blind)


def _joiners_doubt(patch: Monkey) -> None:
    """A file that joins a folder counts as a change of it."""
    added = steps._FolderStep._added

    def doubting(self: Any, change: Any) -> None:
        added(self, change)
        self._doubt(change.path, steps.DoubtKind.CHANGED, True)

    patch.setattr(steps._FolderStep, "_added", doubting)


def _folder_stays(patch: Monkey) -> None:
    patch.setattr(steps._FolderStep, "_moved_to", lambda *_: None)


def _rewrites_join_blindly(patch: Monkey) -> None:
    """A rewritten commit takes over whatever it holds."""
    patch.setattr(staleness, "_joins", lambda *_: True)


def _rewrites_ignored(patch: Monkey) -> None:
    patch.setattr(staleness, "_joins", lambda *_: False)


def _one_hop_dependencies(patch: Monkey) -> None:
    """Only what a decision names itself counts, not the chain."""

    def reached(sources: Any, dependants: Any) -> Any:
        return {dependant: source for source in sorted(sources) for dependant in dependants.get(source, ())}

    patch.setattr(verdicts, "_reached", reached)


def _elsewhere_is_stale(patch: Monkey) -> None:
    """A confirmation that is not in HEAD's history never stands."""
    compare = comparing.Comparer.compare

    def never(self: Any, *rest: Any) -> Any:
        doubt = steps.Doubt(None, "", steps.DoubtKind.CHANGED, from_seen=False)
        return {
            task: replace(one, states=tuple(replace(state, doubts=(doubt,)) for state in one.states))
            for task, one in compare(self, *rest).items()
        }

    patch.setattr(comparing.Comparer, "compare", never)


MUTANTS: list[Callable[[Monkey], None]] = [
    _endpoints, _head_only, _since_the_last_scan, _raw_bytes, _leaf_tokens, _stored_status, _re_anchoring,
    _second_parent_ignored, _rename_ignored, _replaced_by_restore, _first_parent_always, _landing_doubts, _bytes_decide,
    _links_are_files, _joiners_doubt, _folder_stays, _rewrites_join_blindly, _rewrites_ignored, _one_hop_dependencies,
    _elsewhere_is_stale,
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__.strip("_"))
def test_a_seeded_mistake_is_noticed(mutant: Callable[[Monkey], None], tmp_path: Path, monkeypatch: Monkey) -> None:
    mutant(monkeypatch)
    assert any(_disagreements(tmp_path)), f"{mutant.__name__} passes {N_PER_MUTANT} histories"


def _disagreements(folder: Path) -> Iterator[bool]:
    for seed in range(N_PER_MUTANT):
        found, _ = run([seed], folder, n_steps=14)
        yield bool(found)
