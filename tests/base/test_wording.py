from __future__ import annotations

import pytest

from nm_lsp.base.wording import counted


@pytest.mark.parametrize(
    ("n", "plural", "text"),
    [
        (0, None, "0 files"),
        (1, None, "1 file"),
        (2, None, "2 files"),
        (12_345, None, "12,345 files"),
        (1, "filings", "1 file"),
        (3, "filings", "3 filings"),
    ],
)
def test_numbers_decide_the_word(n: int, plural: str | None, text: str) -> None:
    assert counted(n, "file", plural) == text
