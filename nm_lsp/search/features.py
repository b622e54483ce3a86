"""What is known of a candidate that speaks for or against it, as numbers in [0, 1].

Each feature has a name that people can read and a weight; a candidate's fused score is multiplied by
exp(weight · value) for each, so that every adjustment is one factor in the trace. The weights were fitted on open
questions and on questions made from doc comments in six languages (see `tests/bench/retrieval.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.keyword import KeywordScores
from nm_lsp.search.question import Concept, Question
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.tokens import WHOLE, word_terms, words_of

MAX_OPENING: Final = 400
"""Characters of documentation that say what a definition is; what follows is detail."""

FEATURES: Final = (
    "keyword score",
    "similarity of meaning",
    "words of the question in it",
    "words of the question in its name",
    "its name in the question",
    "words of the question in its owner",
    "words of the question in its documentation",
    "words of the question in its signature",
    "words of the question in its path",
    "it is the name asked for",
    "it is in the owner asked for",
    "other hits in its file",
    "hits among its members",
    "its owner is a hit",
    "test",
    "documentation",
    "example",
    "configuration",
    "declaration without body",
    "vendored",
    "generated",
    "module",
    "section",
    "constant",
    "class",
    "method",
    "special method",
    "overload",
    "re-export",
)

WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "keyword score": 1.2,
        "similarity of meaning": 2.0,
        "words of the question in it": 0.8,
        "words of the question in its name": 1.0,
        "its name in the question": 0.3,
        "words of the question in its owner": 0.2,
        "words of the question in its documentation": 0.4,
        "words of the question in its signature": 0.1,
        "words of the question in its path": 0.1,
        "it is the name asked for": 2.0,
        "it is in the owner asked for": 1.0,
        "other hits in its file": 0.2,
        "hits among its members": 0.1,
        "its owner is a hit": 0.05,
        "test": -0.8,
        "documentation": -0.5,
        "example": -0.6,
        "configuration": -0.5,
        "declaration without body": -0.4,
        "vendored": -0.7,
        "generated": -0.8,
        "module": -0.3,
        "section": -0.1,
        "constant": -0.3,
        "class": 0.05,
        "method": 0.0,
        "special method": -0.2,
        "overload": -0.5,
        "re-export": -0.4,
    }
)

_COLUMN: Final = {name: column for column, name in enumerate(FEATURES)}
_ROLES: Final = {
    Role.TEST: "test",
    Role.DOCS: "documentation",
    Role.EXAMPLE: "example",
    Role.CONFIG: "configuration",
    Role.STUB: "declaration without body",
    Role.VENDORED: "vendored",
    Role.GENERATED: "generated",
}
_KINDS: Final = {
    NodeKind.MODULE: "module",
    NodeKind.FILE: "module",
    NodeKind.SECTION: "section",
    NodeKind.CONSTANT: "constant",
    NodeKind.CLASS: "class",
    NodeKind.METHOD: "method",
}
_REEXPORTING: Final = ("__init__.py", "index.js", "index.ts", "index.mjs", "mod.rs", "lib.rs")


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates as parallel columns. `nodes` are theirs; `cosines` are NaN where the vector leg lacks one."""

    docs: NDArray[np.int32]
    nodes: Sequence[Node]
    cosines: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`values[i, j]` of feature j for candidate i, and what the question's concepts matched.

    `held[c, i]` says whether counted concept c occurs anywhere in candidate i; `weights[c]` is its share of the
    question, in [0, 1], all together 1.
    """

    values: NDArray[np.float64]
    concepts: tuple[Concept, ...]
    held: NDArray[np.bool_]
    weights: NDArray[np.float64]


def weigh(corpus: Corpus, question: Question, pool: Pool, keyword: KeywordScores, floor: float) -> Evidence:
    """All features of all candidates. `floor` is the cosine below which a vector says nothing."""
    values = np.zeros((len(pool.docs), len(FEATURES)))
    counted = [match for match in keyword.matches if match.concept.counts]
    shares = concept_shares(keyword)
    held = np.array([match.holds(pool.docs) for match in counted], np.bool_).reshape(len(counted), len(pool.docs))
    best = float(keyword.scores[pool.docs].max(initial=0.0))
    strength = keyword.scores[pool.docs] / best if best > 0 else np.zeros(len(pool.docs), np.float32)
    values[:, 0] = strength
    values[:, 1] = np.clip((np.nan_to_num(pool.cosines) - floor) / (1 - floor), 0, 1)
    values[:, 2] = shares @ held if len(counted) else 0
    concepts = tuple(match.concept for match in counted)
    alternatives = [frozenset(term for term, _ in concept.terms) for concept in concepts]
    terms_by_path: dict[str, frozenset[str]] = {}
    for row, node in enumerate(pool.nodes):
        path_terms = terms_by_path.get(node.path)
        if path_terms is None:
            path_terms = terms_by_path[node.path] = _terms_in(node.path)
        _fields(values[row], node, path_terms, alternatives, shares)
        _identity(values[row], node, question, generated=corpus.file_is_generated(int(corpus.file[pool.docs[row]])))
    _company(values, corpus, pool, strength)
    _overloads(values, corpus, pool)
    return Evidence(values, concepts, held, shares)


def concept_shares(keyword: KeywordScores) -> NDArray[np.float64]:
    """Each counted concept's part of the question: by its rarity and its own weight; together 1."""
    raw = np.array([m.idf * m.concept.terms[0][1] for m in keyword.matches if m.concept.counts], np.float64)
    total = raw.sum()
    return raw / total if total > 0 else raw


