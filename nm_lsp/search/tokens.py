"""What the keyword leg counts: the terms of a node and the terms of a question.

A *term* is a lower-case stem (`redirect`), a word with its digits (`sha256`), or a whole compound identifier written
`=shouldstripauth`: the same for `should_strip_auth`, `shouldStripAuth` and `SHOULD_STRIP_AUTH`. The weighted frequency
of a term in a node is its count in the node's own text plus `WEIGHTS` for each field it stands in; since signature
and documentation are part of the text, their weights come on top of that count.

Guarantee: both functions are pure and deterministic. `TOKENS_VERSION` changes whenever the terms of a text do; an
index built with another version is built anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from nm_lsp.graph.model import Node
from nm_lsp.search.stemming import stem
from nm_lsp.search.wordlists import word_set

TOKENS_VERSION: Final = 2

WHOLE: Final = "="
"""Marks a term that is a whole compound identifier."""


@dataclass(frozen=True, slots=True)
class FieldWeights:
    """How often an occurrence in a field counts on top of the plain text."""

    name: int = 4
    qualified_name: int = 1
    signature: int = 1
    doc: int = 1
    path: int = 1


WEIGHTS: Final = FieldWeights()

MAX_TEXT: Final = 200_000
"""Characters of a node's own text that are counted; what lies beyond (data files, bundles) adds time but no meaning."""
MAX_WORD: Final = 64
"""Longer runs of word characters are encoded data, not words."""
MAX_MEMO: Final = 400_000

STOP_WORDS: Final = word_set(
    """a about after again all also an and any are as at be because been before being between both but by can cannot
    could did do does doing done down each either else ever every few for from further get gets got had has have having
    he her here hers him his how however i if in into is it its itself just let like may me might more most much must
    my neither no nor not now of off on once only onto or other our ours out over own per please rather same shall she
    should so some such than that the their theirs them then there these they this those through to too under until
    up upon us very was way we were what when where whether which while who whom whose why will with within without
    would you your yours self def elif cls"""
)

_WORD = re.compile(r"\w+").findall
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])\d*|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+").findall
_LETTERS_DIGITS = re.compile(r"([a-z]+)(\d+)").fullmatch
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")


def terms_of(node: Node, own_text: str, path: str) -> dict[str, int]:
    """Weighted term frequencies of a node; `own_text` is its span without what belongs to child nodes."""
    terms: dict[str, int] = {}
    get = terms.get
    memo = _MEMO
    for word, count in Counter(_WORD(own_text[:MAX_TEXT])).items():
        for term in memo[word]:
            terms[term] = get(term, 0) + count
    for text, weight in (
        (node.name, WEIGHTS.name),
        (node.qualified_name, WEIGHTS.qualified_name),
        (node.signature, WEIGHTS.signature),
        (_opening(node.doc), WEIGHTS.doc),
        (path, WEIGHTS.path),
    ):
        for word in _WORD(text):
            for term in memo[word]:
                terms[term] = get(term, 0) + weight
    if len(memo) > MAX_MEMO:
        memo.clear()
    return terms


def terms_in(text: str) -> tuple[str, ...]:
    """The terms of a text, in order of first appearance, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(map(_MEMO.__getitem__, _WORD(text)))))


def word_terms(word: str) -> tuple[str, ...]:
    """The terms of one run of word characters: stems of its parts, then the whole when it is compound."""
    return _MEMO[word]


def words_of(text: str) -> list[str]:
    """Runs of word characters, as written."""
    words: list[str] = _WORD(text)
    return words


def parts_of(identifier: str) -> tuple[str, ...]:
    """The words an identifier is made of, lower-case, unstemmed: `HTTPDigestAuth` gives http, digest, auth."""
    return tuple(part.lower() for word in _WORD(identifier) for part in _split(word))


def whole(identifier: str) -> str:
    """The term of a whole identifier, whatever its spelling."""
    return WHOLE + identifier.replace("_", "").lower()


def _opening(doc: str) -> str:
    """The first paragraph: what a definition is, before its details."""
    return doc.split("\n\n", 1)[0][:600]


def _split(word: str) -> Iterable[str]:
    if word.isascii():
        return _PARTS(word)
    return _split_unicode(word)


def _split_unicode(word: str) -> list[str]:
    """Scripts written without spaces fall into pairs of characters, others at underscores."""
    parts: list[str] = []
    position = 0
    for run in _UNSPACED.finditer(word):
        parts.extend(piece for piece in word[position : run.start()].split("_") if piece)
        text = run.group()
        parts.extend(text[i : i + 2] for i in range(max(1, len(text) - 1)))
        position = run.end()
    parts.extend(piece for piece in word[position:].split("_") if piece)
    return parts


def _terms(word: str) -> tuple[str, ...]:
    if len(word) > MAX_WORD:
        return ()
    lower = word.lower()
    if lower in STOP_WORDS:
        return ()
    terms: list[str] = []
    n_parts = 0
    for part in _split(word):
        n_parts += 1
        piece = part.lower()
        if (len(piece) == 1 and piece.isascii()) or piece in STOP_WORDS:
            continue
        mixed = _LETTERS_DIGITS(piece)
        if mixed is None:
            terms.append(stem(piece))
            continue
        terms.append(piece)
        terms.extend(half for half in mixed.groups() if len(half) > 1)
    if n_parts > 1:
        terms.append(whole(word))
    return tuple(terms)


def forget_words() -> None:
    """Give back the memory of a large build; words are learned again as they come."""
    _MEMO.clear()


class _Memo(dict[str, tuple[str, ...]]):
    """Word to terms: a corpus has few distinct words, so splitting and stemming are paid once for each."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        terms = self[word] = _terms(word)
        return terms


_MEMO: Final = _Memo()
