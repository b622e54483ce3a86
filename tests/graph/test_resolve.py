"""Names resolve to definitions: through imports, inside classes and their bases, by unique name, and not at all."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.model import Confidence, EdgeKind
from nm_lsp.graph.resolve import ModuleIndex
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.segment import NO_KEY, FileStamp, IndexedFile, SegmentBuilder


def corpus_of(text: str) -> Corpus:
    """A corpus of a text with `-- path --` lines."""
    builder = SegmentBuilder()
    for part in text.split("-- ")[1:]:
        path, _, source = part.partition(" --\n")
        parsed = parse_file(path, source)
        n = len(parsed.nodes)
        builder.add(IndexedFile(parsed, FileStamp(bytes(16), 0, 0), source.isascii(), [{}] * n, [NO_KEY] * n))
    return Corpus([(builder.build(), frozenset())])


def edges(corpus: Corpus) -> set[tuple[str, str, str, str]]:
    """(source, kind, target, confidence) of all uses and imports."""
    found = set()
    for file in corpus.file_numbers.values():
        for doc in corpus.file_docs(file):
            for _, targets in corpus.references_from(doc):
                for t in targets:
                    found.add((corpus.id(doc), t.kind.value, corpus.id(t.doc), t.confidence.value))
        for target in corpus.resolver.imported_files(file):
            found.add((corpus.file_path(file), "imports", corpus.file_path(target), "resolved"))
    return found


CASES = {
    "python": (
        """
-- src/app/base.py --
class Base:
    def save(self): pass
def helper(): pass
-- src/app/__init__.py --
from .base import Base
-- src/app/user.py --
from app.base import Base, helper as h
from . import base
class User(Base):
    def store(self):
        self.save()
        h()
        base.helper()
-- tests/test_user.py --
from app import Base
from app.user import User
def test():
    User().store()
    Base()
""",
        {
            ("src/app/user.py::User", "inherits", "src/app/base.py::Base", "resolved"),
            ("src/app/user.py::User.store", "calls", "src/app/base.py::Base.save", "resolved"),
            ("src/app/user.py::User.store", "calls", "src/app/base.py::helper", "resolved"),
            ("tests/test_user.py::test", "instantiates", "src/app/user.py::User", "resolved"),
            ("tests/test_user.py::test", "instantiates", "src/app/base.py::Base", "resolved"),
            ("src/app/user.py", "imports", "src/app/base.py", "resolved"),
            ("tests/test_user.py", "imports", "src/app/user.py", "resolved"),
        },
    ),
    "typescript": (
        """
-- web/lib/store.ts --
export class Store { put(x: number) {} }
export function open(): Store { return new Store() }
-- web/main.ts --
import { Store, open } from './lib/store'
class Cache extends Store {}
export function run() { const s = open(); const t = new Cache() }
""",
        {
            ("web/main.ts::Cache", "inherits", "web/lib/store.ts::Store", "resolved"),
            ("web/main.ts::run", "calls", "web/lib/store.ts::open", "resolved"),
            ("web/main.ts::run", "instantiates", "web/main.ts::Cache", "resolved"),
            ("web/lib/store.ts::open", "instantiates", "web/lib/store.ts::Store", "resolved"),
            ("web/main.ts", "imports", "web/lib/store.ts", "resolved"),
        },
    ),
    "java": (
        """
-- src/main/java/com/acme/Base.java --
package com.acme;
public class Base { public void run() {} }
-- src/main/java/com/acme/app/Main.java --
package com.acme.app;
import com.acme.Base;
public class Main extends Base { void go() { Base b = new Base(); this.run(); } }
""",
        {
            (
                "src/main/java/com/acme/app/Main.java::Main",
                "inherits",
                "src/main/java/com/acme/Base.java::Base",
                "resolved",
            ),
            (
                "src/main/java/com/acme/app/Main.java::Main.go",
                "instantiates",
                "src/main/java/com/acme/Base.java::Base",
                "resolved",
            ),
            (
                "src/main/java/com/acme/app/Main.java::Main.go",
                "calls",
                "src/main/java/com/acme/Base.java::Base.run",
                "resolved",
            ),
        },
    ),
    "go": (
        """
