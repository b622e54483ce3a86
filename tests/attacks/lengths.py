"""How long an attack lasts: a short run in every test run, a long one by `pytest -m slow tests/attacks`.

`ATTACK_ROUNDS` is the number of rounds of each long run. A short run tries the same examples every time, a long one new
ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

ROUNDS = int(os.environ.get("ATTACK_ROUNDS", "200"))

T = TypeVar("T")


@dataclass(frozen=True)
class Length:
    rounds: int
    is_long: bool

    @property
    def seed(self) -> int:
        """Of attacks that draw their own numbers; shown by a test that fails."""
        return int.from_bytes(os.urandom(4), "big") if self.is_long else 1

    def attack(self, examples: SearchStrategy[T], check: Callable[[T], None], *, shrink: bool = True) -> None:
        """Call `check` with as many examples as there are rounds. `shrink` looks for a smaller one that fails too."""

        # Started over and over, a process would be asked the same thing thousands of times by shrinking.
        phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])]

        @settings(
            max_examples=self.rounds,
            derandomize=not self.is_long,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        @given(examples)
        def run(example: T) -> None:
            check(example)

        run()


def lengths(short: int, share: int = 1) -> pytest.MarkDecorator:
    """Runs a test twice: with `short` rounds (0 for not at all), and slowly with `ROUNDS // share` of them."""
    long = Length(max(1, ROUNDS // share), is_long=True)
    cases = [pytest.param(long, id="long", marks=pytest.mark.slow)]
    if short:
        cases.insert(0, pytest.param(Length(short, is_long=False), id="short"))
    return pytest.mark.parametrize("length", cases)
