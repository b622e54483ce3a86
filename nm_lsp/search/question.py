"""What a question asks: its kind, its concepts, what part of a project it is about, and how complex it is.

A *concept* is a word of the question with everything that may stand for it in code; coverage counts concepts, so that a
word and its abbreviation are one. Pure functions of the question's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from nm_lsp.search.abbreviations import ALTERNATIVES
from nm_lsp.search.roles import Role
from nm_lsp.search.stemming import stem
from nm_lsp.search.tokens import WHOLE, parts_of, whole, word_terms, words_of
from nm_lsp.search.wordlists import word_set

ABBREVIATION_WEIGHT: Final = 0.4
PAIR_WEIGHT: Final = 0.6
MAX_CONCEPTS: Final = 32
"""A longer question is a pasted text; its first words say what it is about."""


class QuestionKind(Enum):
    IDENTIFIER = "identifier"  # one name, perhaps dotted: should_strip_auth, Response.iter_lines
    PATH = "path"  # src/requests/auth.py, sessions.py
    WORDS = "words"  # up to three words
    SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class Concept:
    """`word` as asked; `terms` are (term, weight). Only concepts that count take part in coverage."""

    word: str
    terms: tuple[tuple[str, float], ...]
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    kind: QuestionKind
    concepts: tuple[Concept, ...]
    names: tuple[str, ...]
    """Names of code in it, as written, without their owners: `should_strip_auth`, `iter_lines`."""
    owner: str
    """For a dotted identifier what stands before the last name, else ""."""
    wants: frozenset[Role]
    """Roles of files it asks for besides source."""
    complexity: float


_IDENTIFIER = re.compile(r"`?((?:[^\W\d]|\$)[\w$]*(?:(?:\.|::|#|->)[\w$]+)*)(?:\(\))?`?")
_PATH = re.compile(r"[\w.@+~-]*(?:/[\w.@+~-]+)+/?|[\w.@+-]+\.[A-Za-z]{1,5}")
_EXTENSION = word_set(
    """py pyi js jsx mjs cjs ts tsx mts cts java go rs c h cc cpp cxx hpp hh cs rb php sh bash md rst toml yaml yml json
    cfg ini txt html css"""
)
_CODE_WORD = re.compile(r"`([^`\s]+)`|\b([A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)*)\b")
_COMPOUND = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|^_+[a-z]")

_WANTS: Final = (
    (
        Role.TEST,
        re.compile(r"\b(tests|unit[ -]tests?|test (?:cases?|suite|for|that|of)|fixtures?)\b|^test\b", re.IGNORECASE),
    ),
    (
        Role.DOCS,
        re.compile(r"\b(docs|documentation|documented|changelog|release notes|readme|tutorial|guide)\b", re.IGNORECASE),
    ),
    (Role.EXAMPLE, re.compile(r"\b(examples?|samples?|demos?|tutorial)\b", re.IGNORECASE)),
    (
        Role.CONFIG,
        re.compile(r"\b(pyproject|package\.json|toml|ya?ml|(?:config(?:uration)?|settings) files?)\b", re.IGNORECASE),
    ),
    (Role.GENERATED, re.compile(r"\bgenerated\b", re.IGNORECASE)),
    (Role.STUB, re.compile(r"\b(stubs?|pyi|declarations?)\b", re.IGNORECASE)),
    (Role.VENDORED, re.compile(r"\b(vendored|third[- ]party)\b", re.IGNORECASE)),
)

_RELATIONS: Final = word_set(
    """how why when where between through across before after flow versus vs compare differ interact relate affect
    depend"""
)

# Words that carry a question rather than its subject. They stay searchable but hardly count as evidence.
_CARRIERS: Final = frozenset(
    stem(word)
    for word in word_set(
        """find show tell explain describe code function method class implement implementation handle work works use
        used make made give take keep go goes give given want need thing way something someone several different first
        last new another own certain one two many part place happen best good long"""
    )
)
# Words that name the role of a file: where the question asks for that role, they have done their work.
_ROLE_WORDS: Final = frozenset(
    stem(word) for word in word_set("test unit case suite doc documentation guide tutorial example sample demo stub")
)
CARRIER_WEIGHT: Final = 0.35


def understand(text: str) -> Question:
    """Analyse a question. An empty one has no concepts."""
    stripped = text.strip().strip("?!").strip()
    names, owner = _names(stripped)
    wants = frozenset(role for role, pattern in _WANTS if pattern.search(stripped))
    kind = _kind(stripped)
    return Question(
        text=text,
        kind=kind,
        concepts=tuple(_concepts(stripped, wants))[:MAX_CONCEPTS],
        names=names,
        owner=owner,
        wants=wants,
        complexity=complexity(stripped),
    )


def complexity(text: str) -> float:
    """How much a question asks for, in [0, 1]:

    0.6 · min(1, content words / 12) + 0.25 · [it asks for a relation] + 0.15 · min(1, names of code / 2)

    A content word is one that is no stop word; relations are how, why, when, between, … (see `_RELATIONS`).
    """
    words = words_of(text)
    n_content = sum(1 for word in words if word_terms(word))
    asks_relation = any(word.lower() in _RELATIONS for word in words)
    n_names = sum(1 for word in words if _COMPOUND.search(word))
    return 0.6 * min(1.0, n_content / 12) + 0.25 * asks_relation + 0.15 * min(1.0, n_names / 2)


def _kind(text: str) -> QuestionKind:
    if _IDENTIFIER.fullmatch(text) and not _has_extension(text):
        return QuestionKind.IDENTIFIER
    if _PATH.fullmatch(text) and ("/" in text or _has_extension(text)):
        return QuestionKind.PATH
    return QuestionKind.WORDS if len(words_of(text)) <= 3 else QuestionKind.SENTENCE


def _has_extension(text: str) -> bool:
    return "." in text and text.rpartition(".")[2].lower() in _EXTENSION


def _names(text: str) -> tuple[tuple[str, ...], str]:
    single = _IDENTIFIER.fullmatch(text)
    if single and not _has_extension(text):
        *owners, name = re.split(r"\.|::|#|->", single.group(1))
        return (name,), ".".join(owners)
    names = []
    for match in _CODE_WORD.finditer(text):
        written = match.group(1) or match.group(2)
        last = re.split(r"\.|::", written.removesuffix("()"))[-1]
        if match.group(1) or _COMPOUND.search(last):
            names.append(last)
    return tuple(dict.fromkeys(names)), ""


def _concepts(text: str, wants: frozenset[Role]) -> Iterator[Concept]:
    seen: set[str] = set()
    previous = ""
    for word in words_of(text):
        compound = [term for term in word_terms(word) if term.startswith(WHOLE)]
        for part in parts_of(word) if compound else (word,):
            yield from _part(part, wants, seen, alone=not compound)
        for term in compound:
            if term not in seen:
                seen.add(term)
                yield Concept(word, ((term, 1.0),), counts=False)
        if previous and word_terms(word):
            yield from _pair(previous, word, seen)
        previous = word if word_terms(word) and "_" not in word else ""


def _part(part: str, wants: frozenset[Role], seen: set[str], *, alone: bool) -> Iterator[Concept]:
    for term in word_terms(part):
        if term in seen:
            continue
        seen.add(term)
        carries = alone and (term in _CARRIERS or (term in _ROLE_WORDS and bool(wants)))
        weight = CARRIER_WEIGHT if carries else 1.0
        others = tuple((other, weight * ABBREVIATION_WEIGHT) for other in ALTERNATIVES.get(term, ()))
        yield Concept(part, ((term, weight), *others))


def _pair(first: str, second: str, seen: set[str]) -> Iterator[Concept]:
    """Two words in a row that code may write as one: "progress bar" is `ProgressBar` and `progressbar`."""
    joined = "".join((*parts_of(first), *parts_of(second)))
    singular = stem(joined)
    terms = tuple(dict.fromkeys((whole(joined), singular)))
    fresh = tuple((term, PAIR_WEIGHT) for term in terms if term not in seen)
    if fresh and len(joined) <= 40:
        seen.update(terms)
        yield Concept(f"{first} {second}", fresh, counts=False)
