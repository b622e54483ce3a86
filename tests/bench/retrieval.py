"""Retrieval quality of the ranking, without a server: `python tests/bench/retrieval.py --help`.

Sets: the shared open questions over the sources alone and over whole source distributions, our own open questions over
rich and Django, needle questions over any folders, and off-topic questions. Prints one table in Markdown. Run from the
top of the repository; with `--weights` both legs are measured, without it the keyword leg alone. The same questions
through the real server are measured by the shared benchmark.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from retrieval_baselines import Found, Search, keyword_grep, windows_bm25
from retrieval_corpus import Built, VectorLeg, cached_build, open_embedder, read_folder, vector_leg
from retrieval_needles import make_needles

from nm_lsp.search.ranking import search
from nm_lsp.search.snippet import snippet
from nm_lsp.search.token_count import TokenCount, counted_tokens, estimated_tokens
from nm_lsp.search.wordlists import word_set

FIXTURES = Path(__file__).parents[2] / "fixtures"
FIELDS = ("ndcg10", "by file", "mrr", "span mrr", "nothing", "tokens", "p50 ms")
CODE = word_set("py pyi js mjs cjs jsx ts tsx go rs java c h cc cpp hpp cs rb php sh md rst")


@dataclass(frozen=True)
class Gold:
    path: str
    start: int
    end: int
    primary: bool = True


@dataclass(frozen=True)
class Question:
    text: str
    gold: tuple[Gold, ...]


@dataclass(frozen=True)
class Answer:
    found: tuple[Found, ...]
    tokens: int
    seconds: float


class Ours:
    """The ranking over one corpus, with the text of its hits."""

    def __init__(self, built: Built, leg: VectorLeg | None, count: TokenCount) -> None:
        self._built, self._leg, self._count = built, leg, count

    def ask(self, question: str) -> Answer:
        started = time.perf_counter()
        result = search(self._built.corpus, question, limit=10, vector_leg=self._leg)
        seconds = time.perf_counter() - started
        found, tokens = [], 0
        for candidate in result.candidates:
            node = candidate.node
            data = self._built.texts[node.path].encode("utf-8", "replace")
            body = data[node.span.start_byte : node.span.end_byte].decode("utf-8", "replace")
            tokens += self._count(snippet(node, body, result.question, self._count))
            found.append(Found(node.path, node.span.start_line + 1, node.span.end_line + 1))
        return Answer(tuple(found), tokens, seconds)


class Baseline:
    def __init__(self, find: Search) -> None:
        self._find = find

    def ask(self, question: str) -> Answer:
        started = time.perf_counter()
        found = tuple(self._find(question, 10))
        return Answer(found, 0, time.perf_counter() - started)


def discounted(ranks: set[int], n_gold: int) -> float:
    """NDCG@10 with binary gain: each target counts at the first hit that overlaps it."""
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, n_gold) + 1))
    return sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10) / ideal


def measure(system: Ours | Baseline, questions: list[Question]) -> dict[str, float]:
    rows: dict[str, list[float]] = {field: [] for field in FIELDS}
    for question in questions:
        answer = system.ask(question.text)
        files = list(dict.fromkeys(found.path for found in answer.found))
        spans, by_file = set(), set()
        for gold in question.gold:
            overlapping = [rank for rank, found in enumerate(answer.found, 1) if _overlaps(found, gold)]
            spans.update(overlapping[:1])
            by_file.update([files.index(gold.path) + 1] if gold.path in files else [])
        primary = {gold.path for gold in question.gold if gold.primary}
        first = [r for r, f in enumerate(answer.found, 1) if any(g.primary and _overlaps(f, g) for g in question.gold)]
        rows["ndcg10"].append(discounted(spans, len(question.gold)))
        rows["by file"].append(discounted(by_file, len({gold.path for gold in question.gold})))
        rows["mrr"].append(next((1 / rank for rank, file in enumerate(files, 1) if file in primary), 0.0))
        rows["span mrr"].append(1 / first[0] if first else 0.0)
        rows["nothing"].append(float(not answer.found))
        rows["tokens"].append(answer.tokens)
        rows["p50 ms"].append(answer.seconds * 1000)
    means = {field: statistics.mean(values) for field, values in rows.items()}
    means["p50 ms"] = statistics.median(rows["p50 ms"])
    return means


def _overlaps(found: Found, gold: Gold) -> bool:
    return found.path == gold.path and found.end >= gold.start and found.start <= gold.end


def open_sets(file: Path, sources: Path) -> Iterator[tuple[str, Path, str, list[Question]]]:
    """(name, folder of the distribution, root of the sources in it, questions), gold relative to the root."""
    for name, spec in json.loads(file.read_text()).items():
        if name == "about" or not (sources / spec["sdist"]).is_dir():
            continue
        root = sources / spec["sdist"] / spec["root"]
        questions = []
        for text, primary, secondary in spec["queries"]:
            golds = [_gold(root, g, True) for g in primary] + [_gold(root, g, False) for g in secondary]
            questions.append(Question(text, tuple(golds)))
        yield name, sources / spec["sdist"], spec["root"], questions


def _gold(root: Path, written: str, primary: bool) -> Gold:
    path, _, dotted = written.partition("::")
    body: list[ast.stmt] = ast.parse((root / path).read_text(encoding="utf-8")).body
    node: ast.stmt | None = None
    for name in dotted.split("."):
        node = [n for n in body if getattr(n, "name", None) == name][-1]
        body = getattr(node, "body", [])
    assert node is not None
    decorators = [d.lineno for d in getattr(node, "decorator_list", [])]
    return Gold(path, min([node.lineno, *decorators]), node.end_lineno or node.lineno, primary)


def below(questions: list[Question], root: str) -> list[Question]:
    """The same questions where the gold lies below `root`."""

    def moved(gold: Gold) -> Gold:
        return Gold(f"{root}/{gold.path}", gold.start, gold.end, gold.primary)

    return [Question(question.text, tuple(map(moved, question.gold))) for question in questions]


def code_only(texts: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in texts.items() if path.rpartition(".")[2] in CODE}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="folder with unpacked source distributions")
    parser.add_argument("--questions", type=Path, help="the shared questions.json")
    parser.add_argument("--needles", type=Path, nargs="*", default=[], help="folders to make needle questions from")
    parser.add_argument("--count", type=int, default=80, help="needles a folder")
    parser.add_argument("--weights", type=Path, help="folder with model.safetensors and tokenizer.json")
    parser.add_argument("--cache", type=Path, help="folder that keeps segments and vectors between runs")
    options = parser.parse_args()
    embed, count = (None, estimated_tokens)
    if options.weights:
        embed, pieces = open_embedder(options.weights)
        count = counted_tokens(pieces)

    def ours(texts: Mapping[str, str]) -> Ours:
        built = cached_build(texts, options.cache)
        return Ours(built, vector_leg(built, embed, options.cache) if embed else None, count)

    off_topic = [Question(q, ()) for q in json.loads((FIXTURES / "offtopic_questions.json").read_text())["questions"]]
    print("| set | system |", " | ".join(FIELDS), "|")
    print("| --- | --- |", " | ".join("---:" for _ in FIELDS), "|")
    files = [file for file in (options.questions, FIXTURES / "open_questions.json") if file and options.sources]
    for file in files:
        for name, sdist, root, questions in open_sets(file, options.sources):
            _row(f"{name}, sources", "ours", measure(ours(read_folder(sdist / root)), questions))
            whole = ours(read_folder(sdist))
            _row(f"{name}, whole", "ours", measure(whole, below(questions, root)))
            n_silent = sum(not whole.ask(question.text).found for question in off_topic)
            print(f"| {name}, off-topic | ours | answered with nothing: {n_silent} of {len(off_topic)} |")
    for folder in options.needles:
        needles, blanked = make_needles(read_folder(folder), options.count)
        questions = [Question(n.question, (Gold(n.path, n.start, n.end),)) for n in needles]
        if not questions:
            continue
        label = f"{folder.name}, {len(questions)} needles"
        _row(label, "ours", measure(ours(blanked), questions))
        _row(label, "keyword grep", measure(Baseline(keyword_grep(code_only(blanked))), questions))
        _row(label, "rank_bm25, 50 lines", measure(Baseline(windows_bm25(code_only(blanked))), questions))


def _row(name: str, system: str, means: dict[str, float]) -> None:
    cells = (f"{means[field]:.0f}" if field == "tokens" else f"{means[field]:.3f}" for field in FIELDS)
    print(f"| {name} | {system} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
