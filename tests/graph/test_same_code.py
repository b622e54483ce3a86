"""Same code or not: tables for every rule, and `ast.dump` as the oracle for Python over thousands of edits."""

from __future__ import annotations

import ast
import random
import re
import textwrap
import warnings
from pathlib import Path

import pytest

from nm_lsp.graph.languages import CODE_LANGUAGES, code_language, language_of
from nm_lsp.graph.same_code import same_code, same_symbol, symbol_text
from nm_lsp.graph.source import Source
from nm_lsp.graph.syntax import Limit

_SAMPLE = '''#!/usr/bin/env python
"""Docs of the module.

    Indented.
"""
from __future__ import annotations
import os.path as p, sys  # noqa: F401
from . import (a, b as c)

LIMIT: int = 3 + 4 * (2 - 1)


@decorate(1, key="v")
class Shop(Base, metaclass=Meta):
    """A shop."""

    rate = .5
    names = ["a", 'b' "c", f"x{p!r:>{LIMIT}} y {  sys  }"]

    async def sell(self, item, /, *args, n=1, **kw) -> dict[str, int]:
        # Walks.
        for i, part in enumerate(item):
            if part and not i:
                yield_ = await part
            elif i > 3:
                continue
            else:
                total = i \\
                    + 1
                return {i: total, **kw}
        try:
            with open(item) as f, p:
                del f
        except (OSError, ValueError) as error:
            raise Shop() from error
        finally:
            pass
        return [x for y in args if y for x in y]

    def text(self):
        return """
        many
          lines
        """, rb"\\x00", "tab\\t  two"

def top(x=lambda a: a + 1):
    while x:
        x -= 1
        assert x, "no"
    else:
        print(x)
    match x:
        case {"k": [1, *rest]} if rest:
            return -x ** 2
        case _:
            global LIMIT
            LIMIT = x if x else (x, )
    return x
'''


