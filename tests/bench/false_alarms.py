"""How much less often a decision on a symbol goes stale than the same decision on its file, over a real history.

    python tests/bench/false_alarms.py REPOSITORY [--decisions 150] [--windows 3] [--seed 1]

For each window of the first-parent history: clones the repository, records every sampled function of Python, Go and C
twice at the window's first commit (its symbol, its file), moves on to the window's last commit and asks which are
STALE. Every symbol that still stands is held against its text then and now, read without our parsers: by `ast.dump`
for Python, by the tokens of Pygments without comments for Go and C. One whose code differs would be a missed alarm. A
stale one that is alike at the end was changed and changed back, or is gone from its file and elsewhere. The last row
is the sum. Reports; asserts nothing. `real_histories.py` unpacks histories to run it on.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pygments.lexer import Lexer
from pygments.lexers import CLexer, GoLexer
from pygments.token import Comment

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import NmError
from nm_lsp.engine.decision_requests import Caller, ListParams, RecordParams
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.similar import ModelNearness
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.query_embedding import QueryEmbedder

GO, CALLER = Cancellation(), Caller("cli", "bench")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, encoding="utf-8", errors="replace"
    ).stdout


def functions(path: str, text: str) -> dict[str, str]:
    """Qualified name → code without layout and comments, of the functions and methods of a file, each name once.

    Raises SyntaxError for Python of another version.
    """
    found: dict[str, str] = {}
    for name, code in _python(text) if path.endswith(".py") else _braced(path, text):
        found.setdefault(name, code)
    return found


def _python(text: str) -> Iterator[tuple[str, str]]:
    pending = [("", node) for node in ast.parse(text).body]
    while pending:
        prefix, node = pending.pop(0)
        if isinstance(node, ast.ClassDef):
            pending += [(f"{prefix}{node.name}.", child) for child in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", ast.dump(node)


_GO = re.compile(r"^func (?:\(\w* ?\*?(?P<type>\w+)\) )?(?P<name>\w+)\((?:[^\n]*\}$|.*?^\})", re.MULTILINE | re.DOTALL)
_C = re.compile(
    r"^(?![#/ \t*])[^;{}()#/=]*?\b(?P<name>\w+)\([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*\)\s*^\{.*?^\}",
    re.MULTILINE | re.DOTALL,
)


def _braced(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Go as gofmt writes it and C with the braces of bodies in the first column; others are not sampled."""
    is_go = path.endswith(".go")
    lexer = GoLexer() if is_go else CLexer()
    for match in (_GO if is_go else _C).finditer(text):
        owner = f"{match['type']}." if is_go and match["type"] else ""
        yield f"{owner}{match['name']}", "\0".join(_code_tokens(lexer, match[0]))


def _code_tokens(lexer: Lexer, text: str) -> Iterator[str]:
    """Without comments and blanks; Pygments calls what the preprocessor reads a comment too, and that is code."""
    for kind, value in lexer.get_tokens(text):
        is_comment = kind in Comment and kind not in Comment.Preproc and kind not in Comment.PreprocFile
        if not is_comment and value.strip():
            yield value.strip()


def code_at(clone: Path, commit: str, path: str, name: str) -> str | None:
    try:
        return functions(path, git(clone, "show", f"{commit}:{path}")).get(name)
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


def window(source: Path, commits: list[str], n_decisions: int, rng: random.Random) -> Counter[str]:
    """Numbers of commits, decisions, and those stale or missed, between the first and the last of `commits`."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch).resolve() / "clone"
        git(source, "clone", "-q", "--no-checkout", str(source), str(clone))
        git(clone, "checkout", "-q", commits[0])
        found = []
        for path in git(clone, "ls-files", "*.py", "*.go", "*.c").splitlines():
            with contextlib.suppress(SyntaxError):
                found += [(path, name) for name in functions(path, (clone / path).read_text("utf-8", "replace"))]
        rng.shuffle(found)
        desk = desk_of(clone)
        n_recorded = 0
        for path, name in found:
            if n_recorded == n_decisions:
                break
            symbol, file = (
                RecordParams(title=anchor[-150:], rationale="Sampled.", files=(anchor,))
                for anchor in (f"{path}::{name}", path)
            )
            # The patterns above take a few declarations for functions; such a name is no symbol.
            with contextlib.suppress(NmError):
                desk.record(symbol, GO, CALLER)
                desk.record(file, GO, CALLER)
                n_recorded += 1
        git(clone, "checkout", "-q", commits[-1])
        desk.poll(sure=True)
        rows = desk.list(ListParams(limit=1_000), GO, CALLER).decisions
        stale = [row for row in rows if row.status == "stale"]
        by_symbol = [row for row in stale if row.anchors[0].symbol]
        unlike = missed = 0
        for row in rows:
            anchor = row.anchors[0]
            if anchor.symbol:
                moved = (anchor.moved_to or anchor.repo_path).partition("::")[0]
                first = code_at(clone, commits[0], anchor.repo_path, anchor.symbol)
                last = code_at(clone, commits[-1], moved, anchor.symbol)
                unlike += row.status == "stale" and first != last
                missed += row.status == "active" and first != last
        return Counter(
            decisions=n_recorded,
            file=len(stale) - len(by_symbol),
            symbol=len(by_symbol),
            unlike=unlike,
            missed=missed,
            commits=len(commits),
        )


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
    print(
        "| commits | decisions | stale by file | stale by symbol | of these unlike at the end | less often | missed |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    size = len(commits) // (options.windows + 1)
    total: Counter[str] = Counter()
    for turn in range(options.windows):
        part = commits[(turn + 1) * size : (turn + 2) * size]
        counted = window(source, part, options.decisions, rng)
        total += counted
        print_row(counted)
    print_row(total)


def print_row(counted: Counter[str]) -> None:
    less = 1 - counted["symbol"] / counted["file"] if counted["file"] else 0.0
    names = ("commits", "decisions", "file", "symbol", "unlike")
    print(f"| {' | '.join(str(counted[name]) for name in names)} | {less:.0%} | {counted['missed']} |", flush=True)


if __name__ == "__main__":
    main()