def factors(values: NDArray[np.float64], weights: Mapping[str, float] = WEIGHTS) -> tuple[tuple[str, float], ...]:
    """The adjustments of one candidate: (name, factor), those of factor 1 left out."""
    return tuple(
        (name, float(np.exp(weights[name] * value)))
        for name, value in zip(FEATURES, values.tolist(), strict=True)
        if value and weights[name]
    )


def _terms_in(text: str) -> frozenset[str]:
    return frozenset(term for word in words_of(text) for term in word_terms(word))


def _fields(
    values: NDArray[np.float64],
    node: Node,
    path_terms: frozenset[str],
    alternatives: Sequence[frozenset[str]],
    shares: NDArray[np.float64],
) -> None:
    name = _terms_in(node.name)
    owner = _terms_in(node.qualified_name.rpartition(".")[0])
    doc = _terms_in(node.doc[:MAX_OPENING].split("\n\n", 1)[0])
    signature = _terms_in(node.signature)
    in_name: set[str] = set()
    for terms, share in zip(alternatives, shares.tolist(), strict=True):
        if not terms.isdisjoint(name):
            values[3] += share
            in_name |= terms & name
        if not terms.isdisjoint(owner):
            values[5] += share
        if not terms.isdisjoint(doc):
            values[6] += share
        if not terms.isdisjoint(signature):
            values[7] += share
        if not terms.isdisjoint(path_terms):
            values[8] += share
    n_words = sum(1 for term in name if not term.startswith(WHOLE))
    if n_words:
        values[4] = len(in_name) / n_words


def _identity(values: NDArray[np.float64], node: Node, question: Question, *, generated: bool) -> None:
    folded = node.name.lower()
    if any(folded == name.lower() for name in question.names):
        # Another case than written is a weaker claim: `Session` is the class, `session` the function.
        values[_COLUMN["it is the name asked for"]] = 1.0 if node.name in question.names else 0.8
        if question.owner:
            tail = question.owner.rpartition(".")[2].lower()
            owners = (*node.qualified_name.lower().split(".")[:-1], *node.path.lower().rsplit(".", 1)[0].split("/"))
            values[_COLUMN["it is in the owner asked for"]] = float(tail in owners)
    role = role_of(node.path)
    if role is not Role.SOURCE and role not in question.wants:
        values[_COLUMN[_ROLES[role]]] = 1.0
    if generated and Role.GENERATED not in question.wants:
        values[_COLUMN["generated"]] = 1.0
    kind = _KINDS.get(node.kind)
    if kind is not None:
        values[_COLUMN[kind]] = 1.0
    if node.name.startswith("__") and node.name.endswith("__"):
        values[_COLUMN["special method"]] = 1.0
    if node.kind is NodeKind.MODULE and node.path.endswith(_REEXPORTING):
        values[_COLUMN["re-export"]] = 1.0


def _company(values: NDArray[np.float64], corpus: Corpus, pool: Pool, strength: NDArray[np.float32]) -> None:
    """Other candidates of the same file, members of a class and the class of a member."""
    row_of = {doc: row for row, doc in enumerate(pool.docs.tolist())}
    files = corpus.file[pool.docs]
    by_file: dict[int, list[float]] = {}
    for file, share in zip(files.tolist(), strength.tolist(), strict=True):
        by_file.setdefault(file, []).append(share)
    totals = {file: sum(sorted(shares, reverse=True)[:4]) for file, shares in by_file.items()}
    for row, (doc, file) in enumerate(zip(pool.docs.tolist(), files.tolist(), strict=True)):
        values[row, 11] = min(1.0, max(0.0, totals[file] - float(strength[row])) / 3)
        parent = row_of.get(int(corpus.parent[doc]))
        if parent is not None and pool.nodes[parent].kind is NodeKind.CLASS:
            values[parent, 12] = max(values[parent, 12], float(strength[row]))
            values[row, 13] = float(strength[parent])


def _overloads(values: NDArray[np.float64], corpus: Corpus, pool: Pool) -> None:
    """Of definitions with one name in one file, all but the longest."""
    groups: dict[tuple[str, str], list[int]] = {}
    for row, node in enumerate(pool.nodes):
        groups.setdefault((node.path, node.qualified_name), []).append(row)
    for rows in groups.values():
        if len(rows) > 1:
            longest = max(rows, key=lambda row: (float(corpus.length[pool.docs[row]]), -row))
            for row in rows:
                values[row, 27] = float(row != longest)
