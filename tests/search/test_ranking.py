"""The ranking over a small shop: what comes first, what stays out, and that every factor is on record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
from retrieval_corpus import Built

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled
from nm_lsp.graph.model import NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.explain import reasons
from nm_lsp.search.ranking import HALF_SCORE, RankedResult, VectorLeg, search

Near = Callable[[Corpus, Mapping[str, float]], VectorLeg]


def ids(result: RankedResult) -> list[str]:
    return [candidate.node.id for candidate in result.candidates]


def test_a_sentence_finds_the_definition_before_its_test_and_its_guide(shop: Built) -> None:
    found = ids(search(shop.corpus, "sum of all prices less the discount of the voucher"))
    assert found[0] == "src/shop/cart.py::Cart.compute_total"
    assert any(identifier.startswith("tests/") for identifier in found)


def test_tests_come_first_when_asked_for(shop: Built) -> None:
    found = ids(search(shop.corpus, "tests for the total with a voucher"))
    assert found[0] == "tests/test_cart.py::test_compute_total_with_voucher"


@pytest.mark.parametrize("query", ["compute_total", "computeTotal", "Cart.compute_total", "`compute_total()`"])
def test_an_identifier_goes_to_its_definition(shop: Built, query: str) -> None:
    assert ids(search(shop.corpus, query))[0] == "src/shop/cart.py::Cart.compute_total"


def test_a_name_that_everything_has_points_nowhere(corpus_of: Callable[[Mapping[str, str]], Built]) -> None:
    classes = "".join(f"class Thing{n}:\n    def __init__(self):\n        self.n = {n}\n\n" for n in range(60))
    parcel = "def weigh_parcel(parcel):\n    return parcel.weight\n"
    built = corpus_of({"things.py": classes, "parcel.py": parcel})
    found = ids(search(built.corpus, "where is a parcel weighed before __init__"))
    assert found[0] == "parcel.py::weigh_parcel"
    assert ids(search(built.corpus, "__init__"))[0].endswith(".__init__")


def test_undocumented_code_is_found_by_its_name(shop: Built) -> None:
    assert ids(search(shop.corpus, "zone lookup"))[0] == "src/shop/shipping.py::lookup_zone"


def test_an_abbreviation_is_found_by_its_word(corpus_of: Callable[[Mapping[str, str]], Built]) -> None:
    built = corpus_of(
        {"a.py": "def get_db_conn():\n    return pool.take()\n", "b.py": "def paint_wall(colour):\n    return colour\n"}
    )
    assert ids(search(built.corpus, "database connection"))[0] == "a.py::get_db_conn"


def test_a_path_goes_to_its_file(shop: Built) -> None:
    assert ids(search(shop.corpus, "src/shop/shipping.py"))[0] == "src/shop/shipping.py"
    assert ids(search(shop.corpus, "shop/shipping.py"))[0] == "src/shop/shipping.py"
    assert ids(search(shop.corpus, "nowhere/missing.py")) == []


@pytest.mark.parametrize("query", ["", "   ", "the of and", "?!", "knead sourdough until the gluten develops"])
def test_what_nothing_answers_is_answered_with_nothing(shop: Built, query: str) -> None:
    assert search(shop.corpus, query).candidates == ()


def test_one_common_word_of_many_is_no_answer(shop: Built, near: Near) -> None:
    far = near(shop.corpus, {"src/shop/cart.py::Cart": 0.27})
    result = search(shop.corpus, "recipe for vegetarian lasagne with a product of spinach", vector_leg=far)
    assert result.candidates == ()
    assert result.confidence < 0.5


def test_meaning_alone_can_answer(shop: Built, near: Near) -> None:
    leg = near(shop.corpus, {"src/shop/accounts.py::authenticate": 0.66})
    assert ids(search(shop.corpus, "sign somebody in", vector_leg=leg))[0] == "src/shop/accounts.py::authenticate"


def test_silence_of_unfinished_vectors_is_no_evidence(shop: Built, near: Near) -> None:
    leg = near(shop.corpus, {})
    query = "parcel to an address abroad"
    assert search(shop.corpus, query, vector_leg=leg, unseen=shop.corpus.live).candidates
    assert not search(shop.corpus, query, vector_leg=leg).candidates


def test_without_keyword_the_vector_leg_decides_alone(shop: Built, near: Near) -> None:
    leg = near(shop.corpus, {"src/shop/shipping.py::lookup_zone": 0.7, "src/shop/cart.py::Cart": 0.5})
    result = search(shop.corpus, "compute_total", vector_leg=leg, use_keyword=False)
    assert ids(result) == ["src/shop/shipping.py::lookup_zone", "src/shop/cart.py::Cart"]
    assert all(candidate.keyword_rank is None for candidate in result.candidates)


def test_kinds_and_path_restrict_the_answer(shop: Built) -> None:
    query = "total of the cart with a voucher"
    only_classes = search(shop.corpus, query, kinds=[NodeKind.CLASS])
    assert {candidate.node.kind for candidate in only_classes.candidates} == {NodeKind.CLASS}
    assert all(identifier.startswith("tests/") for identifier in ids(search(shop.corpus, query, path="tests/")))
    assert ids(search(shop.corpus, query, path="src/shop/ship")) == []


def test_one_file_does_not_fill_the_list(corpus_of: Callable[[Mapping[str, str]], Built]) -> None:
    many = "".join(f"def send_parcel_{n}(parcel):\n    ship(parcel)\n\n" for n in range(8))
    other = "def receive_parcel(parcel):\n    unpack(parcel)\n"
    filler = {f"filler_{n}.py": f"def paint_{n}(wall):\n    return wall\n" for n in range(30)}
    built = corpus_of({"many.py": many, "other.py": other, **filler})
    found = ids(search(built.corpus, "parcel", limit=4))
    assert any(identifier.startswith("other.py") for identifier in found)


def test_a_boost_lifts_and_stays_on_record(shop: Built) -> None:
    query = "customer"
    plain = search(shop.corpus, query)
    last = plain.candidates[-1]
    boosted = search(shop.corpus, query, synapse_boost={last.doc: 0.8})
    lifted = next(candidate for candidate in boosted.candidates if candidate.doc == last.doc)
    assert lifted.score > last.score
    assert lifted.synapse_boost == 0.8
    assert ids(boosted).index(last.node.id) < ids(plain).index(last.node.id)


def test_the_score_is_the_product_of_what_is_on_record(shop: Built) -> None:
    for candidate in search(shop.corpus, "total of the cart with a voucher").candidates:
        product = candidate.fused * (1 + candidate.synapse_boost)
        product *= math.prod(factor for _, factor in candidate.adjustments)
        assert candidate.score == pytest.approx(product / (product + HALF_SCORE))
        assert 0 < candidate.score < 1


def test_the_same_question_has_the_same_answer(shop: Built, corpus_of: Callable[[Mapping[str, str]], Built]) -> None:
    again = corpus_of(shop.texts)
    for query in ("cart", "total of the cart", "customer address", "voucher"):
        first, second = search(shop.corpus, query), search(again.corpus, query)
        assert [(c.node.id, c.score) for c in first.candidates] == [(c.node.id, c.score) for c in second.candidates]


def test_a_class_is_found_through_its_members(corpus_of: Callable[[Mapping[str, str]], Built]) -> None:
    source = (
        "class Depot:\n    def pack_parcel(self):\n        wrap()\n\n    def label_parcel(self):\n        stick()\n"
    )
    filler = {f"filler_{n}.py": f"def paint_{n}(wall):\n    return wall\n" for n in range(30)}
    built = corpus_of({"depot.py": source, **filler})
    assert "depot.py::Depot" in ids(search(built.corpus, "pack and label a parcel"))


def test_an_empty_corpus_answers_nothing() -> None:
    assert search(Corpus([]), "anything at all").candidates == ()


def test_cancelling_stops_it(shop: Built) -> None:
    cancel = Cancellation()
    cancel.cancel()
    with pytest.raises(Cancelled):
        search(shop.corpus, "cart", cancel=cancel)


def test_reasons_are_sentences_a_person_understands(shop: Built, near: Near) -> None:
    leg = near(shop.corpus, {"src/shop/cart.py::Cart.compute_total": 0.61})
    result = search(shop.corpus, "compute total with a voucher", vector_leg=leg)
    topics = {candidate.doc: "shop" for candidate in result.candidates[:3]}
    first = reasons(result.candidates[0], result.question, result.candidates, topics)
    assert first[0] == "the name contains compute, total"
    assert "first in keyword search: matches" in first[1]
    assert "first in similarity of meaning (0.61)" in first
    assert "in the community shop with two other hits" in first
    test = next(c for c in result.candidates if c.node.path.startswith("tests/"))
    assert "held back, because it is a test and the question does not ask for tests" in reasons(
        test, result.question, result.candidates
    )


def test_a_name_asked_for_is_the_first_reason(shop: Built) -> None:
    result = search(shop.corpus, "Cart.compute_total")
    assert reasons(result.candidates[0], result.question, result.candidates)[0] == (
        "it is the definition of compute_total in the place asked for, which the question names"
    )
