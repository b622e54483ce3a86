"""Answers kept for a while, by what they were asked of, within limits of number and of weight."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Recent(Generic[Answer]):
    """The answers asked for last. Thread-safe.

    Texts are known by their digests: a key that held them would keep every version of every large file in memory.
    """

    def __init__(self, n_most: int, weight_most: int = 0) -> None:
        """`weight_most` is the sum of the weights kept, in bytes; the last answer is kept whatever it weighs."""
        self._n_most = n_most
        self._weight_most = weight_most
        self._weight = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str | bytes | None, ...], tuple[Answer, int]] = OrderedDict()

    def get(
        self, name: str | None, *texts: bytes, make: Callable[[], Answer], weight: Callable[[Answer], int] = lambda _: 0
    ) -> Answer:
        """The answer to (`name`, `texts`), made where it is not kept."""
        key = (name, *(hashlib.blake2b(text, digest_size=16).digest() for text in texts))
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept[0]
        answer = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = answer, weight(answer)
                self._weight += self._kept[key][1]
            while len(self._kept) > self._n_most or (self._weight > self._weight_most and len(self._kept) > 1):
                _, (_, dropped) = self._kept.popitem(last=False)
                self._weight -= dropped
        return answer
