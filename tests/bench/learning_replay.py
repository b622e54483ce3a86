"""Does learning help? Replays histories as a person's edits and asks which files change together.

    python tests/bench/learning_replay.py --repository PATH ... [--server]
    python tests/bench/learning_replay.py --project NAME=PATH ... [--questions FILE] [--commits 200]

`--repository` replays the real history of a git repository (`real_histories.py` unpacks four), `--project` a generated
one over real sources (see `learning_histories`). The first 70 % of the commits are learned from: each file is opened,
changed and saved 20 to 90 s after the one before, by the calls an editor causes, on an injected clock; a commit ends
the work; half an hour to half a day passes. A commit of more than 20 files is no editing: its files are just there, as
after a checkout. Of each later commit, up to 20 files, every file is given in turn: is another of its files among the
first 5, 10?

Printed beside three baselines (files of the same folder, the import graph, counting of common commits, of all sizes):
the learner with only the edits, only the commits, and both. With `--server` the edits and commits also go through the
real server, message by message. With `--questions` (project → [[question, ids, more ids]]) search is asked, after
learning, without and with what was learned: the rank of the right symbol, and the number of hits.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine_memory"))

from editing import CALLER, GO, Editing
from learning_histories import MAX_FILES, Change, History, generated, of_repository, questions, split
from learning_server import LspError, ServerEditing
from retrieval_corpus import build, own_texts, parse_all, read_folder

from nm_lsp.engine.memory.linking import FREQUENT
from nm_lsp.engine.memory.recall import MORE_LOOKED_AT
from nm_lsp.engine.memory_requests import NeighborsParams
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.ranking import search
from nm_lsp.search.segment import FileStamp, IndexedFile, Segment, SegmentBuilder
from nm_lsp.search.tokens import terms_of
from nm_lsp.synapses.rules import STRUCTURAL

Rank = Callable[[str, Change], list[str]]
KS = (5, 10)


class Replay(Editing):
    """Keeps one segment a file, so that indexing after each commit costs the files it changed."""

    def reindex(self) -> Corpus:
        segments: dict[str, tuple[str, Segment]] = self.__dict__.setdefault("segments", {})
        texts = {path: text for path, text in read_folder(self.root).items() if not path.startswith(".neuralmind")}
        for path in segments.keys() - texts.keys():
            del segments[path]
        for path, text in texts.items():
            if path not in segments or segments[path][0] != text:
                segments[path] = (text, _segment(path, text))
        self.corpus = Corpus([(segment, frozenset()) for _, (_, segment) in sorted(segments.items())])
        return self.corpus


def _segment(path: str, text: str) -> Segment:
    builder = SegmentBuilder()
    for parsed in parse_all({path: text}):
        terms = [terms_of(node, own, path) for node, own in zip(parsed.nodes, own_texts(parsed, text), strict=True)]
        stamp = FileStamp(bytes(16), len(text), 0)
        builder.add(IndexedFile(parsed, stamp, text.isascii(), terms, [bytes(32)] * len(parsed.nodes)))
    return builder.build()


def replay(work: Replay | ServerEditing, train: Sequence[Change], *, edits: bool, commits: bool, seed: int = 1) -> None:
    """A person makes these changes."""
    chance = random.Random(seed)
    for n, change in enumerate(train):
        is_bulk = len(change.files) > MAX_FILES
        for path, text in change.files.items():
            target = work.root / path
            if text is None:
                target.unlink(missing_ok=True)
                work.screen.pop(path, None)
            elif edits and not is_bulk:
                if not target.exists():
                    work.write({path: ""})
                work.open(path)
                work.change(path, text)
                work.save(path)
                work.reindex()
                work.pass_time(chance.uniform(20, 90), step=2.5)
            else:
                work.write({path: text})
        work.reindex()
        work.git("add", "-A")
        author = () if commits else ("--author", "Bob <bob@example.org>")
        work.git("commit", "-q", "--allow-empty", "-m", f"change {n}", *author)
        work.tick()
        work.tick()
        work.close_documents()
        work.now += chance.uniform(1_800, 43_200)
        work.tick()


def neighbors(work: Replay, *, learned_only: bool = False) -> Rank:
    """Files as `neighbors` lists them for the given file."""

    @functools.cache
    def listed(path: str) -> list[str]:
        rows = work.desk.neighbors(NeighborsParams(symbol=path, limit=100), GO, CALLER).neighbors
        return [row.id for row in rows if not learned_only or row.source not in {STRUCTURAL, FREQUENT}]

    return lambda path, _change: listed(path)


def measure_server(history: History) -> None:
    """Edits and commits, through the real server; the baselines are those of `measure`."""
    train, test = split(history)
    with tempfile.TemporaryDirectory() as folder:
        work = ServerEditing(Path(folder).resolve() / "r", history.start)
        replay(work, train, edits=True, commits=True)

        @functools.cache
        def listed(path: str) -> list[str] | None:
            try:
                return [row["id"] for row in work.ask("neighbors", {"symbol": path, "limit": 10})["neighbors"]]
            except LspError:
                return None

        known = frozenset(path for change in test for path in change.files if listed(path) is not None)
        posed = list(questions(test, known))
        show("neighbors, real server", recall_at(lambda path, _change: listed(path) or [], posed))
        work.close()


def by_folder(known: frozenset[str], train: Sequence[Change]) -> Rank:
    """Files of the same folder, those that change most often first."""
    often = Counter(path for change in train for path in change.files)

    def rank(path: str, _: Change) -> list[str]:
        folder = path.rpartition("/")[0]
        beside = [other for other in known if other != path and other.rpartition("/")[0] == folder]
        return sorted(beside, key=lambda other: (-often[other], other))

    return rank


def by_imports(corpus: Corpus, train: Sequence[Change]) -> Rank:
    """Files that import the given one or are imported by it, then those two steps away; often changed ones first."""
    often = Counter(path for change in train for path in change.files)
    beside: dict[str, set[str]] = {path: set() for path in corpus.file_numbers}
    for path, file in corpus.file_numbers.items():
        for other in map(corpus.file_path, corpus.resolver.imported_files(file)):
            beside[path].add(other)
            beside[other].add(path)

    def rank(path: str, _: Change) -> list[str]:
        near = beside.get(path, set()) - {path}
        far = {other for step in near for other in beside[step]} - near - {path}
        return [
            *sorted(near, key=lambda other: (-often[other], other)),
            *sorted(far, key=lambda other: (-often[other], other)),
        ]

    return rank


def by_count(train: Sequence[Change]) -> Rank:
    """Files by the number of commits that both were in; ties by the number of commits."""
    together: Counter[tuple[str, str]] = Counter()
    often: Counter[str] = Counter()
    for change in train:
        often.update(list(change.files))
        together.update((a, b) for a in change.files for b in change.files if a != b)

    def rank(path: str, _: Change) -> list[str]:
        found = {b: n for (a, b), n in together.items() if a == path}
        return sorted(found, key=lambda other: (-found[other], -often[other], other))

    return rank


def recall_at(rank: Rank, asked: Sequence[tuple[str, Change, frozenset[str]]]) -> tuple[float, ...]:
    """Per k the share of questions with another file of the commit among the first k."""
    hits = Counter[int]()
    for path, change, others in asked:
        ranked = rank(path, change)
        hits.update(k for k in KS if others.intersection(ranked[:k]))
    return tuple(hits[k] / len(asked) if asked else 0.0 for k in KS)


@dataclass(frozen=True)
class Answered:
    """Search over one set of questions: mean reciprocal rank, right symbols among the first 5, hits in all, and how
    many questions had a hit that a synapse lifted or brought."""

    mrr: float
    in_five: float
    n_hits: int
    n_recalled: int


def answered(work: Replay, asked: Sequence[tuple[str, list[str]]], *, recalls: bool) -> Answered:
    recall = work.desk.recall() if recalls else None
    total, in_five, n_hits, n_recalled = 0.0, 0, 0, 0
    for question, right in asked:
        extra = MORE_LOOKED_AT if recall is not None and not recall.is_empty else 0
        found = search(work.corpus, question, limit=10 + extra).candidates
        hits = recall.rerank(work.corpus, found, 10, None) if recall is not None else found[:10]
        ids = [candidate.node.id for candidate in hits]
        rank = next((at for at, node in enumerate(ids, 1) if node in right), None)
        total += 1 / rank if rank is not None else 0
        in_five += rank is not None and rank <= 5
        n_hits += len(ids)
        n_recalled += any(candidate.synapse_boost > 0 for candidate in hits)
    return Answered(total / len(asked), in_five / len(asked), n_hits, n_recalled)


def show(label: str, values: tuple[float, ...]) -> None:
    print(f"  {label:24}" + "  ".join(f"@{k} {value:.3f}" for k, value in zip(KS, values, strict=True)), flush=True)


def measure(history: History, asked: Sequence[tuple[str, list[str]]]) -> None:
    train, test = split(history)
    answers: dict[str, tuple[Answered, Answered]] = {}
    for name, edits, commits in (("edits", True, False), ("commits", False, True), ("both", True, True)):
        with tempfile.TemporaryDirectory() as folder:
            work = Replay(Path(folder) / "r", history.start)
            replay(work, train, edits=edits, commits=commits)
            known = frozenset(work.corpus.file_numbers)
            posed = list(questions(test, known))
            if name == "edits":
                print(f"\n{history.name}: {len(train)} commits learned, {len(posed)} questions of {len(test)} commits")
                show("same folder", recall_at(by_folder(known, train), posed))
                show("import graph", recall_at(by_imports(work.corpus, train), posed))
                show("co-change counts", recall_at(by_count(train), posed))
            show(f"neighbors, {name}", recall_at(neighbors(work), posed))
            show("  learned ones alone", recall_at(neighbors(work, learned_only=True), posed))
            if asked:
                # Both over the texts as they are now: the edits of the history change what search finds, too.
                answers[name] = answered(work, asked, recalls=False), answered(work, asked, recalls=True)
            work.close()
    for name, (without, recalled) in answers.items():
        print(f"  search without recall    mrr {without.mrr:.3f}  @5 {without.in_five:.3f}  hits {without.n_hits}")
        fired = f"hits {recalled.n_hits}  recall in {recalled.n_recalled} of {len(asked)} answers"
        print(f"  search after {name:11} mrr {recalled.mrr:.3f}  @5 {recalled.in_five:.3f}  {fired}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, action="append", default=[])
    parser.add_argument("--project", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--server", action="store_true", help="Real histories also through the real server; slow.")
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    asked = json.loads(given.questions.read_text("utf-8")) if given.questions else {}
    for folder in given.repository:
        history = of_repository(folder, folder.resolve().name)
        measure(history, ())
        if given.server:
            measure_server(history)
    for project in given.project:
        name, _, path = project.partition("=")
        texts = {path: text for path, text in read_folder(Path(path)).items() if path.endswith((".py", ".md", ".rst"))}
        history = generated(f"{name} (generated)", texts, build(texts).corpus, n_commits=given.commits, seed=given.seed)
        rows = asked.get(name, {}).get("queries", [])
        measure(history, [(row[0], [*row[1], *row[2]]) for row in rows])


if __name__ == "__main__":
    main()
