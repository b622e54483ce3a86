"""What is kept of answers, and that it stays within its limits."""

from __future__ import annotations

import tracemalloc

from nm_lsp.base.recent import Recent
from nm_lsp.engine.decisions.code import Grammars


def test_the_last_answers_are_kept_within_number_and_weight() -> None:
    made: list[str] = []

    def ask(recent: Recent[str], name: str, answer: str) -> str:
        return recent.get(name, b"text", make=lambda: made.append(name) or answer, weight=len)

    few: Recent[str] = Recent(2, 100)
    for name in "abacab":
        assert ask(few, name, name) == name
    assert made == ["a", "b", "c", "b"]
    made.clear()
    light: Recent[str] = Recent(100, 3)
    for name, answer in (("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("a", "1"), ("e", "heavy"), ("e", "heavy")):
        assert ask(light, name, answer) == answer
    assert made == ["a", "b", "c", "d", "a", "e"]


def test_versions_of_a_large_file_do_not_pile_up() -> None:
    """Every pause in typing shows another text of the same file; what is kept of them is bounded in bytes."""
    filler = "".join(f"print('{'x' * 70}', {at})\n" for at in range(1_000))
    code = Grammars()
    seen = b"def f():\n    return 1\n"

    def edit(at: int) -> None:
        text = f"def f():\n    return {at}\n{filler}".encode()
        assert code.symbol_text("a.py", "f", text) == f"def f():\n    return {at}".encode()
        assert code.same_symbol("a.py", seen, text) is False
        assert code.same_file("a.py", seen, text) is False

    edit(0)
    tracemalloc.start()
    try:
        for at in range(1, 9):
            edit(at)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * len(filler)
