"""What is known of a candidate that speaks for or against it, as numbers in [0, 1].

A candidate's fused score is multiplied by exp(weight · value) for each feature, so that every adjustment is one named
factor in the trace. The weights were fitted on open questions and on questions made from doc comments in six
languages, half of them with the comments taken out of the indexed copy, so that undocumented code can be found too
(`tests/bench/retrieval.py` measures them). Documentation speaks for a definition if it has the question's words and
against it if it has not: what nobody documented is judged by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.keyword import KeywordScores, Matches
from nm_lsp.search.question import Concept, Question
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.tokens import WHOLE, terms_in

KEYWORD: Final = "keyword score"
MEANING: Final = "similarity of meaning"
INSIDE: Final = "words of the question in it"
NAME: Final = "words of the question in its name"
NAME_SHARE: Final = "its name in the question"
OWNER: Final = "words of the question in its owner"
DOC: Final = "words of the question in its documentation"
UNDOCUMENTED_NAME: Final = "words of the question in its name, undocumented"
FILE: Final = "words of the question in its file"
NAMED: Final = "it is the name asked for"
NAMED_OWNER: Final = "it is in the owner asked for"
COMPANY: Final = "other hits in its file"
MEMBERS: Final = "hits among its members"
MEMBER_WORDS: Final = "words of the question in its members"
DOCUMENTED: Final = "documented"
CONSTANT: Final = "constant"
CLASS: Final = "class"
METHOD: Final = "method"
MODULE: Final = "module"
SECTION: Final = "section"
SPECIAL: Final = "special method"
PRIVATE: Final = "private"
OVERLOAD: Final = "overload"
REEXPORT: Final = "re-export"
TEST: Final = "test"
DOCS: Final = "documentation page"
EXAMPLE: Final = "example"
CONFIG: Final = "configuration file"
STUB: Final = "declaration without body"
VENDORED: Final = "vendored"
GENERATED: Final = "generated"

WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        KEYWORD: 0.90,
        MEANING: 2.00,
        INSIDE: 1.55,
        NAME: 0.20,
        NAME_SHARE: 0.50,
        OWNER: 0.15,
        DOC: 0.40,
        UNDOCUMENTED_NAME: 0.35,
        FILE: 0.90,
        NAMED: 1.50,
        NAMED_OWNER: 1.00,
        COMPANY: 0.30,
        MEMBERS: 0.50,
        MEMBER_WORDS: 0.60,
        DOCUMENTED: -0.42,
        CONSTANT: -0.70,
        CLASS: 0.10,
        METHOD: -0.20,
        MODULE: -0.60,
        SECTION: -0.30,
        SPECIAL: -0.60,
        PRIVATE: -0.15,
        OVERLOAD: -0.20,
        REEXPORT: -0.40,
        TEST: -1.10,
        DOCS: -1.10,
        EXAMPLE: -0.60,
        CONFIG: -0.50,
        STUB: -0.40,
        VENDORED: -0.70,
        GENERATED: -0.80,
    }
)
FEATURES: Final = tuple(WEIGHTS)

MAX_OPENING: Final = 400
"""Characters of documentation that say what a definition is; what follows is detail."""

_COLUMN: Final = {name: column for column, name in enumerate(FEATURES)}
_ROLES: Final = {
    Role.TEST: TEST,
    Role.DOCS: DOCS,
    Role.EXAMPLE: EXAMPLE,
    Role.CONFIG: CONFIG,
    Role.STUB: STUB,
    Role.VENDORED: VENDORED,
    Role.GENERATED: GENERATED,
}
_KINDS: Final = {
    NodeKind.MODULE: MODULE,
    NodeKind.FILE: MODULE,
    NodeKind.SECTION: SECTION,
    NodeKind.CONSTANT: CONSTANT,
    NodeKind.CLASS: CLASS,
    NodeKind.METHOD: METHOD,
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

    `held[c, i]` says whether counted concept c occurs anywhere in candidate i; `shares[c]` is its part of the
    question, in [0, 1], all together 1.
    """

    values: NDArray[np.float64]
    concepts: tuple[Concept, ...]
    held: NDArray[np.bool_]
    shares: NDArray[np.float64]


