"""The history of a real repository as a plan for `holding.Run`, with decisions that are recorded on the way."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nm_lsp.graph.same_code import symbol_text
from tests.decisions.histories import Step
from tests.decisions.holding import Run, source_of
from tests.decisions.oracle import Objects, Oracle


class RealPlan:
    """HEAD goes along the first parents of `tip`; the other parents of merges are the heads of other work trees."""

    current: str | None = None
    collected = shallow = False

    def __init__(self, seed: int, objects: Objects, tip: str, n_decisions: int, calm: float) -> None:
        """`calm` below 1 makes people act on decisions less often."""
        self.branches: dict[str, int] = {}
        self._random = random.Random(seed)
        self._objects = objects
        self._known_names: dict[str, list[str]] = {}
        commits: list[str] = [tip]
        while objects.parents[commits[-1]]:
            commits.append(objects.parents[commits[-1]][0])
        self.heads = commits[::-1]
        self.ids = dict(enumerate(objects.parents))
        numbers = {commit: number for number, commit in self.ids.items()}
        recorded_at = sorted(self._random.choices(range(len(commits)), k=n_decisions))
        self.steps = []
        for at, commit in enumerate(self.heads):
            acts = [self._record(n + 1, commit) for n, when in enumerate(recorded_at) if when == at]
            for kind, chance in (("restore", 0.3), ("amend", 0.03), ("invalidate", 0.02), ("reinstate", 0.04)):
                if self._random.random() < chance * calm:
                    anchors = self._anchors(commit)
                    acts.append({"act": kind, "pick": self._random.random(), "anchors": anchors})
            others = [numbers[parent] for parent in objects.parents[commit][1:]]
            self.steps.append(Step(numbers[commit], others, acts))

    def _record(self, number: int, commit: str) -> dict[str, Any]:
        depends = [n for n in range(1, number) if self._random.random() < 0.02]
        return {"act": "record", "id": number, "anchors": self._anchors(commit), "depends_on": depends}

    def _anchors(self, commit: str) -> list[dict[str, Any]]:
        """One or two anchors of each kind; symbols where the file is Python of today."""
        tree = self._objects.tree(commit)
        files = sorted(path for path, content in tree.items() if ":" not in content)
        found: list[dict[str, Any]] = []
        for _ in range(self._random.choice([1, 1, 1, 2])):
            path = self._random.choice(files)
            folder = path[: path.rfind("/") + 1]
            kind = self._random.choice(["file", "symbol", "symbol", "folder", "glob"])
            if kind == "symbol":
                symbols = [(path, name) for path in files if path.endswith(".py") for name in self._names(tree[path])]
                if symbols:
                    found.append(self._symbol(tree, *self._random.choice(symbols)))
            elif kind == "folder" and folder:
                found.append({"kind": "folder", "path": folder, "dirty": {}})
            elif kind == "glob" and "." in path:
                found.append({"kind": "glob", "path": f"{folder}**/*.{path.rpartition('.')[2]}", "dirty": {}})
            else:
                found.append({"kind": "file", "path": path, "dirty": {}})
        return found or [{"kind": "file", "path": files[0], "dirty": {}}]

    def _symbol(self, tree: dict[str, str], path: str, name: str) -> dict[str, Any]:
        data = self._objects.blobs[tree[path]]
        texts = {"text": source_of(data, name), "seen": symbol_text(data, "python", name)}
        return {"kind": "symbol", "path": path, "symbol": name, "dirty": {}, **texts}

    def _names(self, content: str) -> list[str]:
        if content not in self._known_names:
            self._known_names[content] = list(names_once(self._objects.blobs[content]))
        return self._known_names[content]


def names_once(data: bytes) -> Iterator[str]:
    """Functions and methods whose name a Python file defines once; none where it does not parse."""
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = Counter(node.name for node in ast.walk(module) if isinstance(node, definitions))
    for node in module.body:
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef) and names[one.name] == 1:
                yield f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name


def real_run(root: Path, tip: str, *, seed: int, n_decisions: int, calm: float = 1.0, check_every: int = 1) -> Run:
    """The history of `tip` in the repository at `root`, judged by way of git itself."""
    judged = Oracle(root)
    plan = RealPlan(seed, judged.objects, tip, n_decisions, calm)
    return Run(seed, root, plan, plan.ids, judged, real_git=True, check_every=check_every)
