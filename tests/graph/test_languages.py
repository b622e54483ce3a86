"""What each language's files become: one scenario a file under `fixtures/graph`, with its expectations below it.

`python tests/graph/test_languages.py` rewrites the expectations from what the code does now; read the difference.
"""

from __future__ import annotations

import gc
import re
import tracemalloc
from pathlib import Path

import pytest

from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.languages import CODE_LANGUAGES, language_of
from nm_lsp.graph.model import ParsedFile, Span

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "graph"
_SECTION = re.compile(r"^-- (.+) --\n", re.MULTILINE)
_EXPECTED = "expected"


def _read(scenario: Path) -> tuple[str, str, str, str]:
    """Prose, path, source and expectations of one scenario."""
    prose, path, source, *rest = _SECTION.split(scenario.read_text(encoding="utf-8"))
    return prose, path, source, rest[1] if rest else ""


def _lines(span: Span) -> str:
    return f"{span.start_line + 1}:{span.start_col}-{span.end_line + 1}:{span.end_col}"


def _render(parsed: ParsedFile) -> str:
    told = [f"language {parsed.language}", f"problem {parsed.problem}"]
    names = [node.id.partition("::")[2] or "." for node in parsed.nodes]
    for node, name in zip(parsed.nodes, names, strict=True):
        parent = "" if node.parent is None else f" in {names[node.parent]}"
        told.append(f"{node.kind.value} {name}{parent} [{_lines(node.span)}] {node.signature}")
        if node.doc:
            told.append(f"    doc {node.doc!r}")
        told += [f"    because {reason!r}" for reason in node.rationale]
    told += [f"{names[use.source]} {use.kind.value} {use.target} @{use.line + 1}" for use in parsed.references]
    told += [
        f"import {bound.alias!r} from {bound.module!r} {bound.symbol!r} @{bound.line + 1}" for bound in parsed.imports
    ]
    return "\n".join(told) + "\n"


@pytest.mark.parametrize("scenario", sorted(_FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_scenario(scenario: Path) -> None:
    _, path, source, expected = _read(scenario)
    parsed = parse_file(path, source)
    assert _render(parsed) == expected
    assert all(node.parent is None or parsed.nodes[node.parent] for node in parsed.nodes)
    data = source.encode()
    for node in parsed.nodes:
        name = data[node.name_span.start_byte : node.name_span.end_byte].decode()
        # Where a name is written, it is what the name span covers.
        assert not name or node.name.rpartition(".")[2].strip("~") in name or node.kind.value == "section"
    assert len({node.id for node in parsed.nodes}) == len(parsed.nodes)


@pytest.mark.parametrize("scenario", sorted(_FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_parsing_a_file_again_and_again_takes_no_more_memory(scenario: Path) -> None:
    _, path, source, _ = _read(scenario)
    for _ in range(3):
        parse_file(path, source)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(100):
        parse_file(path, source)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A copy of the source a parse would be twice this.
    assert after - before < 100 * len(source) / 2


def test_every_language_has_a_scenario() -> None:
    covered = {language_of(path, source) for _, path, source, _ in map(_read, _FIXTURES.glob("*.txt"))}
    assert covered >= CODE_LANGUAGES | {"markdown", "rst"}


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("a/b.PY", "", "python"),
        ("bin/run", "#!/usr/bin/env python3\n", "python"),
        ("bin/run", "#!/usr/bin/env -S python3 -u\n", "python"),
        ("bin/run", "#!/bin/sh -e\n", "bash"),
        ("bin/run", "#!/usr/bin/perl\n", None),
        ("bin/run", "", None),
        ("a.h", "#include <stdio.h>\nint f(void);\n", "c"),
        ("a.h", "namespace a {\nclass B;\n}\n", "cpp"),
        ("docs/a.txt", "Title\n=====\n\nText\n", "rst"),
        ("docs/a.txt", "=====\nTitle\n=====\n", "rst"),
        ("docs/a.txt", "Just text.\n---\n", None),
        ("requirements.txt", "a==1\nb==2\n", None),
        ("Rakefile", "", "ruby"),
        ("Makefile", "", "make"),
        ("a.lock", "", None),
        (".toml", "", None),
    ],
)
def test_language_of(path: str, head: str, language: str | None) -> None:
    assert language_of(path, head) == language


if __name__ == "__main__":
    for fixture in sorted(_FIXTURES.glob("*.txt")):
        prose, path, source, _ = _read(fixture)
        told = _render(parse_file(path, source))
        fixture.write_text(f"{prose}-- {path} --\n{source}-- {_EXPECTED} --\n{told}", encoding="utf-8")
