"""Needle questions: the first sentence of a doc comment asks for its definition.

The comment is blanked out (not deleted, so that line numbers stay) in the copy that is indexed. Which definitions are
asked for is decided by a hash of their id, so that it does not change when others come or go.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from retrieval_corpus import parse_all

from nm_lsp.graph.model import Node, NodeKind, ParsedFile
from nm_lsp.search.embedding_text import first_sentences
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.tokens import terms_in

DEFINITIONS = frozenset({NodeKind.CLASS, NodeKind.FUNCTION, NodeKind.METHOD})
COMMENT_LINE = re.compile(r"^\s*(///?!?|//|/\*|\*|#(?!\[))")
MIN_TERMS, MAX_CHARS = 4, 220


@dataclass(frozen=True)
class Needle:
    """`start` and `end` are lines of the definition, from 1."""

    question: str
    path: str
    start: int
    end: int
    name: str


def make_needles(texts: Mapping[str, str], count: int) -> tuple[list[Needle], dict[str, str]]:
    """At most `count` needles, and the texts with their comments blanked out."""
    found: list[tuple[Needle, Node, ParsedFile]] = []
    for parsed in parse_all(texts):
        if role_of(parsed.path) is not Role.SOURCE or parsed.is_generated:
            continue
        for node in parsed.nodes:
            question = first_sentence(node.doc)
            if node.kind not in DEFINITIONS or question.startswith("@") or len(terms_in(question)) < MIN_TERMS:
                continue
            # Overloads and the implementation behind them are one definition.
            spans = [n.span for n in parsed.nodes if n.qualified_name == node.qualified_name]
            lines = (min(s.start_line for s in spans) + 1, max(s.end_line for s in spans) + 1)
            found.append((Needle(question, parsed.path, *lines, node.name), node, parsed))
    asked = Counter(needle.question for needle, _, _ in found)
    unique = [entry for entry in found if asked[entry[0].question] == 1]
    unique.sort(key=lambda entry: hashlib.blake2b(str(entry[1].id).encode()).digest())
    blanked = {path: text.split("\n") for path, text in texts.items()}
    needles = []
    for needle, node, parsed in unique:
        if len(needles) == count:
            break
        rows = _documentation_rows(texts[parsed.path], blanked[parsed.path], node, parsed.language)
        if rows:
            for row in rows:
                blanked[parsed.path][row] = ""
            needles.append(needle)
    return needles, {path: "\n".join(lines) for path, lines in blanked.items()}


def _documentation_rows(text: str, lines: list[str], node: Node, language: str) -> range:
    if language == "python":
        return _docstring_rows(text, node)
    end = start = node.span.start_line
    while end <= node.name_span.start_line and end < len(lines) and COMMENT_LINE.match(lines[end]):
        end += 1
    return range(start, end)


def _docstring_rows(text: str, node: Node) -> range:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return range(0)
    for found in ast.walk(tree):
        if isinstance(found, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and found.name == node.name:
            first = found.body[0]
            inside = node.span.start_line < first.lineno <= node.span.end_line + 1
            # A body of nothing but its docstring would no longer parse.
            if inside and len(found.body) > 1 and ast.get_docstring(found) and first.end_lineno:
                return range(first.lineno - 1, first.end_lineno)
    return range(0)


def first_sentence(doc: str) -> str:
    paragraph = first_sentences(doc, MAX_CHARS)
    return re.split(r"(?<=[a-z)`][.!?])\s", paragraph, maxsplit=1)[0].rstrip(".")
