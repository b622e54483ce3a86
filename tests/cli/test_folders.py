"""Which folder a command works on, and what a path means that is typed in one below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nm_lsp.cli.folders import from_here


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("cart.py", "src/shop/cart.py"),
        ("cart.py::Cart.add", "src/shop/cart.py::Cart.add"),
        ("../../main.py", "main.py"),
        ("parts/", "src/shop/parts/"),
        ("src/shop/cart.py", "src/shop/cart.py"),
        ("main.py", "main.py"),
        ("*.py", "*.py"),
        ("Cart.add", "Cart.add"),
        ("../../../outside.py", "../../../outside.py"),
        ("", ""),
    ],
)
def test_what_lies_in_the_current_folder_is_meant(
    typed: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "shop" / "parts").mkdir(parents=True)
    for path in ("main.py", "src/shop/cart.py", "../outside.py"):
        (root / path).write_text("x = 1\n")
    monkeypatch.chdir(root / "src" / "shop")
    assert from_here(typed, None) == meant
    assert from_here(typed, root) == meant
    monkeypatch.chdir(tmp_path)
    assert from_here(typed, root) == typed
