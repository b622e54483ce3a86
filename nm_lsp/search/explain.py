"""Why each hit is there, in plain sentences, from the trace of its ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nm_lsp.graph.model import Node
from nm_lsp.search import features
from nm_lsp.search.question import Question
from nm_lsp.search.ranking import LISTED, Candidate
from nm_lsp.search.tokens import parts_of, word_terms, words_of

MAX_WORDS: Final = 6
"""Words of the question that one sentence names."""

_SMALL: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS: Final = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_HELD_BACK: Final[Mapping[str, str]] = {
    features.TEST: "it is a test and the question does not ask for tests",
    features.DOCS: "it is documentation and the question is about code",
    features.EXAMPLE: "it is an example",
    features.CONFIG: "it is a configuration file",
    features.STUB: "it only declares and the body is elsewhere",
    features.VENDORED: "it is code kept from elsewhere",
    features.GENERATED: "it was written by a program",
    features.REEXPORT: "it only passes on what other files define",
    features.OVERLOAD: "a fuller definition of the same name stands beside it",
    features.MODULE: "something more specific than a whole file is preferred",
    features.CONSTANT: "definitions that do something are preferred to constants",
    features.SPECIAL: "it is a special method",
    LISTED: "its file has a better hit in this list",
}
_NOTEWORTHY: Final = 0.85
"""Factors above it held a hit back too little to be worth a sentence."""


def reasons(
    candidate: Candidate, question: Question, listed: Sequence[Candidate], topics: Mapping[int, str] | None = None
) -> tuple[str, ...]:
    """Sentences without a full stop, most important first.

    `listed` are all hits of the answer. `topics` maps docs to the title of the community they are in.
    """
    factors = dict(candidate.adjustments)
    found = [
        *_by_name(candidate, question, factors),
        *_by_keyword(candidate),
        *_by_meaning(candidate),
        *_by_company(candidate, listed, topics or {}, factors),
    ]
    if candidate.synapse_boost > 0:
        found.append(f"lifted by what use of this workspace has taught (+{candidate.synapse_boost:.0%})")
    held_back = sorted(
        (factor, name) for name, factor in factors.items() if name in _HELD_BACK and factor < _NOTEWORTHY
    )
    found.extend(f"held back, because {_HELD_BACK[name]}" for _, name in held_back)
    return tuple(found) or ("the best of what little matches",)


def words_in_name(node: Node, question: Question) -> tuple[str, ...]:
    """Words of the question that stand in the name; an abbreviation with what it stands for: "auth (credentials)"."""
    words = words_of(node.name)
    parts = {term: part for word in words for part in parts_of(word) for term in word_terms(part)}
    found = []
    for concept in question.concepts:
        term = next((term for term, _ in concept.terms if term in parts), None)
        if concept.counts and term is not None:
            found.append(concept.word if term == concept.terms[0][0] else f"{parts[term]} ({concept.word})")
    return tuple(dict.fromkeys(found))


def _by_name(candidate: Candidate, question: Question, factors: Mapping[str, float]) -> list[str]:
    if features.NAMED in factors:
        where = " in the place asked for" if features.NAMED_OWNER in factors else ""
        return [f"it is the definition of {candidate.node.name}{where}, which the question names"]
    words = words_in_name(candidate.node, question)
    if not words:
        return []
    n_asked = len({concept.word for concept in question.concepts if concept.counts})
    if len(words) == n_asked:
        scope = {1: "the word", 2: "both words"}.get(n_asked, "all words")
        return [f"the name contains {scope} of the question: {_listing(words)}"]
    return [f"the name contains {_listing(words)}"]


def _by_keyword(candidate: Candidate) -> list[str]:
    if candidate.keyword_rank is None:
        return []
    matched = list(dict.fromkeys(candidate.matched))
    if not matched:
        return [f"{_ordinal(candidate.keyword_rank)} in keyword search"]
    # With one word there is nothing it could be rarer than.
    words = [f"{matched[0]} (the rarest)", *matched[1:]] if len(matched) > 1 else matched
    return [f"{_ordinal(candidate.keyword_rank)} in keyword search: matches {_listing(words)}"]


def _by_meaning(candidate: Candidate) -> list[str]:
    if candidate.vector_rank is None or candidate.vector_score is None:
        return []
    return [f"{_ordinal(candidate.vector_rank)} in similarity of meaning ({candidate.vector_score:.2f})"]


def _by_company(
    candidate: Candidate, listed: Sequence[Candidate], topics: Mapping[int, str], factors: Mapping[str, float]
) -> list[str]:
    found = []
    title = topics.get(candidate.doc)
    n_others = sum(1 for other in listed if other.doc != candidate.doc and topics.get(other.doc) == title)
    if title and n_others:
        found.append(f"in the community {title} with {_count(n_others, 'other hit')}")
    n_in_file = sum(1 for other in listed if other.doc != candidate.doc and other.node.path == candidate.node.path)
    if n_in_file:
        found.append(f"in the same file as {_count(n_in_file, 'other hit')}")
    if factors.get(features.MEMBERS, 1.0) > 1 / _NOTEWORTHY:
        found.append("its members match as well")
    return found


def _listing(words: Sequence[str]) -> str:
    shown = ", ".join(words[:MAX_WORDS])
    return f"{shown} and {len(words) - MAX_WORDS} more" if len(words) > MAX_WORDS else shown


def _ordinal(rank: int) -> str:
    if rank < len(_ORDINALS):
        return _ORDINALS[rank]
    ending = "th" if 10 <= rank % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending}"


def _count(number: int, noun: str) -> str:
    written = _SMALL[number] if number < len(_SMALL) else str(number)
    return f"{written} {noun}" if number == 1 else f"{written} {noun}s"