def weigh(
    corpus: Corpus,
    question: Question,
    pool: Pool,
    keyword: KeywordScores,
    cosine_floor: float,
    files_named: frozenset[int] = frozenset(),
) -> Evidence:
    """All features of all candidates. A cosine at `cosine_floor` or below says nothing. `files_named` are docs of
    files that the question names by path."""
    counted = [match for match in keyword.matches if match.concept.counts]
    shares = concept_shares(keyword)
    held = np.array([match.holds(pool.docs) for match in counted], np.bool_).reshape(len(counted), len(pool.docs))
    values = np.zeros((len(FEATURES), len(pool.docs)))
    strength = keyword.scores[pool.docs]
    strength = strength / max(float(strength.max(initial=0.0)), 1e-9)
    values[_COLUMN[KEYWORD]] = strength
    values[_COLUMN[MEANING]] = np.clip((np.nan_to_num(pool.cosines) - cosine_floor) / (1 - cosine_floor), 0, 1)
    values[_COLUMN[INSIDE]] = shares @ held
    values[_COLUMN[FILE]] = shares @ _in_file(corpus, pool, counted)
    is_class = np.array([node.kind is NodeKind.CLASS for node in pool.nodes], np.bool_)
    family = _among_members(corpus, pool, counted) & is_class
    values[_COLUMN[MEMBER_WORDS]] = shares @ (held | family) - values[_COLUMN[INSIDE]]
    concepts = tuple(match.concept for match in counted)
    columns = values.T
    _fields(columns, pool, concepts, shares)
    for row, node in enumerate(pool.nodes):
        _identity(columns[row], node, question, generated=corpus.file_is_generated(int(corpus.file[pool.docs[row]])))
        if int(pool.docs[row]) in files_named:
            columns[row, _COLUMN[NAMED]], columns[row, _COLUMN[MODULE]] = 1.0, 0.0
    _company(columns, corpus, pool, strength)
    _overloads(columns, corpus, pool)
    return Evidence(columns, concepts, held, shares)


def concept_shares(keyword: KeywordScores) -> NDArray[np.float64]:
    """Each counted concept's part of the question: by its rarity and its own weight; together 1."""
    raw = np.array([m.idf * m.concept.terms[0][1] for m in keyword.matches if m.concept.counts], np.float64)
    total = raw.sum()
    return raw / total if total > 0 else raw