-- store/store.go --
package store
type Store struct{}
func Open() *Store { return nil }
-- cmd/main.go --
package main
import "example.com/x/store"
func main() { s := store.Open(); _ = s }
""",
        {
            ("cmd/main.go::main", "calls", "store/store.go::Open", "resolved"),
            ("cmd/main.go", "imports", "store/store.go", "resolved"),
        },
    ),
    "rust": (
        """
-- src/store.rs --
pub struct Store;
pub fn open() -> Store { Store }
-- src/main.rs --
mod store;
use crate::store::open;
fn main() { let s = open(); }
""",
        {("src/main.rs::main", "calls", "src/store.rs::open", "resolved")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_edges_cross_files_through_imports(name: str) -> None:
    text, expected = CASES[name]
    assert expected <= edges(corpus_of(text))


def test_a_unique_name_is_found_and_an_ambiguous_one_says_so() -> None:
    corpus = corpus_of(
        """
-- a.py --
def only(): pass
def twice(): pass
-- b.py --
def twice(): pass
-- c.py --
def use():
    only()
    twice()
"""
    )
    found = edges(corpus)
    assert ("c.py::use", "calls", "a.py::only", Confidence.UNIQUE.value) in found
    assert ("c.py::use", "calls", "a.py::twice", Confidence.AMBIGUOUS.value) in found


def test_a_name_of_the_outside_world_means_nothing_here() -> None:
    corpus = corpus_of(
        """
-- a.py --
import os
from json import dumps
def use():
    os.getcwd()
    dumps({})
-- b.py --
def dumps(): pass
"""
    )
    assert not [edge for edge in edges(corpus) if edge[0] == "a.py::use"]


def test_the_nearest_definition_of_a_file_is_meant() -> None:
    corpus = corpus_of(
        """
-- a.py --
def run(): pass
class C:
    def run(self): pass
    def go(self):
        self.run()
        run()
"""
    )
    calls = {edge[2] for edge in edges(corpus) if edge[0] == "a.py::C.go"}
    assert calls == {"a.py::C.run", "a.py::run"}


def test_users_of_a_definition_are_found() -> None:
    corpus = corpus_of(CASES["python"][0])
    base = corpus.find("src/app/base.py::Base")
    assert base is not None
    users = {(corpus.id(doc), target.kind) for doc, target in corpus.references_to(base)}
    assert ("src/app/user.py::User", EdgeKind.INHERITS) in users
    assert ("tests/test_user.py::test", EdgeKind.INSTANTIATES) in users


def test_classes_that_inherit_from_themselves_end() -> None:
    corpus = corpus_of(
        """
-- a.py --
class A(B):
    def go(self): self.missing()
class B(A): pass
class C(self.C):
    def go(self): self.missing()
"""
    )
    assert [edge for edge in edges(corpus) if edge[1] == "inherits"]


_FOLDERS = st.lists(st.sampled_from(["a", "b", "a-b", "a.b", "z"]), max_size=4)
_PYTHON = st.builds(
    lambda folders, name: "/".join([*folders, f"{name}.py"]), _FOLDERS, st.sampled_from(["a", "b", "m"])
)


@given(st.lists(_PYTHON, unique=True, max_size=12), _PYTHON, st.lists(st.sampled_from("abm"), min_size=1, max_size=3))
def test_of_modules_that_end_alike_the_nearest_are_meant(paths: list[str], origin: str, module: list[str]) -> None:
    def shared(path: str) -> int:
        pairs = zip(path.split("/"), origin.split("/"), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    index = ModuleIndex(enumerate(paths))
    wanted = "/".join(module)
    meant = {n: path[:-3] for n, path in enumerate(paths) if f"/{path[:-3]}".endswith(f"/{wanted}")}
    most = max(map(shared, meant.values()), default=0)
    expected = [n for n, path in meant.items() if shared(path) == most]
    assert index.files(origin, ".".join(module), "python") == expected
