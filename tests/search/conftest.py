"""A small corpus from texts, built as the benchmarks build theirs, and a vector leg that is told what is near."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from retrieval_corpus import Built, build

from nm_lsp.search.corpus import Corpus
from nm_lsp.search.ranking import VectorLeg

SHOP = {
    "src/shop/cart.py": '''"""The shopping cart."""


class Cart:
    """Items a customer is about to buy."""

    def __init__(self, owner):
        self.items = []
        self.owner = owner

    def add_item(self, product, quantity=1):
        """Put a product into the cart."""
        self.items.append((product, quantity))

    def compute_total(self, voucher=None):
        """Sum of all prices, less the voucher's discount."""
        total = sum(product.price * quantity for product, quantity in self.items)
        return apply_discount(total, voucher) if voucher else total


def apply_discount(total, voucher):
    return total - voucher.amount
''',
    "src/shop/shipping.py": '''"""Parcels and their way to the customer."""


def estimate_delivery(address, weight):
    """Days until a parcel reaches an address."""
    zone = lookup_zone(address)
    return BASE_DAYS[zone] + weight // 10


def lookup_zone(address):
    if address.country in EUROPE:
        return "near"
    return "far"


BASE_DAYS = {"near": 2, "far": 9}
EUROPE = ("at", "de")
''',
    "src/shop/accounts.py": '''def authenticate(username, password):
    """Check the credentials of a customer."""
    record = find_record(username)
    return record is not None and verify_hash(password, record.digest)


def verify_hash(password, digest):
    return hmac_compare(password, digest)
''',
    "tests/test_cart.py": '''from shop.cart import Cart


def test_compute_total_with_voucher():
    """The voucher's discount is taken off the sum of all prices."""
    cart = Cart("ann")
    cart.add_item("tea", 2)
    assert cart.compute_total(voucher=None) == 4
''',
    "docs/guide.md": "# Guide\n\nHow the total of a cart is computed: all prices, less the discount of the voucher.\n",
}


@pytest.fixture(scope="session")
def corpus_of() -> Callable[[Mapping[str, str]], Built]:
    return build


@pytest.fixture(scope="session")
def shop() -> Built:
    return build(SHOP)


@pytest.fixture(scope="session")
def near() -> Callable[[Corpus, Mapping[str, float]], VectorLeg]:
    """A vector leg for which every question is as near to the given node ids as they say."""

    def leg_of(corpus: Corpus, cosines: Mapping[str, float]) -> VectorLeg:
        docs = {corpus.find(identifier): cosine for identifier, cosine in cosines.items()}
        assert None not in docs, "a node id names nothing"
        ordered = sorted(docs.items(), key=lambda pair: -pair[1])

        def search(question: str, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
            best = ordered[:k]
            return np.array([doc for doc, _ in best], np.int32), np.array([cosine for _, cosine in best], np.float32)

        return search

    return leg_of
