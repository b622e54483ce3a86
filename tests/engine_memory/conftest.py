"""The fixtures of the learner's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from editing import Editing

SHOP = {
    "cart.py": '''class Cart:
    """Items to buy."""

    def add(self, product):
        self.items.append(product)

    def total(self):
        return sum(item.price for item in self.items)


def discount(total, voucher):
    return total - voucher.amount
''',
    "ship.py": "def estimate(address):\n    return zone(address) * 2\n\n\ndef zone(address):\n    return 1\n",
    "mail.py": "def confirm(order):\n    return render(order)\n\n\ndef render(order):\n    return str(order)\n",
    "docs.md": "# Shop\n\nSells things.\n\n## Shipping\n\nBy post.\n",
    "data.bin.txt": "nothing\n",
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Editing]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    session = Editing(tmp_path / "shop", SHOP)
    yield session
    session.close()
