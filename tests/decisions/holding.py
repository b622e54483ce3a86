"""Runs a generated history past the oracle and past nm_lsp, and says where they disagree."""

from __future__ import annotations

import ast
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nm_lsp.decisions.changes import Change
from nm_lsp.decisions.events import Event, EventKind
from nm_lsp.decisions.fold import Memory
from nm_lsp.decisions.model import (
    Anchor,
    AnchorKind,
    Confirmation,
    DecisionId,
    Plain,
    SeenFile,
    Sighting,
    pack_ancestors,
    pack_text,
)
from nm_lsp.decisions.staleness import Judge
from nm_lsp.decisions.verdicts import Status, Verdict
from nm_lsp.git import Repository, discover
from nm_lsp.graph.same_code import same_code, same_symbol, symbol_text
from tests.decisions import histories, oracle


class Code:
    """The comparison of code that nm_lsp brings."""

    def same_file(self, path: str, seen: bytes, now: bytes) -> bool:
        return same_code(seen, now, self._language(path))

    def symbol_text(self, path: str, name: str, text: bytes) -> bytes | None:
        return symbol_text(text, self._language(path), name)

    def same_symbol(self, path: str, seen: bytes, now: bytes) -> bool:
        return same_symbol(seen, now, self._language(path))

    def _language(self, path: str) -> str | None:
        return "python" if path.endswith(".py") else None