def logarithms(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per candidate the logarithm of the product of all its factors."""
    products: NDArray[np.float64] = values @ np.array([WEIGHTS[name] for name in FEATURES])
    return products


def factors(values: NDArray[np.float64]) -> tuple[tuple[str, float], ...]:
    """The adjustments of one candidate: (name, factor), those of factor 1 left out."""
    return tuple(
        (name, float(np.exp(WEIGHTS[name] * value)))
        for name, value in zip(FEATURES, values.tolist(), strict=True)
        if value and WEIGHTS[name]
    )


def _fields(columns: NDArray[np.float64], pool: Pool, concepts: Sequence[Concept], shares: NDArray[np.float64]) -> None:
    concepts_of: dict[str, set[int]] = {}
    for number, concept in enumerate(concepts):
        for term, _ in concept.terms:
            concepts_of.setdefault(term, set()).add(number)
    wanted = frozenset(concepts_of)
    share_of = shares.tolist()

    def covered(terms: Iterable[str]) -> float:
        matched = wanted.intersection(terms)
        if not matched:
            return 0.0
        return float(sum(share_of[number] for number in set().union(*(concepts_of[term] for term in matched))))

    for row, node in enumerate(pool.nodes):
        values = columns[row]
        name = terms_in(node.name)
        in_name = covered(name)
        values[_COLUMN[NAME]] = in_name
        values[_COLUMN[OWNER]] = covered(terms_in(node.qualified_name.rpartition(".")[0]))
        if node.doc:
            values[_COLUMN[DOCUMENTED]] = 1.0
            values[_COLUMN[DOC]] = covered(terms_in(node.doc[:MAX_OPENING].split("\n\n", 1)[0]))
        else:
            values[_COLUMN[UNDOCUMENTED_NAME]] = in_name
        n_words = sum(1 for term in name if not term.startswith(WHOLE))
        if n_words and in_name:
            values[_COLUMN[NAME_SHARE]] = min(1.0, len(wanted.intersection(name)) / n_words)


def _identity(values: NDArray[np.float64], node: Node, question: Question, *, generated: bool) -> None:
    if question.names:
        folded = node.name.lower()
        if any(folded == name.lower() for name in question.names):
            # Another case than written is a weaker claim: `Session` is the class, `session` the function.
            values[_COLUMN[NAMED]] = 1.0 if node.name in question.names else 0.8
            if question.owner:
                tail = question.owner.rpartition(".")[2].lower()
                owners = node.qualified_name.lower().split(".")[:-1]
                places = node.path.lower().rsplit(".", 1)[0].split("/")
                values[_COLUMN[NAMED_OWNER]] = float(tail in owners or tail in places)
    role = role_of(node.path)
    if role is not Role.SOURCE and role not in question.wants:
        values[_COLUMN[_ROLES[role]]] = 1.0
    if generated and Role.GENERATED not in question.wants:
        values[_COLUMN[GENERATED]] = 1.0
    kind = _KINDS.get(node.kind)
    if kind is not None:
        values[_COLUMN[kind]] = 1.0
    if node.name.startswith("_"):
        values[_COLUMN[SPECIAL if node.name.endswith("__") else PRIVATE]] = 1.0
    if node.kind is NodeKind.MODULE and node.path.endswith(_REEXPORTING):
        values[_COLUMN[REEXPORT]] = 1.0


def _in_file(corpus: Corpus, pool: Pool, matches: Sequence[Matches]) -> NDArray[np.bool_]:
    """[concept, candidate]: whether the concept occurs anywhere in the candidate's file."""
    files = corpus.file[pool.docs]
    rows = np.zeros((len(matches), len(files)), np.bool_)
    for row, match in enumerate(matches):
        holding = np.zeros(corpus.n_files, np.bool_)
        holding[corpus.file[match.docs]] = True
        rows[row] = holding[files]
    return rows


def _among_members(corpus: Corpus, pool: Pool, matches: Sequence[Matches]) -> NDArray[np.bool_]:
    """[concept, candidate]: whether the concept occurs in a direct child of the candidate."""
    rows = np.zeros((len(matches), len(pool.docs)), np.bool_)
    for row, match in enumerate(matches):
        holding = np.zeros(corpus.n_docs + 1, np.bool_)
        # Docs without a parent mark the spare entry at the end.
        holding[corpus.parent[match.docs]] = True
        rows[row] = holding[pool.docs]
    return rows


def _company(columns: NDArray[np.float64], corpus: Corpus, pool: Pool, strength: NDArray[np.float32]) -> None:
    """Other candidates of the same file, and the members of a class."""
    row_of = {doc: row for row, doc in enumerate(pool.docs.tolist())}
    files = corpus.file[pool.docs].tolist()
    by_file: dict[int, list[float]] = {}
    for file, share in zip(files, strength.tolist(), strict=True):
        by_file.setdefault(file, []).append(share)
    totals = {file: sum(sorted(shares, reverse=True)[:4]) for file, shares in by_file.items()}
    parents = corpus.parent[pool.docs].tolist()
    for row, (file, parent, share) in enumerate(zip(files, parents, strength.tolist(), strict=True)):
        columns[row, _COLUMN[COMPANY]] = min(1.0, max(0.0, totals[file] - share) / 3)
        owner = row_of.get(parent)
        if owner is not None and pool.nodes[owner].kind is NodeKind.CLASS:
            columns[owner, _COLUMN[MEMBERS]] = max(columns[owner, _COLUMN[MEMBERS]], share)


def _overloads(columns: NDArray[np.float64], corpus: Corpus, pool: Pool) -> None:
    """Of definitions with one name in one file, all but the longest."""
    groups: dict[tuple[str, str], list[int]] = {}
    for row, node in enumerate(pool.nodes):
        groups.setdefault((node.path, node.qualified_name), []).append(row)
    for rows in groups.values():
        if len(rows) > 1:
            longest = max(rows, key=lambda row: (float(corpus.length[pool.docs[row]]), -row))
            for row in rows:
                columns[row, _COLUMN[OVERLOAD]] = float(row != longest)
