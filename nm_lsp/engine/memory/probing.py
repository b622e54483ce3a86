"""A self-test of search without labels: each documented symbol is asked for by its documentation, not by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.engine.memory_requests import BlindSpot, ProbeResult
from nm_lsp.engine.requests import Place
from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.roles import Role, role_of

MAX_BLIND: Final = 50
_ASKED: Final = frozenset({NodeKind.CLASS, NodeKind.FUNCTION, NodeKind.METHOD})
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|\n\s*\n")
_FEWEST_WORDS: Final = 3
_FEW_WORDS: Final = 7


def probe(
    corpus: Corpus, find: Callable[[str, Cancellation], Sequence[str]], sample: int, cancel: Cancellation
) -> ProbeResult:
    """Evenly spread over the index, the same sample every time. Raises `Cancelled`."""
    documented = _documented(corpus)
    step = max(1, len(documented) // sample)
    asked = documented[::step][:sample]
    ranks: list[int | None] = []
    blind = []
    for node, question in asked:
        cancel.check()
        hits = list(find(question, cancel))
        rank = hits.index(node.id) + 1 if node.id in hits else None
        ranks.append(rank)
        if rank is None or rank > 3:
            first = hits[0] if hits else None
            advice = _advice(question, first, documented)
            blind.append(BlindSpot(node.id, Place(node.path, node.span), question, rank, first, advice))
    total = sum(1 / rank for rank in ranks if rank is not None)
    return ProbeResult(
        asked=len(asked),
        found_first=sum(rank == 1 for rank in ranks),
        found_in_ten=sum(rank is not None for rank in ranks),
        mrr=round(total / len(asked), 4) if asked else 0.0,
        blind_spots=tuple(blind[:MAX_BLIND]),
    )


def _documented(corpus: Corpus) -> list[tuple[Node, str]]:
    """Every symbol that can be asked for, with its question, in the order of paths."""
    found = []
    for path, file in sorted(corpus.file_numbers.items()):
        if role_of(path) is Role.SOURCE:
            for doc in corpus.file_docs(file):
                node = corpus.node(doc)
                question = _question(node) if node.kind in _ASKED else None
                if question is not None:
                    found.append((node, question))
    return found


def _advice(question: str, first: str | None, documented: Sequence[tuple[Node, str]]) -> str:
    """What would make the symbol easier to find by its documentation."""
    if first is None:
        return "Nothing was found: use words that the code or its neighbours use too."
    n_words = len(question.split())
    if n_words < _FEW_WORDS:
        return f"Its first sentence has {n_words} words beside the name: say what it does, with what, and for whom."
    if any(node.id == first and other.casefold() == question.casefold() for node, other in documented):
        return f"{first} is documented in the same words: say what differs."
    return f"{first} comes first: name in the first sentence what sets this one apart."


def _question(node: Node) -> str | None:
    """The first sentence of the documentation, without the symbol's own name."""
    sentence = " ".join(_SENTENCE.split(node.doc.strip(), maxsplit=1)[0].split())[:300]
    plain = re.sub(rf"\b{re.escape(node.name)}\b", "", sentence, flags=re.IGNORECASE) if node.name else sentence
    return plain.strip() if len(plain.split()) >= _FEWEST_WORDS else None