class ObjectsHistory:
    """A repository as the oracle's objects have it: quick, and without a process."""

    def __init__(self, objects: oracle.Objects) -> None:
        self.objects = objects

    def commits(self, tips: Iterable[str], known: Iterable[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        old: set[str] = set().union(*(self.objects.history(commit) for commit in known))
        new = set().union(*(self.objects.history(tip) for tip in tips)) - old
        order = sorted(new, key=lambda commit: len(self.objects.history(commit)), reverse=True)
        return [(commit, tuple(self.objects.parents[commit])) for commit in order]

    def differences(self, pairs: Sequence[tuple[str | None, str]]) -> list[tuple[Change, ...]]:
        result = []
        for older, newer in pairs:
            old, new = self.objects.tree(older), self.objects.tree(newer)
            paths = sorted(p for p in old.keys() | new.keys() if old.get(p) != new.get(p))
            result.append(tuple(Change(p, old.get(p), new.get(p)) for p in paths))
        return result

    def files(self, commit: str, under: str = "") -> dict[str, str]:
        return {path: content for path, content in self.objects.tree(commit).items() if path.startswith(under)}

    def contents(self, commit: str, paths: Iterable[str]) -> dict[str, str]:
        tree = self.objects.tree(commit)
        return {path: tree[path] for path in paths if path in tree}

    def present(self, objects: Sequence[str]) -> set[str]:
        return {one for one in objects if one in self.objects.parents}

    def blob(self, content: str) -> bytes | None:
        return self.objects.blobs.get(content.removeprefix("link:"))


@dataclass
class Disagreement:
    seed: int
    step: int
    judge: str
    decision: str
    expected: dict[str, Any]
    found: dict[str, Any]


class Run:
    """One history. `judges` are those that looked at every step, at every seventh and only at the end."""

    def __init__(
        self,
        seed: int,
        root: Path,
        plan: Any,
        ids: dict[int, str],
        judged: oracle.Oracle,
        *,
        real_git: bool = False,
        check_every: int = 1,
    ) -> None:
        """`plan` is at `root`, its commits named by `ids`.

        The oracle is asked at every `check_every`-th step (a multiple of 7, or 1) and at the last one.
        """
        self.seed = seed
        self.root = root
        self.plan = plan
        self.ids = ids
        self.oracle = judged
        self.real_git = real_git
        self.check_every = check_every
        self.decisions: dict[str, dict[str, Any]] = {}
        self.rewrites: list[tuple[str, str]] = []
        self.memory = Memory()
        self.disagreements: list[Disagreement] = []
        self.statuses: list[tuple[str, str | None, str | None]] = []
        self._n_events = 0
        self._repositories: list[Repository] = []

    @classmethod
    def generated(cls, seed: int, root: Path, *, real_git: bool = False, check_every: int = 1, **plan: Any) -> Self:
        made = histories.Plan(seed, **plan)
        ids = histories.write(made, root)
        return cls(seed, root, made, ids, oracle.Oracle(root), real_git=real_git, check_every=check_every)

    def go(self, *, new_judge: Callable[[Any], Any] | None = None) -> list[Disagreement]:
        build = new_judge or (lambda history: Judge(history, Code()))
        every, seventh, once = (build(self._history()) for _ in range(3))
        try:
            last = len(self.plan.steps) - 1
            for at, step in enumerate(self.plan.steps):
                head = None if step.head is None else self.ids[step.head]
                self.rewrites += [(self.ids[old], self.ids[new]) for old, new in step.rewritten]
                if step.rewritten:
                    pairs: list[Plain] = [[self.ids[old], self.ids[new]] for old, new in step.rewritten]
                    self._event(None, EventKind.REWRITTEN, {"pairs": pairs})
                for act in step.acts:
                    self._act(act, head)
                asked = at == last or (at + 1) % self.check_every == 0
                for here in [head, *(self.ids[other] for other in step.others)]:
                    if not asked:
                        every.look(here, self.memory)
                        if at % 7 == 6:
                            seventh.look(here, self.memory)
                        continue
                    expected = self.oracle.verdicts(here, self.decisions, self.rewrites)
                    self._compare(at, "every", every, here, expected)
                    if at % 7 == 6:
                        self._compare(at, "seventh", seventh, here, expected)
                    if at == last:
                        self._compare(at, "once", once, here, expected)
            self._afterwards(build, every)
        finally:
            for repository in self._repositories:
                repository.close()
        return self.disagreements

    def _afterwards(self, build: Callable[[Any], Any], every: Any) -> None:
        """Look again after a garbage collection, or in a shallow clone."""
        head = self.plan.steps[-1].head
        if head is None:
            return
        if self.plan.collected:
            histories.collect_garbage(self.root, self.plan, self.ids)
            self._again(self.root, build, [every] if self.real_git else [])
        elif self.plan.shallow and self.plan.current in self.plan.branches:
            clone = self.root.with_name(self.root.name + "-shallow")
            command = [
                "git",
                "clone",
                "-q",
                "-n",
                "--depth=4",
                "-b",
                self.plan.current,
                f"file://{self.root}",
                str(clone),
            ]
            subprocess.run(command, check=True, capture_output=True)
            self._again(clone, build, [])

    def _again(self, root: Path, build: Callable[[Any], Any], judges: Sequence[Any]) -> None:
        seen = self.oracle.seen
        self.oracle = oracle.Oracle(root)
        self.oracle.seen |= seen
        head = self.ids[self.plan.steps[-1].head or 0]
        heads = [head] if root != self.root else [head, *(self.ids[tip] for tip in self.plan.branches.values())]
        for judge in [build(self._history(root)), *judges]:
            for here in heads:
                expected = self.oracle.verdicts(here, self.decisions, self.rewrites)
                self._compare(len(self.plan.steps), "afterwards", judge, here, expected)

    def _history(self, root: Path | None = None) -> Any:
        if not self.real_git:
            return ObjectsHistory(self.oracle.objects)
        place = discover(root or self.root)
        assert place is not None
        self._repositories.append(Repository(place))
        return self._repositories[-1]

    def _compare(self, at: int, name: str, judge: Any, head: str | None, expected: dict[str, Any]) -> None:
        verdicts = judge.look(head, self.memory)
        assert set(verdicts) == {self._id(key) for key in expected}
        for key, wanted in expected.items():
            found = plain(verdicts[self._id(key)])
            if wanted["reason"] == "dependency" or wanted["status"] == "invalidated":
                wanted = wanted | {"commit": found["commit"], "path": found["path"], "reverted": found["reverted"]}
            if isinstance(wanted["path"], dict) and found["path"] in wanted["path"]:
                wanted = wanted | {"path": found["path"], "reason": wanted["path"][found["path"]]}
            if wanted["status"] == "stale" and wanted["reason"] == "differs-on-branch":
                wanted = wanted | {"path": found["path"]}
            if wanted["status"] != "stale":
                wanted = wanted | {"reverted": found["reverted"]}
            if name == "every":
                self.statuses.append((wanted["status"], wanted["reason"], wanted["severity"]))
            if found != wanted:
                self.disagreements.append(Disagreement(self.seed, at, name, key, wanted, found))

    # What people do

    def _act(self, act: dict[str, Any], head: str | None) -> None:
        if act["act"] == "record":
            name = str(act["id"])
            conf = self._confirmation(head, act["anchors"])
            depends = [str(n) for n in act["depends_on"]]
            self.decisions[name] = {"confirmations": [conf], "invalidated": False, "depends_on": depends}
            after: dict[str, Plain] = {
                "title": f"decision {name}",
                "rationale": "because",
                "anchors": [_anchor(one).to_plain() for one in conf["anchors"]],
                "confirmation": _model(conf).to_plain(),
            }
            if depends:
                after["dependsOn"] = [self._id(one) for one in depends]
            self._event(name, EventKind.RECORDED, after)
            return
        if not self.decisions or head is None:
            return
        names = sorted(self.decisions)
        name = names[int(act["pick"] * len(names))]
        decision = self.decisions[name]
        verdicts = self.oracle.verdicts(head, self.decisions, self.rewrites)
        if act["act"] == "restore":
            self._restore(verdicts, head)
        elif act["act"] == "amend" and not decision["invalidated"]:
            if act["pick"] * 1000 % 1 < 0.4:
                self._amend_dependencies(name, decision, names[int(act["pick"] * 7919) % len(names)])
                return
            conf = self._confirmation(head, act["anchors"])
            decision["confirmations"] = [conf]
            anchors: Plain = [_anchor(one).to_plain() for one in conf["anchors"]]
            self._event(name, EventKind.AMENDED, {"anchors": anchors, "confirmation": _model(conf).to_plain()})
        elif act["act"] == "invalidate" and not decision["invalidated"]:
            decision["invalidated"] = True
            self._event(name, EventKind.INVALIDATED, {})
        elif act["act"] == "reinstate":
            for other in names:
                if self.decisions[other]["invalidated"]:
                    again = self._at_head(head, other, verdicts[other]["anchors"])
                    if again is not None:
                        self.decisions[other]["invalidated"] = False
                        self.decisions[other]["confirmations"].append(again)
                        self._event(other, EventKind.REINSTATED, {"confirmation": _model(again).to_plain()})
                    return

    def _restore(self, verdicts: dict[str, Any], head: str) -> None:
        stale = [n for n, v in verdicts.items() if v["status"] == "stale" and v["reason"] != "dependency"]
        for name in stale[:2]:
            again = self._at_head(head, name, verdicts[name]["anchors"])
            if again is not None:
                self.decisions[name]["confirmations"].append(again)
                self._event(name, EventKind.RESTORED, {"confirmation": _model(again).to_plain()})

    def _amend_dependencies(self, name: str, decision: dict[str, Any], other: str) -> None:
        # A cycle is possible here, as by an import.
        decision["depends_on"] = [other]
        self._event(name, EventKind.AMENDED, {"dependsOn": [self._id(other)]})

    def _at_head(self, head: str, name: str, paths: Sequence[str | None]) -> dict[str, Any] | None:
        """A confirmation at `head` with the anchors by their names there; None if one of them is not there."""
        anchors = []
        tree = self.oracle.objects.tree(head)
        for anchor, path in zip(self.decisions[name]["confirmations"][-1]["anchors"], paths, strict=False):
            if path is None:
                return None
            one = {key: anchor[key] for key in ("kind", "symbol") if key in anchor} | {"path": path, "dirty": {}}
            if anchor["kind"] in ("file", "symbol") and path not in tree:
                return None
            if anchor["kind"] == "symbol":
                if ":" in tree[path]:
                    return None
                text = source_of(self.oracle.objects.blobs[tree[path]], anchor["symbol"])
                if text is None:
                    return None
                one |= {
                    "text": text,
                    "seen": symbol_text(self.oracle.objects.blobs[tree[path]], "python", one["symbol"]),
                }
            anchors.append(one)
        return self._confirmation(head, anchors)

    def _confirmation(self, head: str | None, specs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        tree = self.oracle.objects.tree(head)
        anchors = []
        for spec in specs:
            anchor = {key: spec[key] for key in ("kind", "path", "symbol", "text", "seen") if key in spec}
            dirty = {path: histories.token(file) for path, file in spec["dirty"].items()}
            if spec["kind"] in ("file", "symbol"):
                path = spec["path"]
                anchor["files"] = {path: (dirty.get(path, tree.get(path)), tree.get(path))}
            else:
                walked = oracle.Walked(self.oracle, anchor | {"files": {}})
                governed = sorted(p for p in tree.keys() | dirty.keys() if walked._governs(p))
                anchor["files"] = {p: (dirty.get(p, tree.get(p)), tree.get(p)) for p in governed}
            anchors.append(anchor)
        ancestors, here = [], head
        while here is not None and self.oracle.objects.parents[here] and len(ancestors) < 200:
            here = self.oracle.objects.parents[here][0]
            ancestors.append(here)
        return {"commit": head, "ancestors": ancestors, "anchors": anchors}

    def _event(self, name: str | None, kind: EventKind, after: dict[str, Plain]) -> None:
        self._n_events += 1
        reason = "so" if kind in (EventKind.INVALIDATED, EventKind.REINSTATED) else None
        decision = None if name is None else self._id(name)
        time = f"2026-01-01T00:00:00.{self._n_events:06}Z"
        event = Event(f"e{self._n_events}", decision, kind, time, "Ada", "cli", reason=reason, after=after)
        self.memory.add(Event.from_plain(event.to_plain()))

    def _id(self, name: str) -> DecisionId:
        return DecisionId("nm-" + "".join("abcdefghij"[int(digit)] for digit in name.zfill(8)))


def plain(verdict: Verdict) -> dict[str, Any]:
    stale = verdict.status is Status.STALE
    return {
        "status": verdict.status.value,
        "reason": verdict.reason.value if verdict.reason else None,
        "severity": verdict.severity.value if verdict.severity else None,
        "commit": verdict.commit if stale else None,
        "path": verdict.path if stale else None,
        "anchors": [None if view.gone else view.now.path for view in verdict.anchors],
        "reverted": verdict.reverted,
    }


def _anchor(plain_anchor: dict[str, Any]) -> Anchor:
    return Anchor(AnchorKind(plain_anchor["kind"]), plain_anchor["path"], plain_anchor.get("symbol"))


def _model(conf: dict[str, Any]) -> Confirmation:
    seen = tuple(
        Sighting(
            _anchor(one),
            tuple(SeenFile(path, fp, base) for path, (fp, base) in one["files"].items()),
            pack_text(one.get("seen", one["text"])) if "text" in one else None,
        )
        for one in conf["anchors"]
    )
    return Confirmation(conf["commit"], seen, pack_ancestors(conf["ancestors"]))


def source_of(data: bytes, name: str) -> bytes | None:
    """The lines of a definition with its decorators, not indented."""
    try:
        body: Any = ast.parse(data)
    except SyntaxError:
        return None
    for part in name.split("."):
        found = [node for node in body.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part]
        if not found:
            return None
        body = found[0]
    first = min([body.lineno, *(one.lineno for one in body.decorator_list)])
    lines = data.splitlines(keepends=True)[first - 1 : body.end_lineno]
    return textwrap.dedent(b"".join(lines).decode()).encode()
