"""Generated histories: commits, branches, merges, rewrites, and what people do to decisions in between.

A history is planned in memory from a seed, then written to a real repository with one `git fast-import`. The plan holds
everything a person or git does; what the repository then means is the oracle's and nm_lsp's to say.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

File = tuple[str, bytes]
Tree = dict[str, File]

PATHS = [
    "a.py", "b.py", "src/c.py", "src/d.py", "src/__init__.py", "src/sub/e.py", "src/sub/__init__.py", "lib/c.py",
    "lib/g.py", "docs/n.md", "new/c.py", "new/sub/e.py", "top.txt",
]  # fmt: skip
GLOBS = ["*.py", "src/*.py", "src/**/*.py", "**/*.py", "src/sub/*", "lib/?.py", "**/e.py"]
FOLDERS = ["src/", "src/sub/", "lib/", "new/", "docs/"]


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def token(file: File | None) -> str | None:
    if file is None:
        return None
    return ("link:" if file[0] == "120000" else "") + blob_id(file[1])


def module(f: int, m: int, layout: int, extra: int = 0) -> bytes:
    """A module with a function `f` and a method `C.m`; `layout` changes comments and blank lines only."""
    note = ["", "# a note\n", "\n\n# another note\n"][layout % 3]
    head = "import os\n" + "".join(f"import extra{n}\n" for n in range(extra))
    return (head + note + "\n\n" + function(f, layout) + "\n\nclass C:\n    " + method(m, layout)).encode()


def function(f: int, layout: int = 0) -> str:
    remark = "    # says why\n" if layout % 3 == 2 else ""
    # The last form differs from the first in nesting alone.
    inner = "    y = 0\n" if f == 3 else f"        y = {f}\n"
    return f"def f(x):\n    y = 9\n{remark}    if x:\n        x = 1\n{inner}    return y\n"


def method(m: int, layout: int = 0) -> str:
    remark = "        # once\n" if layout % 3 == 1 else ""
    return f"def m(self):\n{remark}        return {m}\n"


@dataclass
class Commit:
    number: int
    parents: list[int]
    tree: Tree


@dataclass
class Step:
    """The moment after one action: HEAD, the heads of other work trees, and what people do then."""

    head: int | None
    others: list[int]
    acts: list[dict[str, Any]] = field(default_factory=list)
    rewritten: list[tuple[int, int]] = field(default_factory=list)


class Plan:
    def __init__(
        self, seed: int, n_steps: int = 18, n_decisions: int = 9, calm: float = 1.0, *, alone: bool = False
    ) -> None:
        """`calm` below 1 makes people act on decisions less often; `alone` leaves other work trees out."""
        self.random = random.Random(seed)
        self.commits: list[Commit] = []
        self.steps: list[Step] = []
        self.branches: dict[str, int] = {}
        self.current: str | None = "main"
        self.detached: int | None = None
        self.dirty: Tree = {}
        self.hooks = self.random.random() < 0.5
        self.collected = self.random.random() < 0.12
        self.shallow = not self.collected and self.random.random() < 0.06
        self._n_decisions = 0
        self._max_decisions = n_decisions
        self._alone = alone
        self._calm = calm
        self._n_branches = 0
        if self.random.random() < 0.15:
            self.dirty = {"a.py": ("100644", module(0, 0, 0))}
            self._step([self._record({}, [self._file_anchor({}, self.dirty, "a.py")])])
        self._commit({path: self._file(path) for path in self.random.sample(PATHS, self.random.randint(5, 9))}, [])
        self._step([self._record(self.tree) for _ in range(self.random.randint(2, 4))])
        while len(self.steps) < n_steps:
            self._act()

    @property
    def head(self) -> int | None:
        return self.branches.get(self.current) if self.current is not None else self.detached

    @property
    def tree(self) -> Tree:
        return self.commits[self.head].tree if self.head is not None else {}

    # What git does

    def _act(self) -> None:
        actions = {
            self._edit: 10, self._land: 6, self._rename: 5, self._rename_folder: 2, self._delete: 2, self._mode: 1,
            self._link: 1, self._return: 4, self._branch: 5, self._switch: 6, self._merge: 9, self._squash: 2,
            self._cherry_pick: 3, self._rebase: 4, self._amend: 4, self._reset: 2, self._detach: 2, self._idle: 3,
            self._topic: 6,
        }  # fmt: skip
        rewritten = self.random.choices(list(actions), list(actions.values()))[0]() or []
        acts = []
        if self.random.random() < 0.3 * self._calm and self._n_decisions < self._max_decisions and self.tree:
            acts.append(self._record(self.tree))
        for kind, chance in (("restore", 0.45), ("amend", 0.06), ("invalidate", 0.04), ("reinstate", 0.1)):
            if self.random.random() < chance * self._calm:
                acts.append({"act": kind, "pick": self.random.random(), "anchors": self._anchors(self.tree, {})})
        self._step(acts, rewritten if self.hooks else [])

    def _step(self, acts: list[dict[str, Any]], rewritten: list[tuple[int, int]] | None = None) -> None:
        others = [tip for tip in self.branches.values() if tip != self.head and not self._alone]
        self.steps.append(Step(self.head, self.random.sample(others, min(1, len(others))), acts, rewritten or []))

    def _commit(self, tree: Tree, parents: list[int], *, move: bool = True) -> int:
        self.commits.append(Commit(len(self.commits), parents, dict(tree)))
        number = len(self.commits) - 1
        if move:
            self._move(number)
        return number

    def _move(self, number: int) -> None:
        if self.current is None:
            self.detached = number
        else:
            self.branches[self.current] = number

    def _commit_here(self, tree: Tree) -> None:
        self._commit(tree, [self.head] if self.head is not None else [])

    def _file(self, path: str) -> File:
        r = self.random
        if path.endswith("__init__.py") and r.random() < 0.8:
            return "100644", b""
        if not path.endswith(".py"):
            return "100644", b"text %d\n" % r.randint(0, 2)
        return "100644", module(r.choice([0, 0, 1, 2, 3]), r.randint(0, 1), r.randint(0, 2), r.randint(0, 1))

    def _similar(self, file: File) -> File:
        """An edit that often leaves the code as it is."""
        mode, data = file
        if mode == "100644" and data.startswith(b"import os"):
            spread = [module(f, m, layout, e) for f in range(4) for m in (0, 1) for layout in range(3) for e in (0, 1)]
            near = [
                d
                for d in spread
                if sum(a != b for a, b in zip(d.split(b"\n\n"), data.split(b"\n\n"), strict=False)) <= 1
            ]
            return mode, self.random.choice(near)
        return mode, self.random.choice([b"text 0\n", b"text 1\n", b"", b"text 2\n"])

    def _edit(self) -> None:
        tree = dict(self.tree)
        for path in self.random.sample(sorted(tree), min(len(tree), self.random.randint(1, 3))):
            tree[path] = self._similar(tree[path]) if self.random.random() < 0.8 else self._file(path)
        if self.random.random() < 0.35:
            path = self.random.choice(PATHS)
            tree[path] = tree.get(path) or self.random.choice([self._file(path), *tree.values()])
        self._commit_here(tree)

    def _land(self) -> None:
        tree = dict(self.tree)
        for path, file in self.dirty.items():
            if self.random.random() < 0.25:
                file = self._file(path)
            tree[path] = file
        self.dirty = {}
        self._commit_here(tree)

    def _rename(self) -> None:
        tree = dict(self.tree)
        for path in self.random.sample(sorted(tree), min(len(tree), self.random.randint(1, 2))):
            free = [p for p in PATHS if p not in tree]
            named_alike = [p for p in free if p.split("/")[-1] == path.split("/")[-1]]
            target = self.random.choice(named_alike or free or [path])
            file = tree.pop(path)
            tree[target] = self._similar(file) if self.random.random() < 0.25 else file
            if self.random.random() < 0.15 and free:
                tree.setdefault(self.random.choice(free), file)
        self._commit_here(tree)

    def _rename_folder(self) -> None:
        old, new = self.random.sample([*FOLDERS, "src/inner/", "moved/"], 2)
        tree = dict(self.tree)
        for path in sorted(tree):
            if path.startswith(old) and self.random.random() < 0.97:
                file = tree.pop(path)
                tree[new + path[len(old) :]] = file
        if self.random.random() < 0.3:
            tree[new + "joined.py"] = self._file("x.py")
        self._commit_here(tree)

    def _delete(self) -> None:
        tree = dict(self.tree)
        for path in self.random.sample(sorted(tree), min(1, len(tree))):
            del tree[path]
        self._commit_here(tree)

    def _mode(self) -> None:
        tree = dict(self.tree)
        for path in self.random.sample(sorted(tree), min(2, len(tree))):
            mode, data = tree[path]
            tree[path] = ({"100644": "100755", "100755": "100644"}.get(mode, mode), data)
        self._commit_here(tree)

    def _link(self) -> None:
        tree = dict(self.tree)
        for path in self.random.sample(sorted(tree), min(1, len(tree))):
            tree[path] = ("120000" if tree[path][0] != "120000" else "100644", tree[path][1] or b"a.py")
        self._commit_here(tree)

    def _return(self) -> None:
        """Put files back to what an earlier commit held: a revert, whole or in part."""
        back = self.commits[self.random.randrange(len(self.commits))].tree
        tree = dict(self.tree)
        for path in sorted(tree.keys() | back.keys()):
            if self.random.random() < 0.6:
                tree.pop(path, None)
                if path in back:
                    tree[path] = back[path]
        self._commit_here(tree)

    def _branch(self) -> None:
        if self.head is not None:
            self._n_branches += 1
            name = f"topic{self._n_branches}"
            self.branches[name] = self.head
            self.current = name
            self._edit()

    def _switch(self) -> None:
        if self.branches:
            self.current = self.random.choice(sorted(self.branches))

    def _detach(self) -> None:
        if self.head is not None:
            ancestors = sorted(self._history(self.head))
            self.current, self.detached = None, self.random.choice(ancestors)
            if self.random.random() < 0.5 and self.branches:
                self._step([])
                self._switch()

    def _history(self, number: int) -> set[int]:
        found, waiting = set(), [number]
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += self.commits[here].parents
        return found

    def _other(self) -> int | None:
        mine = self._history(self.head) if self.head is not None else set()
        others = sorted({tip for tip in self.branches.values() if tip not in mine})
        return self.random.choice(others) if others else None

    def _merged_tree(self, ours: int, theirs: int) -> Tree:
        common = self._history(ours) & self._history(theirs)
        base = self.commits[max(common)].tree if common else {}
        mine, yours = self.commits[ours].tree, self.commits[theirs].tree
        tree: Tree = {}
        for path in sorted(base.keys() | mine.keys() | yours.keys()):
            b, m, y = base.get(path), mine.get(path), yours.get(path)
            picked = y if m == b else m if y in (b, m) else self.random.choice([m, y, self._file(path)])
            if self.random.random() < 0.04:
                picked = self._file(path)
            if picked is not None:
                tree[path] = picked
        return _without_conflicts(tree)

    def _merge(self) -> None:
        theirs = self._other()
        if theirs is None or self.head is None:
            return self._edit()
        if self.head in self._history(theirs) and self.random.random() < 0.6:
            self._move(theirs)  # Fast-forward.
            return None
        self._commit(self._merged_tree(self.head, theirs), [self.head, theirs])
        return None

    def _topic(self) -> None:
        """The common round: a branch, work and a decision on it, work on the old branch, a merge."""
        if self.current is None or self.head is None:
            return
        before = self.current
        self._branch()
        self._step([self._record(self.tree)] if self._n_decisions < self._max_decisions + 3 else [])
        topic = self.branches[self.current]
        for _ in range(self.random.randint(0, 2)):
            self.random.choice([self._edit, self._return, self._rename, self._land])()
            topic = self.branches[self.current]
        self.current = before
        self._edit()
        self._step([{"act": "restore", "pick": 0.0, "anchors": []}] if self.random.random() < 0.5 else [])
        assert self.head is not None
        self._commit(self._merged_tree(self.head, topic), [self.head, topic])

    def _squash(self) -> None:
        theirs = self._other()
        if theirs is not None and self.head is not None:
            self._commit_here(self._merged_tree(self.head, theirs))
            if self.random.random() < 0.5:
                self.branches = {n: t for n, t in self.branches.items() if t != theirs or n in ("main", self.current)}

    def _apply(self, commit: int, onto: Tree) -> Tree:
        parents = self.commits[commit].parents
        before = self.commits[parents[0]].tree if parents else {}
        after = self.commits[commit].tree
        tree = dict(onto)
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                tree.pop(path, None)
                if path in after:
                    tree[path] = after[path]
        return _without_conflicts(tree)

    def _cherry_pick(self) -> None:
        theirs = self._other()
        if theirs is not None:
            self._commit_here(self._apply(theirs, self.tree))

    def _rebase(self) -> list[tuple[int, int]]:
        theirs = self._other()
        if theirs is None or self.head is None:
            return []
        below = self._history(theirs)
        unique, here = [], self.head
        while here not in below:
            unique.append(here)
            if not self.commits[here].parents:
                break
            here = self.commits[here].parents[0]
        pairs, onto = [], theirs
        fold = self.random.random() < 0.25
        for at, old in enumerate(reversed(unique[:5])):
            tree = self._apply(old, self.commits[onto].tree)
            parents = self.commits[onto].parents if fold and at == 1 else [onto]
            onto = self._commit(tree, list(parents), move=False)
            pairs.append((old, onto))
        if fold and len(pairs) > 1:
            # A fixup: both old commits became one new commit.
            pairs[0] = (pairs[0][0], pairs[1][1])
        self._move(onto)
        return pairs

    def _amend(self) -> list[tuple[int, int]]:
        if self.head is None:
            return []
        old = self.head
        tree = dict(self.tree)
        if self.random.random() < 0.6:
            for path in self.random.sample(sorted(tree), min(len(tree), 1)):
                tree[path] = self._similar(tree[path])
        tree |= {path: file for path, file in self.dirty.items() if self.random.random() < 0.5}
        return [(old, self._commit(_without_conflicts(tree), list(self.commits[old].parents)))]

    def _reset(self) -> None:
        if self.head is not None and self.commits[self.head].parents:
            self._move(self.commits[self.head].parents[0])

    def _idle(self) -> None:
        """Nothing: people act on decisions."""

    # What people do

    def _record(self, tree: Tree, anchors: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        self._n_decisions += 1
        depends = [n for n in range(1, self._n_decisions + 1) if self.random.random() < 0.06]
        dirty = dict(self.dirty) if self.random.random() < 0.5 else {}
        if tree and self.random.random() < 0.35:
            path = self.random.choice(sorted(tree))
            if tree[path][0] != "120000":
                dirty[path] = self._similar(tree[path])
            if self.random.random() < 0.2:
                dirty["src/untracked.py"] = self._file("x.py")
        self.dirty = dirty
        return {
            "act": "record",
            "id": self._n_decisions,
            "anchors": anchors or self._anchors(tree, dirty),
            "depends_on": depends,
        }

    def _anchors(self, tree: Tree, dirty: Tree) -> list[dict[str, Any]]:
        """One or two anchors by kind and name; `files` maps each governed path to the bytes seen and committed."""
        seen = {**tree, **dirty}
        found = []
        for _ in range(self.random.choice([1, 1, 1, 2])):
            files = sorted(path for path, file in seen.items() if file[0] != "120000")
            if not files:
                break
            kind = self.random.choice(["file", "file", "symbol", "symbol", "folder", "glob"])
            if kind == "symbol":
                code = [path for path in files if seen[path][1].startswith(b"import os")]
                if code:
                    found.append(self._file_anchor(tree, seen, self.random.choice(code), symbol=True))
            elif kind == "file":
                found.append(self._file_anchor(tree, seen, self.random.choice(files)))
            else:
                found.append(
                    {"kind": kind, "path": self.random.choice(FOLDERS if kind == "folder" else GLOBS), "dirty": dirty}
                )
        return found or [self._file_anchor(tree, seen or {"a.py": self._file("a.py")}, min(seen or ["a.py"]))]

    def _file_anchor(self, tree: Tree, seen: Tree, path: str, *, symbol: bool = False) -> dict[str, Any]:
        anchor: dict[str, Any] = {"kind": "file", "path": path, "dirty": {path: seen[path]}}
        if symbol:
            data = seen[path][1].decode()
            name = self.random.choice(["f", "C.m"])
            start = data.index("def f" if name == "f" else "def m")
            end = data.index("\n\nclass") if name == "f" else len(data)
            anchor |= {"kind": "symbol", "symbol": name, "text": data[start:end].encode()}
        return anchor


def _without_conflicts(tree: Tree) -> Tree:
    """Drop files that stand where another file needs a folder."""
    folders = {path[:at] for path in tree for at in range(len(path)) if path[at] == "/"}
    return {path: file for path, file in tree.items() if path not in folders}


def write(plan: Plan, root: Path) -> dict[int, str]:
    """Make the repository; number → commit id."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str, stdin: bytes | None = None) -> None:
        subprocess.run(["git", *arguments], cwd=root, env=env, input=stdin, check=True, capture_output=True)

    root.mkdir(parents=True)
    git("init", "-q", "-b", "main", "--template=")
    marks = root / ".git" / "marks"
    git("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", f"--export-marks={marks}", stdin=_stream(plan))
    names = dict(line.split() for line in marks.read_text().splitlines())
    ids = {commit.number: names[f":{commit.number + 1}"] for commit in plan.commits}
    refs = [f"update refs/heads/{name} {ids[tip]}\n" for name, tip in sorted(plan.branches.items())]
    git("update-ref", "--stdin", stdin="".join(refs).encode())
    return ids