def _dump(text: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.dump(ast.parse(text))
        except (SyntaxError, ValueError):
            return None


def _edit(lines: list[str], rng: random.Random) -> list[str]:
    """One random edit: of layout, of meaning, or one that breaks the file."""
    lines = list(lines)
    at = rng.randrange(len(lines))
    line = lines[at]
    match rng.randrange(13):
        case 0:
            lines[at] = "    " + line
        case 1:
            lines[at] = line.removeprefix("    ")
        case 2:
            lines.insert(at, " " * rng.randrange(9) + "# a comment")
        case 3:
            lines.insert(at, "")
        case 4:
            lines[at] = line + "  # trailing"
        case 5:
            lines[at] = re.sub(r"(?<=\S) (?=\S)", "  ", line, count=rng.randrange(1, 3))
        case 6:
            words = sorted(set(re.findall(r"\b[a-z_]{2,}\b", line)))
            if words:
                lines[at] = re.sub(rf"\b{rng.choice(words)}\b", "renamed", line, count=1)
        case 7:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 8:
            lines[at] = line.replace(" ", " \\\n ", 1) if line.strip() else line
        case 9:
            lines[at] = re.sub(r"= (.+)$", r"= (\1)", line)
        case 10:
            del lines[at]
        case 11:
            lines[at] = line.replace('"', "'") if rng.random() < 0.5 else line.replace("'", '"')
        case _:
            spot = rng.randrange(len(line) + 1)
            lines[at] = line[:spot] + rng.choice(" \t1x.,()[]:;'\"\\#") + line[spot:]
    return lines


def test_same_code_never_hides_a_change_of_meaning() -> None:
    rng = random.Random(7)
    seen = {True: 0, False: 0}
    original = _SAMPLE.split("\n")
    for _ in range(2_500):
        lines = original
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            lines = _edit(lines, rng)
        old, new = _SAMPLE, "\n".join(lines)
        same = same_code(old.encode(), new.encode(), "python")
        dump = _dump(new)
        seen[same] += 1
        if same and dump is not None:
            assert dump == _dump(old), new
        assert not same or old == new or dump is not None, new
    assert seen[True] > 300
    assert seen[False] > 300


def test_layout_edits_are_the_same_code() -> None:
    """Comments, blank lines, spacing in expressions, continuation, re-indentation of a block that holds no string."""
    rng = random.Random(11)
    source = re.sub(r'return """.*?""", ', "return ", _SAMPLE, flags=re.DOTALL)
    compared = 0
    for _ in range(800):
        lines: list[str] = []
        for line in source.split("\n"):
            roll = rng.random()
            inside_docstring = line in ("", "    Indented.", '"""') or line.startswith('"""')
            if roll < 0.03 and lines and not inside_docstring and not lines[-1].endswith("\\"):
                lines.append(" " * rng.randrange(12) + "# words")
            if 0.03 < roll < 0.06 and lines and not inside_docstring and not lines[-1].endswith("\\"):
                lines.append(" " * rng.randrange(3))
            if 0.06 < roll < 0.1 and "noqa" not in line and lines and not inside_docstring and not line.endswith("\\"):
                line += "   # why"
            if 0.1 < roll < 0.14 and '"' not in line:
                line = re.sub(r" ([=+*-]|->|in|if) ", r"   \1  ", line)
            lines.append(line)
        new = "\n".join(lines)
        if _dump(new) == _dump(source):
            compared += 1
            assert same_code(source.encode(), new.encode(), "python"), new
    assert compared > 600


def test_reindenting_a_whole_block_is_layout_and_leaving_it_is_not() -> None:
    old = b"if a:\n    b()\n    c()\nd()\n"
    assert same_code(old, b"if a:\n  b()\n  c()\nd()\n", "python")
    assert same_code(old, b"if a:\n\tb()\n\tc()\nd()\n", "python")
    assert not same_code(old, b"if a:\n    b()\nc()\nd()\n", "python")
    assert not same_code(old, b"if a:\n    b()\n    c()\n    d()\n", "python")


@pytest.mark.parametrize(
    ("language", "old", "new", "same"),
    [
        ("python", "x = 1\n", "x = 1  # one\n", True),
        ("python", "x = 1  # noqa\n", "x = 1\n", False),
        ("python", "x = f()  # type: int\n", "x = f()  # type: str\n", False),
        ("python", "x = f()  # noqa # type: ignore\n", "x = f()  # noqa\n", False),
        ("python", "# Takes the type: a text.\nx = 1\n", "x = 1\n", True),
        ("python", "#!/usr/bin/python\nx = 1\n", "#!/usr/bin/python3\nx = 1\n", False),
        ("python", "# -*- coding: utf-8 -*-\n", "# -*- coding: latin-1 -*-\n", False),
        ("python", 'def f():\n    "a"\n', 'def f():\n    "b"\n', False),
        ("python", "x = 'a  b'\n", "x = 'a b'\n", False),
        ("python", "x = '\\n  \\n'\n", "x = '\\n \\n'\n", False),
        ("python", "x = f'{a} b'\n", "x = f'{a}  b'\n", False),
        ("python", "x = (1)\n", "x = 1\n", False),
        ("python", "x = 1\n", "x = 1\r\n", True),
        ("python", "def f(:\n", "def f(: \n", False),
        ("python", "x = 1;\n", "x = 1\n", False),
        ("javascript", "f(1); // a\n", "f( 1 );\n", True),
        ("javascript", "return_\n(x)", "return_(x)", True),
        ("javascript", "function f() { return x }", "function f() { return\nx }", False),
        ("javascript", "x = `a ${ b } c`", "x = `a ${b} c`", True),
        ("javascript", "x = `a  ${b}`", "x = `a ${b}`", False),
        ("javascript", "x = /a b/", "x = /a  b/", False),
        ("javascript", "/* eslint-disable */ f()", "f()", False),
        ("typescript", "let x : number = 1", "let x: number=1 // one", True),
        ("tsx", "const a = <b>c  d</b>", "const a = <b>c d</b>", False),
        ("java", "class A { /** x */ int f() { return 1; } }", "class A {\n int f() { return 1; } }", True),
        ("java", "class A { int f() { return 1; } }", "class A { int f() { return 2; } }", False),
        ("go", "package p\n\nfunc f() { g() }\n", "package p\nfunc f() {\n\tg() // x\n}\n", True),
        ("go", "//go:build linux\n\npackage p\n", "//go:build darwin\n\npackage p\n", False),
        ("go", "//go:embed a\nvar x string\n", "var x string\n", False),
        ("rust", "/// a\nfn f() {}\n", "/// b\nfn f( ) { }\n", True),
        ("rust", "fn f() { a; b }\n", "fn f() { a; b; }\n", False),
        ("c", "int f() { return 1; }\n", "int f()\n{\n  return 1; /* x */\n}\n", True),
        ("c", "#define A (x)\n", "#define A(x)\n", False),
        ("c", "#pragma once\n", "#pragma pack\n", False),
        ("cpp", 'auto s = R"(a  b)";\n', 'auto s = R"(a b)";\n', False),
        ("csharp", 'class A { string s = $"{a}  b"; }', 'class A { string s = $"{a} b"; }', False),
        ("csharp", "class A { int F() => 1; }", "class A\n{\n  int F() => 1; // x\n}", True),
        ("ruby", "def f\n  g 1\nend\n", "def f\n    g 1 # x\nend\n", True),
        ("ruby", "# frozen_string_literal: true\nf\n", "f\n", False),
        ("ruby", "x = <<~A\n  a\n   b\nA\n", "x = <<~A\n  a\n  b\nA\n", False),
        ("php", "<?php f(1); // a\n", "<?php\nf( 1 );\n", True),
        ("php", "<p>a  b</p><?php f();", "<p>a b</p><?php f();", False),
        ("bash", "f  a   b # x\n", "f a b\n", True),
        ("bash", 'f "a  b"\n', 'f "a b"\n', False),
        ("bash", 'f "$a  b"\n', 'f "$a b"\n', False),
        ("bash", "f a\nb\n", "f a b\n", False),
        ("bash", "cat <<A\na  b\nA\n", "cat <<A\na b\nA\n", False),
        ("markdown", "# A  \ntext\r\n", "# A\ntext\n", True),
        ("markdown", "# A\n\ntext\n", "# A\ntext\n", False),
        ("markdown", "- a\n  - b\n", "- a\n- b\n", False),
        ("yaml", "a:\n  b: 1 \n", "a:\n  b: 1\n", True),
        ("yaml", "a:\n  b: 1\n", "a:\n    b: 1\n", False),
        ("make", "a:\n\tb\t\n", "a:\n\tb\n", True),
        ("make", "a:\n\tb\n", "a:\n        b\n", False),
        ("json", "{}", "{ }", False),
        (None, "a b", "a  b", False),
    ],
)
def test_same_code(language: str | None, old: str, new: str, same: bool) -> None:
    assert same_code(old.encode(), new.encode(), language) is same
    assert same_code(new.encode(), old.encode(), language) is same


_HOLDERS = {
    "python": ("class A:\n{}\n", "    @p\n    def f(self):\n        return 1\n", "A.f", "1"),
    "javascript": ("class A {{\n{}\n}}\n", "  async *f(a = 1) {\n    return 1\n  }\n", "A.f", "1"),
    "typescript": ("interface A {{\n{}\n}}\n", "  f(a: number): 1\n", "A.f", "1"),
    "java": ("class A {{\n{}\n}}\n", "  @O public int f() {\n    return 1;\n  }\n", "A.f", "1"),
    "go": ("package p\n{}\n", "func (a *A) f() int {\n\treturn 1\n}\n", "A.f", "1"),
    "rust": ("impl A {{\n{}\n}}\n", "  #[inline]\n  fn f(&self) -> u8 {\n    1\n  }\n", "A.f", "1"),
    "cpp": ("class A {{\n{}\n}};\n", "  virtual int f() const override { return 1; }\n", "A.f", "1"),
    "csharp": ("class A {{\n{}\n}}\n", "  public override int F() {\n    return 1;\n  }\n", "A.F", "1"),
    "ruby": ("class A\n{}\nend\n", "  def self.f\n    1\n  end\n", "A.f", "1"),
    "php": ("<?php class A {{\n{}\n}}\n", "  public function f() {\n    return 1;\n  }\n", "A.f", "1"),
    "c": ("{}", "static int f(void) {\n  return 1;\n}\n", "f", "1"),
    "bash": ("{}", "f() {\n  echo 1\n}\n", "f", "1"),
}


@pytest.mark.parametrize("language", _HOLDERS)
def test_a_symbol_compared_by_itself(language: str) -> None:
    holder, member, name, value = _HOLDERS[language]
    old = symbol_text(holder.format(member).encode(), language, name)
    comment = "#" if language in ("python", "ruby", "bash") else "//"
    deeper = textwrap.indent(member, "\t" if language != "python" else "    ")
    moved = f"{comment} of another holder\n\n{holder.format(deeper)}"
    if language == "php":
        moved = holder.format(f"// of another holder\n\n{deeper}")
    layout = symbol_text(moved.encode(), language, name)
    changed = symbol_text(holder.format(member.replace(value, "2")).encode(), language, name)
    assert old is not None
    assert layout is not None
    assert changed is not None
    assert old != layout or language in ("c", "bash", "go")
    assert same_symbol(old, layout, language)
    assert not same_symbol(old, changed, language)


def test_symbol_text_is_the_span_with_decorators_or_none() -> None:
    source = b"\xef\xbb\xbfx = 1\n\nclass A:\n    # Above.\n    @p\n    def f(self): ...\n"
    source += b"    @p.setter\n    def f(self, v): ...\n"
    assert symbol_text(source, "python", "A.f") == b"    # Above.\n    @p\n    def f(self): ..."
    assert symbol_text(source, "python", "A.f#2") == b"    @p.setter\n    def f(self, v): ..."
    assert symbol_text(source, "python", "A.f#3") is None
    assert symbol_text(source, "python", "A.g") is None
    assert symbol_text(source, "json", "A") is None
    assert symbol_text(source, None, "A") is None
    assert symbol_text(b"# A\n\ntext\n\n## B\n\nmore\n# C\n", "markdown", "A.B") == b"## B\n\nmore\n"


@pytest.mark.parametrize(
    ("language", "source", "name", "old", "new"),
    [
        ("rust", "#[inline] pub fn f() {}\n", "f", "inline", "cold"),
        ("rust", "#[a]\n\n// c\n#[b] #[c]\npub fn f() {}\n", "f", "#[a]", "#[d]"),
        ("typescript", "class A {\n  @Guard(1) f() {}\n}\n", "A.f", "1", "2"),
        ("typescript", "class A { x = 1; @Get() @Guard(1)\n\n  async f() {} }\n", "A.f", "Get", "Post"),
        ("ruby", "class A\n  memoize private def f\n    1\n  end\nend\n", "A.f", "memoize ", ""),
        ("ruby", "class A\n  private_class_method def self.f\n  end\nend\n", "A.f", "private_class_method ", ""),
        ("typescript", "function f(a: 1): 1;\nfunction f(a: 2): 2;\nfunction f(a) { return a }\n", "f", "rn a", "rn 0"),
        ("typescript", "class A { f(a: 1): 1; f(a: any) { return a } }\n", "A.f", "rn a", "rn 0"),
        ("cpp", "class A { public: int f(); };\nint A::f() { return 1; }\n", "A.f", "1", "2"),
        ("python", "@t.overload\ndef f(a: int): ...\ndef f(a):\n    return a\n", "f", "return a", "return 1"),
    ],
)
def test_what_makes_a_symbol_what_it_is_is_part_of_it(
    language: str, source: str, name: str, old: str, new: str
) -> None:
    """Attributes wherever they stand, what wraps a definition, and the code of what was declared before."""
    seen, now = (symbol_text(text.encode(), language, name) for text in (source, source.replace(old, new, 1)))
    spaced = symbol_text(source.replace("(", " (").encode(), language, name)
    assert seen is not None
    assert now is not None
    assert spaced is not None
    assert not same_symbol(seen, now, language)
    assert same_symbol(seen, spaced, language)


def test_a_python_method_moved_out_of_its_class_keeps_the_text_of_its_strings() -> None:
    inside = b'    def f(self):\n        return """\n        a"""'
    outside = b'def f(self):\n    return """\n    a"""'
    same_string = b'def f(self):\n    return """\n        a"""'
    assert not same_symbol(inside, outside, "python")
    assert same_symbol(inside, same_string, "python")


def test_a_directive_above_a_symbol_counts_however_deep() -> None:
    old, new = b"    # pylint: disable=x\n    def f(self): ...", b"    def f(self): ..."
    assert not same_symbol(old, new, "python")
    assert same_symbol(b"    # plain\n    def f(self): ...", new, "python")
    assert same_symbol(old, b"# pylint: disable=x\ndef f(self): ...", "python")


@pytest.mark.parametrize("depth", [5_000])
def test_depth_costs_nothing(depth: int) -> None:
    old = b"x = " + b"1+" * depth + b"1\n"
    assert same_code(old, old.replace(b"+", b" + "), "python")
    assert not same_code(old, old + b"y\n", "python")


_SCENARIOS = Path(__file__).parents[2] / "fixtures" / "graph"


@pytest.mark.parametrize("scenario", sorted(_SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_no_byte_outside_a_comment_is_left_out(scenario: Path) -> None:
    """In every language: whatever is put in at whatever place is a change, unless a comment holds it."""
    _, path, source, *_ = re.split(r"^-- (.+) --\n", scenario.read_text(encoding="utf-8"), flags=re.MULTILINE)
    language = language_of(path, source)
    old = source.encode()
    rng = random.Random(5)
    for _ in range(150):
        at, put = rng.randrange(len(old)), rng.choice((b"q", b"7", b"(", b'"', b"=", b";"))
        new = old[:at] + put + old[at:]
        if same_code(old, new, language):
            assert language in CODE_LANGUAGES
            parsed = Source("", new, code_language(language), Limit(5, None))
            assert any(start <= at < end for start, end in parsed.comments), new[max(0, at - 30) : at + 30]
