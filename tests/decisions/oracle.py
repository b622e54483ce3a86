"""The rules of DESIGN section 8 a second time, word by word, over the objects that plain git prints.

Nothing of nm_lsp is used here, and nothing is remembered or saved: every question walks the whole way from a
confirmation to HEAD again. Code is compared with Python's own `ast`. A confirmation is a plain dictionary:

    {"commit": id or None, "ancestors": [ids], "anchors":
        [{"kind", "path", "symbol", "text", "files": {path: (fp, base)}}]}
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
Tree = dict[str, str]


class Objects:
    """All objects of a repository, read with one `git cat-file --batch-all-objects`."""

    def __init__(self, root: Path) -> None:
        self.parents: dict[str, list[str]] = {}
        self._tree_of: dict[str, str] = {}
        self._raw_trees: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}
        self._flat: dict[str, Tree] = {}
        self._nothing: Tree = {}
        output = subprocess.run(
            ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=root, capture_output=True, check=True
        ).stdout
        at = 0
        while at < len(output):
            end = output.index(b"\n", at)
            identity, kind, size = output[at:end].decode().split()
            body = output[end + 1 : end + 1 + int(size)]
            at = end + 2 + int(size)
            if kind == "commit":
                lines = body.split(b"\n\n", 1)[0].decode("utf-8", "replace").split("\n")
                self._tree_of[identity] = lines[0].split()[1]
                self.parents[identity] = [line.split()[1] for line in lines if line.startswith("parent ")]
            elif kind == "tree":
                self._raw_trees[identity] = body
            elif kind == "blob":
                self.blobs[identity] = body
        shallow = root / ".git" / "shallow"
        if shallow.exists():
            for boundary in shallow.read_text().split():
                self.parents[boundary] = []
        self._histories: dict[str, set[str]] = {}

    def tree(self, commit: str | None) -> Tree:
        """Path → content; `link:` and `commit:` mark links and submodules; the executable bit is no content."""
        # The trees live as long as this does, so that each is known by its `id`.
        if commit is None:
            return self._nothing
        if commit not in self._flat:
            self._flat[commit] = dict(self._entries(self._tree_of[commit], ""))
        return self._flat[commit]

    def history(self, commit: str) -> set[str]:
        """`commit` and everything before it."""
        if commit not in self._histories:
            found: set[str] = set()
            waiting = [commit]
            while waiting:
                here = waiting.pop()
                if here not in found:
                    found.add(here)
                    waiting += self.parents[here]
            self._histories[commit] = found
        return self._histories[commit]

    def _entries(self, tree: str, prefix: str) -> Iterable[tuple[str, str]]:
        raw = self._raw_trees[tree]
        at = 0
        while at < len(raw):
            space, nul = raw.index(b" ", at), raw.index(b"\0", at)
            mode, name = raw[at:space], os.fsdecode(raw[space + 1 : nul])
            identity = raw[nul + 1 : nul + 21].hex()
            at = nul + 21
            if mode == b"40000":
                yield from self._entries(identity, f"{prefix}{name}/")
            else:
                yield prefix + name, {b"120000": "link:", b"160000": "commit:"}.get(mode, "") + identity


class Oracle:
    def __init__(self, root: Path) -> None:
        self.objects = Objects(root)
        # What the histories made this look at, so that a test can ask whether they make it look at everything.
        self.seen: set[str] = set()

        self._changed: dict[tuple[int, int], tuple[dict[str, Any], dict[str, str]]] = {}

    def changed(self, old: Tree, new: Tree) -> tuple[dict[str, Any], dict[str, str]]:
        """Path → (before, after) of what differs, and the renames."""
        key = (id(old), id(new))
        if key not in self._changed:
            changed = {p: (old.get(p), new.get(p)) for p in old.keys() | new.keys() if old.get(p) != new.get(p)}
            self._changed[key] = (changed, paired(changed))
        return self._changed[key]

    # One decision

    def verdicts(
        self, head: str | None, decisions: dict[str, dict[str, Any]], rewrites: list[tuple[str, str]]
    ) -> dict[str, Any]:
        """Per decision {status, reason, severity, commit, path, anchors, reverted}, dependencies included (rule 8).

        `path` maps every path that the commit named as the reason doubts to the kind of its doubt.
        """
        own = {name: self._own(head, decision, rewrites) for name, decision in decisions.items()}
        result = {}
        for name, verdict in own.items():
            result[name] = dict(verdict)
            if verdict["status"] != "active":
                continue
            reachable: list[str] = []
            waiting = list(decisions[name]["depends_on"])
            while waiting:
                other = waiting.pop()
                if other in decisions and other not in reachable:
                    reachable.append(other)
                    waiting += decisions[other]["depends_on"]
            if any(own[other]["status"] != "active" for other in reachable):
                result[name] |= {"status": "stale", "reason": "dependency", "severity": "warning"}
        return result

    def _own(self, head: str | None, decision: dict[str, Any], rewrites: list[tuple[str, str]]) -> dict[str, Any]:
        judged = [self._confirmation(head, one, rewrites) for one in decision["confirmations"]]
        if len(judged) > 1:
            self.seen.add("several confirmations")
        if any(one["reverted"] for one in judged):
            self.seen.add("reverted")
        standing = [one for one in judged if one["stands"]]
        if standing:
            chosen = standing[-1] | {"status": "active", "reason": None, "severity": None, "commit": None, "path": None}
        else:
            in_history = [one for one in judged if one["in_history"]]
            with_reason = [one for one in judged if one["commit"] is not None]
            chosen = (in_history or with_reason or judged)[-1] | {"status": "stale"}
        if decision["invalidated"]:
            chosen |= {"status": "invalidated", "reason": None, "severity": None, "commit": None, "path": None}
        return {k: chosen[k] for k in ("status", "reason", "severity", "commit", "path", "anchors", "reverted")}

    # One confirmation: rules 1, 2 and 6

    def _confirmation(self, head: str | None, conf: dict[str, Any], rewrites: list[tuple[str, str]]) -> dict[str, Any]:
        commits = self._joined(conf, rewrites)
        inside = [c for c in commits if c is None or (head is not None and c in self.objects.history(head))]
        if inside:
            walked = [Walked(self, anchor) for anchor in conf["anchors"]]
            if len(inside) > 1 or inside[-1] != commits[0]:
                self.seen.add("joined a commit")
            if inside[-1] is None:
                self.seen.add("before the first commit")
            for older, newer in self._route(inside[-1], head):
                for one in walked:
                    one.compare(self.objects.tree(older), self.objects.tree(newer), newer)
            doubts = sorted((d for one in walked for d in one.doubts), key=lambda d: self._age(d["commit"]))
            result = self._result(walked, not doubts, in_history=True)
            if doubts:
                result |= {"reason": doubts[-1]["kind"], "severity": "warning"}
                result |= {"commit": doubts[-1]["commit"], "path": self._paths_of(doubts)}
            return result
        here = [c for c in commits if c in self.objects.parents]
        return self._elsewhere(head, conf, here[-1] if here else None)

    def _elsewhere(self, head: str | None, conf: dict[str, Any], commit: str | None) -> dict[str, Any]:
        tree = self.objects.tree(head)
        walked = [Walked(self, anchor) for anchor in conf["anchors"]]
        self.seen.add("compared trees" if commit is not None else "commit gone")
        if commit is not None:
            for one in walked:
                one.compare(self.objects.tree(commit), tree, head)
            doubted = [bool(one.doubts) for one in walked]
        else:
            doubted = [
                any(tree.get(path) not in pair for path, pair in anchor["files"].items()) for anchor in conf["anchors"]
            ]
            for one, anchor, lost in zip(walked, conf["anchors"], doubted, strict=True):
                one.gone = lost and anchor["kind"] in ("file", "symbol") and anchor["path"] not in tree
        result = self._result(walked, not any(doubted), in_history=False)
        if commit is None:
            result["reverted"] = False
        if any(doubted):
            result |= {"reason": "differs-on-branch", "severity": "information", "path": None}
            taken = self._took_away(head, conf, commit, doubted)
            if taken is not None:
                self.seen.add("reason on another branch")
                result |= {"reason": taken["kind"], "severity": "warning"}
                result |= {"commit": taken["commit"], "path": taken["paths"]}
        return result

    def _took_away(
        self, head: str | None, conf: dict[str, Any], commit: str | None, doubted: list[bool]
    ) -> dict[str, Any] | None:
        if head is None:
            return None
        if commit is None:
            commit = next((c for c in conf["ancestors"] if c in self.objects.history(head)), None)
        if commit is None:
            return None
        theirs = self.objects.history(commit)
        chain = []
        here = head
        while here not in theirs:
            chain.append(here)
            if not self.objects.parents[here]:
                return None
            here = self.objects.parents[here][0]
        found = None
        for anchor, lost in zip(conf["anchors"], doubted, strict=True):
            if not lost:
                continue
            walked = Walked(self, anchor)
            for newer in reversed(chain):
                older = self.objects.parents[newer][0]
                walked.compare(self.objects.tree(older), self.objects.tree(newer), newer)
            for doubt in walked.doubts:
                if not doubt["from_seen"]:
                    continue
                if found is not None and doubt["commit"] == found["commit"]:
                    found["paths"][doubt["path"]] = doubt["kind"]
                elif found is None or self._age(doubt["commit"]) > self._age(found["commit"]):
                    found = doubt | {"paths": {doubt["path"]: doubt["kind"]}}
        return found

    def _joined(self, conf: dict[str, Any], rewrites: list[tuple[str, str]]) -> list[str | None]:
        commits = [conf["commit"]]
        for _ in range(len(rewrites)):
            for old, new in rewrites:
                if old in commits and new not in commits and new in self.objects.parents:
                    tree = self.objects.tree(new)
                    if all(tree.get(p) in pair for a in conf["anchors"] for p, pair in a["files"].items()):
                        commits.append(new)
        return commits

    def _route(self, commit: str | None, head: str | None) -> list[tuple[str | None, str]]:
        edges: list[tuple[str | None, str]] = []
        here = head
        while here != commit:
            assert here is not None
            parents: list[str | None] = [*self.objects.parents[here]] or [None]
            for parent in parents:
                if (
                    commit is None
                    or parent == commit
                    or (parent is not None and commit in self.objects.history(parent))
                ):
                    edges.append((parent, here))
                    if parent not in parents[:1]:
                        self.seen.add("walked through a second parent")
                    here = parent
                    break
            else:
                raise AssertionError("the commit is not in the history")
        return edges[::-1]

    def _age(self, commit: str | None) -> int:
        return len(self.objects.history(commit)) if commit is not None else 0

    def _paths_of(self, doubts: list[dict[str, Any]]) -> dict[str, str]:
        return {doubt["path"]: doubt["kind"] for doubt in doubts if doubt["commit"] == doubts[-1]["commit"]}

    def _result(self, walked: list[Walked], stands: bool, *, in_history: bool) -> dict[str, Any]:
        doubted = any(one.doubts for one in walked)
        return {
            "stands": stands,
            "in_history": in_history,
            "reason": None,
            "severity": None,
            "commit": None,
            "path": None,
            "anchors": [None if one.gone else one.path for one in walked],
            "reverted": doubted and all(one.holds_what_was_seen() for one in walked),
        }


class Walked:
    """One anchor of one confirmation on its way: rules 3, 4 and 7."""

    def __init__(self, oracle: Oracle, anchor: dict[str, Any]) -> None:
        self._oracle = oracle
        self._blobs = oracle.objects.blobs
        self._anchor = anchor
        self.kind = anchor["kind"]
        self.path = anchor["path"]
        self.gone = False
        self.doubts: list[dict[str, Any]] = []
        self._changed = False
        # What is expected of each governed path; a folder's joiners come in with the bytes they bring.
        self._expected: dict[str, str | None] = {path: fp for path, (fp, _) in anchor["files"].items()}
        self._bases: dict[str, str | None] = {path: base for path, (_, base) in anchor["files"].items()}
        self._strayed: dict[str, tuple[str | None, str | None]] = {}

    def compare(self, old: Tree, new: Tree, commit: str | None) -> None:
        changed, renames = self._oracle.changed(old, new)
        if self.kind in ("folder", "glob"):
            self._compare_folder(old, changed, renames, commit)
        elif self.path in changed:
            self._compare_file(changed, renames, commit)

    def holds_what_was_seen(self) -> bool:
        return not self._strayed and not self.gone

    def _doubt(self, commit: str | None, path: str, kind: str, from_seen: bool) -> None:
        self.doubts.append({"commit": commit, "path": path, "kind": kind, "from_seen": from_seen})

    def _compare_file(self, changed: dict[str, Any], renames: dict[str, str], commit: str | None) -> None:
        (fp, base) = next(iter(self._anchor["files"].values()))
        before, after = changed[self.path]
        first, self._changed = not self._changed, True
        if after is None:
            if fp is None:
                self.gone = True
            elif self.path in renames:
                self._oracle.seen.add("renamed")
                strayed = self._strayed.pop(self.path, None)
                self.path = renames[self.path]
                if strayed:
                    self._strayed[self.path] = strayed
                self._changed = not first
            else:
                holders = [
                    path
                    for path, (was, is_now) in changed.items()
                    if self.kind == "symbol"
                    and was is None
                    and path not in renames.values()
                    and self._same(path, is_now)
                ]
                if len(holders) == 1:
                    self._oracle.seen.add("symbol found in an added file")
                    self.path = holders[0]
                    self._strayed.clear()
                    self._changed = not first
                else:
                    self._doubt(commit, self.path, "removed", before == fp or self._same(self.path, before))
                    self.gone = True
                    self._strayed[self.path] = (fp, None)
            return
        self.gone = False
        self._strayed.clear()
        if ":" in after:
            self._oracle.seen.add("link")
        if after == fp != base:
            self._oracle.seen.add("landed")
        if after == fp or self._same(self.path, after):
            return
        landing = first and fp != base and before == base
        from_seen = before == fp or self._same(self.path, before)
        self._doubt(commit, self.path, "landed-other" if landing else "changed", from_seen)
        self._strayed[self.path] = (fp, after)

    def _same(self, path: str, content: str | None) -> bool:
        """Whether a file holds the symbol as it was seen. Only Python has a grammar here."""
        if self.kind != "symbol" or content is None or ":" in content or not path.endswith(".py"):
            return False
        now = definition(self._blobs[content], self._anchor["symbol"])
        return now is not None and now == definition(self._anchor["text"], self._anchor["symbol"].split(".")[-1])

    def _governs(self, path: str) -> bool:
        if self.kind == "folder":
            return path.startswith(self.path)
        folder, pattern = split(self.path)
        return path.startswith(folder) and matches(pattern, path[len(folder) :])

    def _compare_folder(self, old: Tree, changed: dict[str, Any], renames: dict[str, str], commit: str | None) -> None:
        moved_to = self._moved_to(old, changed)
        if moved_to is not None:
            self._oracle.seen.add("folder moved")
            here = self.path if self.kind == "folder" else split(self.path)[0]
            carried = {p for p in old if self._governs(p)}

            def there(path: str) -> str:
                return moved_to + path[len(here) :] if path.startswith(here) else path

            self._expected = {there(p): fp for p, fp in self._expected.items()}
            self._bases = {there(p): base for p, base in self._bases.items()}
            self._strayed = {there(p): pair for p, pair in self._strayed.items()}
            self.path = there(self.path)
            arrived = {there(p) for p in carried}
            for path, (before, after) in changed.items():
                if before is None and path not in arrived and self._governs(path):
                    self._join(path, before, after, commit)
            return
        arrived = set()
        for path, (before, after) in sorted(changed.items()):
            if after is None and self._governs(path):
                fp = self._expected.get(path, before)
                target = renames.get(path)
                inside = target is not None and self._governs(target)
                self._expected[path] = None
                self._bases.pop(path, None)
                if inside and target is not None:
                    self._oracle.seen.add("moved inside")
                    if path in self._strayed:
                        self._strayed[target] = self._strayed.pop(path)
                    if fp is not None:
                        self._expected[target] = fp
                        self._bases.pop(target, None)
                        arrived.add(target)
                elif fp is None:
                    self._strayed.pop(path, None)
                else:
                    self._doubt(commit, path, "removed" if target is None else "moved-out", before == fp)
                    self._strayed[path] = (fp, None)
        for path, (before, after) in changed.items():
            if after is not None and self._governs(path) and path not in arrived:
                if before is None:
                    self._join(path, before, after, commit)
                else:
                    self._settle(path, before, after, commit)

    def _join(self, path: str, before: str | None, after: str | None, commit: str | None) -> None:
        if path in self._bases:
            # Seen before it was committed: this is its landing.
            self._settle(path, before, after, commit)
            return
        self._oracle.seen.add("joined a folder")
        self._expected[path] = after
        if path in self._strayed:
            fp = self._strayed[path][0]
            if fp == after:
                del self._strayed[path]
            else:
                self._strayed[path] = (fp, after)

    def _settle(self, path: str, before: str | None, after: str | None, commit: str | None) -> None:
        fp = self._expected.get(path, before)
        base = self._bases.pop(path, fp)
        self._expected.setdefault(path, fp)
        self._strayed.pop(path, None)
        if after == fp:
            return
        landing = before == base and base != fp
        self._doubt(commit, path, "landed-other" if landing else "changed", before == fp)
        self._strayed[path] = (fp, after)

    def _moved_to(self, old: Tree, changed: dict[str, Any]) -> str | None:
        here = self.path if self.kind == "folder" else split(self.path)[0]
        files = [p for p in old if self._governs(p)]
        if not here or not files or any(p not in changed or changed[p][1] is not None for p in files):
            return None
        fitting = []
        rest = files[0][len(here) :]
        for path, (before, after) in changed.items():
            if before is None and after == old[files[0]] and path.endswith("/" + rest):
                folder = path[: -len(rest)]
                all_there = all(changed.get(folder + p[len(here) :]) == (None, old[p]) for p in files)
                if all_there and not any(p.startswith(folder) for p in old):
                    fitting.append(folder)
        return min(fitting) if fitting else None


def paired(changed: dict[str, Any]) -> dict[str, str]:
    """Renames that keep the bytes: one to one, same base name first, then in path order."""
    pairs: dict[str, str] = {}
    contents = sorted({before for before, after in changed.values() if after is None})
    for content in contents:
        gone = sorted(p for p, (before, after) in changed.items() if after is None and before == content)
        come = sorted(p for p, (before, after) in changed.items() if before is None and after == content)
        for source in gone:
            for target in come:
                if source.split("/")[-1] == target.split("/")[-1] and target not in pairs.values():
                    pairs[source] = target
                    break
        if content == EMPTY:
            continue
        for source in gone:
            for target in come:
                if source not in pairs and target not in pairs.values():
                    pairs[source] = target
    return pairs


@functools.cache
def definition(text: bytes, name: str) -> str | None:
    """The syntax of a function or method, without positions and comments; None if it is not there."""
    try:
        body: Any = ast.parse(text)
    except SyntaxError:
        return None
    for part in name.split("."):
        found = [n for n in ast.walk(body) if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part]
        if not found:
            return None
        body = found[0]
    return ast.dump(body)


def split(pattern: str) -> tuple[str, str]:
    """The folder before the first sign of a glob, and the rest."""
    plain = re.split(r"[*?\[]", pattern)[0]
    folder = plain[: plain.rfind("/") + 1]
    return folder, pattern[len(folder) :]


def matches(pattern: str, path: str) -> bool:
    """`**` spans folders, everything else stays within one."""
    if pattern.startswith("**/"):
        return matches(pattern[3:], path) or ("/" in path and matches(pattern, path.split("/", 1)[1]))
    first, slash, rest = pattern.partition("/")
    name, deeper, below = path.partition("/")
    if not slash:
        return not deeper and fnmatch.fnmatchcase(name, first)
    return bool(deeper) and fnmatch.fnmatchcase(name, first) and matches(rest, below)