def collect_garbage(root: Path, plan: Plan, ids: dict[int, str]) -> None:
    """What `git gc` does in the end: only what branches and HEAD hold is left."""
    refs = [f"delete refs/import/c{commit.number}\n" for commit in plan.commits]
    head = plan.steps[-1].head
    if head is not None:
        refs.append(f"update refs/heads/kept-head {ids[head]}\n")
    subprocess.run(["git", "update-ref", "--stdin"], cwd=root, input="".join(refs).encode(), check=True)
    subprocess.run(["git", "repack", "-a", "-d", "-q"], cwd=root, check=True)
    subprocess.run(["git", "prune-packed", "-q"], cwd=root, check=True)


def _stream(plan: Plan) -> bytes:
    pieces: list[bytes] = []
    for commit in plan.commits:
        n = commit.number
        date = 1_700_000_000 + 60 * n
        pieces.append(
            b"commit refs/import/c%d\nmark :%d\ncommitter Ada <ada@example.org> %d +0000\n" % (n, n + 1, date)
        )
        message = b"change %d" % n
        pieces.append(b"data %d\n%s\n" % (len(message), message))
        for at, parent in enumerate(commit.parents):
            pieces.append(b"%s :%d\n" % (b"merge" if at else b"from", parent + 1))
        pieces.append(b"deleteall\n")
        for path, (mode, data) in sorted(commit.tree.items()):
            pieces.append(b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), path.encode(), len(data), data))
        pieces.append(b"\n")
    return b"".join(pieces)
