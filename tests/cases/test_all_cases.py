"""Every case has a test that bears its id, and the cases that cannot run here are named with their reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CASES = {
    "L": (1, 3, 4, 5, 6, 7, 8, 9),
    "P": (1, 3, 4, 5, 6, 7, 8, 9),
    "S": (1, 2, 3, 4, 5, 7),
    "U": (1, 2, 3, 4, 6, 7),
    "I": (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21),
    "G": (1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 18, 19, 20, 21, 23, 24, 25, 27, 29, 30, 31),
    "D": (1, 3, 4, 5, 6, 7, 8),
    "K": (1, 2, 3, 4, 5),
    "Q": (1, 3, 4, 5, 7, 9, 11),
    "Y": (1, 2, 3, 4, 6, 7),
    "X": (1, 2, 3),
    "E": (1, 2),
}
"""Failures that users of such tools reported in public: lifecycle, protocol, documents, URIs, indexing and workspaces,
git, display, decisions, SQLite, synapses, conversations, clients."""

NO_CONVERSATIONS = "conversations of agents are not read: DESIGN names that as a later face"


@pytest.mark.skip(reason=NO_CONVERSATIONS)
def test_x01_one_damaged_line_hides_nothing() -> None:
    """X01: a JSONL line that is cut, empty or of another shape is counted, and all good ones are used."""


@pytest.mark.skip(reason=NO_CONVERSATIONS)
def test_x02_long_lines_and_files_are_complete() -> None:
    """X02: a line of 25 MB and a file of 300 MB are read in bounded memory."""


@pytest.mark.skip(reason=NO_CONVERSATIONS)
def test_x03_a_format_that_changed_is_a_failure() -> None:
    """X03: an importer that recognised nothing says so."""


def test_every_case_is_named_by_a_test() -> None:
    wanted = {f"{letter.lower()}{number:02}" for letter, numbers in CASES.items() for number in numbers}
    named = {identity for path in TESTS.rglob("test_*.py") for identity in ids_of(path)}
    assert len(wanted) == 101
    assert wanted - named == set()


def ids_of(path: Path) -> set[str]:
    """The ids of cases in the names of a file's test functions."""
    names = [
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    return {found for name in names for found in re.findall(r"(?<=_)[a-z]\d\d(?=_|$)", name)}
