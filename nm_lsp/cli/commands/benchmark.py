"""`nm-lsp benchmark`: how fast this folder is answered, and how much reading an answer saves.

The questions are the first sentences of documented symbols, spread evenly over the folder. They measure speed and size;
they do not measure how good the ranking is, since each one repeats what it looks for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from nm_lsp.cli.exits import Exit
from nm_lsp.cli.memory_output import TOO_SMALL
from nm_lsp.cli.options import Folder, Json, Verbose, command_app
from nm_lsp.cli.output import Output
from nm_lsp.cli.session import Session, session
from nm_lsp.engine.requests import GraphExportParams, Nothing, QueryParams

app = command_app()

FORMULA = (
    "saving = 1 − tokens of the answers / tokens of the whole files that their hits lie in; answers cost "
    "max(word pieces, characters / 4), files characters / 4, which makes the saving smaller than it is"
)
CHARACTERS_PER_TOKEN = 4
MIN_WORDS, MAX_WORDS = 4, 24
ASKED_KINDS = frozenset({"function", "method", "class"})


@dataclass(frozen=True, slots=True)
class Report:
    """Seconds, milliseconds and tokens; `vectors_s` is None where vectors were not waited for."""

    files: int
    symbols: int
    reopened: bool
    ready_s: float
    vectors_s: float | None
    questions: int
    query_p50_ms: float
    query_p95_ms: float
    answer_tokens: int
    hit_files_tokens: int
    folder_tokens: int

    @property
    def saving(self) -> float:
        return 1 - self.answer_tokens / self.hit_files_tokens if self.hit_files_tokens else 0.0


@app.command()
def benchmark(
    n_questions: Annotated[int, typer.Option("--questions", min=1, max=1_000, help="How many questions to ask.")] = 20,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Wait for all vectors first.")] = True,
    folder: Folder = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure speed and token savings on this folder."""
    output = Output(as_json=as_json, verbose=verbose)
    started = time.perf_counter()
    # Its questions are nobody's: they are not counted among the savings, and what was learned does not answer them.
    with session(folder, output, ready=False, learning=False) as opened:
        reopened = opened.host.status(Nothing(), opened.cancel).files > 0
        opened.wait(vectors=False)
        ready_s = time.perf_counter() - started
        if vectors:
            opened.wait(vectors=True)
        vectors_s = time.perf_counter() - started if vectors else None
        graph = opened.host.graph_export(GraphExportParams(), opened.cancel).graph or {}
        nodes = graph.get("nodes")
        documented = nodes if isinstance(nodes, list) else []
        questions = make_questions(documented, n_questions)
        if not questions:
            output.note("there is no documented function, method or class to ask about")
            raise typer.Exit(Exit.NOTHING)
        paths = {str(node.get("path")) for node in documented}
        report = _measure(opened, questions, paths, reopened=reopened, ready_s=ready_s, vectors_s=vectors_s)
    if as_json:
        output.document({**asdict(report), "saving": report.saving, "formula": FORMULA})
    else:
        _print(output, report)


def make_questions(nodes: Iterable[Mapping[str, object]], n_questions: int) -> list[str]:
    """First sentences of the documentation of functions, methods and classes, in the order of their ids, evenly spaced.

    The same folder gives the same questions.
    """
    sentences = []
    for node in sorted(nodes, key=lambda node: str(node.get("id"))):
        sentence = str(node.get("doc") or "").strip().split("\n\n")[0].split(". ")[0].replace("\n", " ").rstrip(".")
        if node.get("kind") in ASKED_KINDS and MIN_WORDS <= len(sentence.split()) <= MAX_WORDS:
            sentences.append(sentence)
    unique = list(dict.fromkeys(sentences))
    step = max(len(unique) / n_questions, 1.0)
    return [unique[int(at * step)] for at in range(min(n_questions, len(unique)))]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of `values` do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _measure(
    opened: Session,
    questions: Sequence[str],
    paths: Iterable[str],
    *,
    reopened: bool,
    ready_s: float,
    vectors_s: float | None,
) -> Report:
    file_tokens = FileTokens(opened.folder)
    # The first question loads the model and maps the index; a session pays that once.
    opened.host.query(QueryParams(query=questions[0]), opened.cancel)
    took_ms, answer_tokens, hit_files_tokens = [], 0, 0
    for question in questions:
        before = time.perf_counter()
        result = opened.host.query(QueryParams(query=question), opened.cancel)
        took_ms.append((time.perf_counter() - before) * 1000)
        answer_tokens += result.tokens
        hit_files_tokens += sum(file_tokens.of(path) for path in {hit.place.path for hit in result.hits})
    stats = opened.host.stats(Nothing(), opened.cancel)
    return Report(
        files=stats.files,
        symbols=stats.symbols,
        reopened=reopened,
        ready_s=round(ready_s, 3),
        vectors_s=None if vectors_s is None else round(vectors_s, 3),
        questions=len(questions),
        query_p50_ms=round(percentile(took_ms, 0.5), 1),
        query_p95_ms=round(percentile(took_ms, 0.95), 1),
        answer_tokens=answer_tokens,
        hit_files_tokens=hit_files_tokens,
        folder_tokens=sum(file_tokens.of(path) for path in paths),
    )


class FileTokens:
    """Tokens of whole files by the lower bound of `FORMULA`, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, int] = {}

    def of(self, path: str) -> int:
        """0 for a file that cannot be read any more."""
        if path not in self._known:
            try:
                text = (self._folder / path).read_text(encoding="utf-8", errors="replace")
            except OSError:
                text = ""
            self._known[path] = -(-len(text) // CHARACTERS_PER_TOKEN)
        return self._known[path]


def _print(output: Output, report: Report) -> None:
    opened = "reopened" if report.reopened else "built"
    rows = [
        ("files, symbols", f"{report.files:,}, {report.symbols:,}"),
        (f"index {opened}, symbols and keyword search ready", f"{report.ready_s:.2f} s"),
        *([("all vectors ready", f"{report.vectors_s:.2f} s")] if report.vectors_s is not None else []),
        ("questions", f"{report.questions}"),
        ("a question, half of them within", f"{report.query_p50_ms:.1f} ms"),
        ("a question, 95 % of them within", f"{report.query_p95_ms:.1f} ms"),
        ("tokens of an answer, mean", f"{report.answer_tokens / report.questions:,.0f}"),
        ("tokens of the whole files its hits lie in, mean", f"{report.hit_files_tokens / report.questions:,.0f}"),
        ("tokens of all indexed files", f"{report.folder_tokens:,}"),
        ("saving", f"{100 * report.saving:.1f} %"),
    ]
    output.table(("what", "measured"), rows, right=(1,))
    if report.saving < 0:
        output.note(TOO_SMALL)
    output.note(FORMULA)
