"""What a person has without us: keyword grep over files, and rank_bm25 over windows of 50 lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from rank_bm25 import BM25Okapi

from nm_lsp.search.wordlists import word_set

WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|\d+")
STOP = word_set(
    "a an and are as at be by for from if in into is it its no not of on or that the their this to was when with"
)
WINDOW = 50


@dataclass(frozen=True)
class Found:
    """Lines from 1; 0 and 0 where the system names none."""

    path: str
    start: int
    end: int


Search = Callable[[str, int], list[Found]]
"""Question and k to the k best places, best first."""


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def keyword_grep(texts: Mapping[str, str]) -> Search:
    """Files by the number of the question's words they contain, then by how often; the best window of each."""
    counts = {path: Counter(words(text)) for path, text in texts.items()}
    lines = {path: text.split("\n") for path, text in texts.items()}

    def search(question: str, k: int) -> list[Found]:
        wanted = set(words(question)) - STOP
        ranked = sorted(
            counts, key=lambda p: (-sum(w in counts[p] for w in wanted), -sum(counts[p][w] for w in wanted), p)
        )
        return [_best_window(path, lines[path], wanted) for path in ranked[:k]]

    return search


def _best_window(path: str, lines: list[str], wanted: set[str]) -> Found:
    hits = [len(wanted & set(words(line))) for line in lines]
    best = max(range(len(hits)), key=lambda row: (sum(hits[row : row + WINDOW]), -row)) if hits else 0
    return Found(path, best + 1, min(len(lines), best + WINDOW))


def windows_bm25(texts: Mapping[str, str]) -> Search:
    places, documents = [], []
    for path, text in texts.items():
        lines = text.split("\n")
        for start in range(0, len(lines), WINDOW):
            places.append(Found(path, start + 1, min(len(lines), start + WINDOW)))
            documents.append(words("\n".join(lines[start : start + WINDOW])) or ["-"])
    index = BM25Okapi(documents)

    def search(question: str, k: int) -> list[Found]:
        scores = index.get_scores(words(question))
        return [places[row] for row in np.argsort(-scores, kind="stable")[:k]]

    return search
