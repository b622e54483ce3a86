"""How much less often a decision on a symbol goes stale than the same decision on its file, over a real history.

    python tests/bench/false_alarms.py REPOSITORY [--decisions 150] [--windows 3] [--seed 1]

For each window of the first-parent history: clones the repository, records every sampled Python function twice at the
window's first commit (its symbol, its file), moves on to the window's last commit and asks which are STALE. Every
symbol that still stands is held against `ast.dump` of its text then and now: one whose code differs would be a missed
alarm. Reports; asserts nothing.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.decision_requests import Caller, ListParams, RecordParams
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.similar import ModelNearness
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.query_embedding import QueryEmbedder

GO, CALLER = Cancellation(), Caller("cli", "bench")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def functions(text: str) -> Iterator[tuple[str, str]]:
    """(qualified name, dump without positions) of the functions and methods of a module, each name once."""
    seen: set[str] = set()
    pending = [("", node) for node in ast.parse(text).body]
    while pending:
        prefix, node = pending.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                pending += [(f"{name}.", child) for child in node.body]
            elif name not in seen:
                seen.add(name)
                yield name, ast.dump(node)


def dump_at(clone: Path, commit: str, path: str, name: str) -> str | None:
    try:
        return dict(functions(git(clone, "show", f"{commit}:{path}"))).get(name)
    except (subprocess.CalledProcessError, SyntaxError):
        return None


def desk_of(clone: Path) -> Desk:
    tree = WorkTree(clone, Repositories(), git="git", revival=False, clock=time.monotonic)
    return Desk(
        clone,
        tree,
        screen=lambda _: None,
        spans=lambda _p, _s: None,
        nearness=ModelNearness(QueryEmbedder(enabled=False)),
        on_change=_nothing,
    )


def _nothing() -> None:
    """Nobody listens."""


def window(source: Path, commits: list[str], n_decisions: int, rng: random.Random) -> tuple[int, int, int, int]:
    """(decisions, stale by file, stale by symbol, missed) between the first and the last of `commits`."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch).resolve() / "clone"
        git(source, "clone", "-q", "--no-checkout", str(source), str(clone))
        git(clone, "checkout", "-q", commits[0])
        found = []
        for path in git(clone, "ls-files", "*.py").splitlines():
            try:
                found += [(path, name) for name, _ in functions((clone / path).read_text("utf-8"))]
            except SyntaxError:
                continue
        sample = rng.sample(found, min(n_decisions, len(found)))
        desk = desk_of(clone)
        for path, name in sample:
            for anchor in (path, f"{path}::{name}"):
                params = RecordParams(title=f"{anchor}"[-150:], rationale="Sampled.", files=(anchor,))
                desk.record(params, GO, CALLER)
        git(clone, "checkout", "-q", commits[-1])
        desk.poll(sure=True)
        rows = desk.list(ListParams(limit=1_000), GO, CALLER).decisions
        stale = [row for row in rows if row.status == "stale"]
        by_symbol = [row for row in stale if row.anchors[0].symbol]
        missed = 0
        for row in rows:
            anchor = row.anchors[0]
            if anchor.symbol and row.status == "active":
                moved = (anchor.moved_to or anchor.repo_path).partition("::")[0]
                first = dump_at(clone, commits[0], anchor.repo_path, anchor.symbol)
                last = dump_at(clone, commits[-1], moved, anchor.symbol)
                missed += first != last
        return len(sample), len(stale) - len(by_symbol), len(by_symbol), missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--decisions", type=int, default=150)
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    source = options.repository.resolve()
    commits = git(source, "rev-list", "--first-parent", "--reverse", "HEAD").split()
    rng = random.Random(options.seed)
    print("| commits | decisions | stale by file | stale by symbol | less often | missed |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    size = len(commits) // (options.windows + 1)
    for turn in range(options.windows):
        part = commits[(turn + 1) * size : (turn + 2) * size]
        n, by_file, by_symbol, missed = window(source, part, options.decisions, rng)
        less = 1 - by_symbol / by_file if by_file else 0.0
        print(f"| {len(part)} | {n} | {by_file} | {by_symbol} | {less:.0%} | {missed} |")


if __name__ == "__main__":
    main()
