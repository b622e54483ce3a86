"""The rules of learning, pairs of batches, and the spread, as tables and properties."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.base.errors import InvalidInput
from nm_lsp.synapses.network import EdgeRows, Network
from nm_lsp.synapses.pairs import (
    MAX_ASSOCIATIONS,
    MAX_PAIRS,
    RecentTouches,
    association_strength,
    is_bulk,
    pair,
    pairs_of,
    path_of,
)
from nm_lsp.synapses.rules import DAY_S, LASTING_FLOOR, QUERY_CAP, Synapse, check_weight, read_factors

NOW = 1_800_000_000.0
YEARS = 400 * DAY_S


def taught(n: int, strength: float = 1.0, namespace: str = "personal") -> Synapse:
    edge = Synapse()
    for _ in range(n):
        edge = edge.reinforced(strength, NOW, namespace)
    return edge


def test_reinforcement_is_hebbian() -> None:
    assert taught(1).weight == pytest.approx(0.30)
    assert taught(2).weight == pytest.approx(0.30 + 0.30 * 0.70)
    assert taught(1, 0.3).weight == pytest.approx(0.09)
    assert taught(100).weight <= 1.0
    assert taught(3) == Synapse().reinforced(1.0, NOW, "personal", times=3)


@pytest.mark.parametrize(
    ("namespace", "days", "left"),
    [("personal", 30, 0.5), ("branch:x", 60, 0.25), ("shared", 60, 0.5), ("ephemeral", 1, 0.5)],
)
def test_decay_has_the_half_life_of_its_namespace(namespace: str, days: float, left: float) -> None:
    edge = Synapse(0.4, NOW, 1, 1)
    assert edge.weight_at(NOW + days * DAY_S, namespace) == pytest.approx(0.4 * left)


def test_an_edge_used_often_and_strongly_lasts() -> None:
    assert not taught(4).lasting
    assert taught(5).lasting
    assert not taught(50, 0.3).lasting
    lasting = taught(5)
    assert lasting.weight_at(NOW + YEARS, "personal") == LASTING_FLOOR
    assert lasting.weight_at(NOW + 60 * DAY_S, "personal") == pytest.approx(lasting.weight / 2)
    for _ in range(20):
        lasting = lasting.halved(NOW, "personal")
    assert lasting.weight == LASTING_FLOOR


@given(
    st.floats(0, 1),
    st.lists(st.tuples(st.floats(0, 1), st.floats(-YEARS, YEARS)), max_size=20),
    st.sampled_from(["personal", "shared", "ephemeral", "branch:b"]),
)
def test_weights_stay_in_bounds_whatever_the_clock_does(
    weight: float, steps: list[tuple[float, float]], namespace: str
) -> None:
    edge = Synapse(weight, NOW, 1, 0)
    for strength, jump in steps:
        edge = edge.reinforced(strength, edge.at + jump, namespace)
        assert 0 <= edge.weight <= 1
        assert 0 <= edge.halved(edge.at, namespace).weight <= 1


@given(st.floats(0, 200), st.floats(0, 200))
def test_decay_in_two_steps_is_decay_in_one(first: float, second: float) -> None:
    edge = Synapse(0.19, NOW, 1, 0)
    halfway = Synapse(edge.weight_at(NOW + first * DAY_S, "personal"), NOW + first * DAY_S, 1, 0)
    end = NOW + (first + second) * DAY_S
    assert halfway.weight_at(end, "personal") == pytest.approx(edge.weight_at(end, "personal"), abs=1e-9)


def test_a_clock_set_back_forgets_nothing() -> None:
    assert taught(1).weight_at(NOW - YEARS, "personal") == taught(1).weight


def test_questions_alone_stay_below_recall() -> None:
    edge: Synapse | None = Synapse()
    for _ in range(1_000):
        edge = edge.lifted(NOW, "personal") if edge else None
    assert edge is None or edge.weight <= QUERY_CAP
    assert taught(1).lifted(NOW, "personal") is None


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.inf, -math.inf, math.nan])
def test_impossible_numbers_are_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput):
        Synapse().reinforced(wrong, NOW, "personal")
    with pytest.raises(InvalidInput):
        check_weight(wrong)


def test_a_reader_sees_its_own_namespace_and_the_two_common_ones() -> None:
    assert read_factors("branch:a") == {"branch:a": 1.0, "personal": 0.8, "shared": 0.5}
    assert read_factors("personal") == {"personal": 1.0, "shared": 0.5}


# -- pairs ---------------------------------------------------------------------------------------------------------


def test_a_batch_of_fifty_is_bounded_and_joins_every_two_files() -> None:
    symbols = [f"f{n % 10}.py::s{n}" for n in range(50)]
    found = pairs_of(symbols)
    assert len(found) == len(set(found)) == MAX_PAIRS
    files = {frozenset((path_of(a), path_of(b))) for a, b in found}
    assert len({files_ for files_ in files if len(files_) == 2}) == 45


def test_a_small_batch_joins_all_its_pairs_once() -> None:
    assert sorted(pairs_of(["b", "a", "b", "c"])) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs_of(["a"]) == []


def test_bulk() -> None:
    assert is_bulk(51, 1)
    assert is_bulk(1, 21)
    assert not is_bulk(50, 20)


def test_an_association_fades_over_ten_minutes() -> None:
    assert association_strength(0) == 1.0
    assert association_strength(300) == pytest.approx(math.exp(-1))
    assert association_strength(601) == association_strength(-1) == 0.0


def test_associations_reach_back_ten_minutes_and_count_a_pair_once() -> None:
    recent = RecentTouches()
    recent.remember(["a"], [], NOW)
    assert recent.associations(["b"], NOW + 60) == {("a", "b"): pytest.approx(math.exp(-0.2))}
    recent.remember(["b"], [pair("a", "b")], NOW + 60)
    assert recent.associations(["b"], NOW + 120) == {}
    assert recent.associations(["c"], NOW + 630) == {("b", "c"): pytest.approx(math.exp(-570 / 300))}
    assert recent.associations(["c"], NOW + YEARS) == {}


def test_associations_are_bounded() -> None:
    recent = RecentTouches()
    recent.remember([f"s{n}" for n in range(50)], [], NOW)
    assert len(recent.associations([f"t{n}" for n in range(50)], NOW + 1)) == MAX_ASSOCIATIONS


def test_transitions_join_consecutive_distinct_symbols() -> None:
    recent = RecentTouches()
    assert recent.steps(["a", "a", "b"], NOW) == [("a", "b")]
    recent.remember(["a", "b"], [], NOW)
    assert recent.steps(["c"], NOW + 30) == [("b", "c")]
    assert recent.steps(["b", "c"], NOW + 30) == [("b", "c")]
    assert recent.steps(["c"], NOW + 601) == []


# -- spread ----------------------------------------------------------------------------------------------------------


def network(edges: list[tuple[int, int, float]], n_nodes: int) -> Network:
    a, b, weight = (np.array(column) for column in zip(*edges, strict=True))
    count = np.ones(len(edges), np.int64)
    rows = EdgeRows(a.astype(np.int64), b.astype(np.int64), weight.astype(float), np.zeros(len(edges)), count, count)
    return Network(n_nodes, [(rows, rows.weight)])


def test_activation_passes_two_hops() -> None:
    found = network([(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)], 4).spread({0: 1.0})
    assert [(fired.node, fired.source) for fired in found] == [(1, 0), (2, 1)]
    assert [fired.energy for fired in found] == pytest.approx([0.6, 0.36])


def test_what_arrives_adds_up_and_seeds_are_left_out() -> None:
    found = network([(0, 2, 0.5), (1, 2, 0.5), (0, 1, 1.0)], 3).spread({0: 1.0, 1: 1.0})
    assert [fired.node for fired in found] == [2]
    assert found[0].energy == pytest.approx(0.6)


def test_recall_begins_at_a_tenth_and_ends_at_twelve() -> None:
    assert network([(0, 1, 0.16)], 2).spread({0: 1.0}) == []
    assert len(network([(0, n, 0.9) for n in range(1, 40)], 40).spread({0: 1.0})) == 12


def test_a_hub_passes_on_less() -> None:
    star = network([(0, n, 1.0) for n in range(1, 201)], 201)
    (first, *_) = star.spread({0: 1.0})
    assert first.energy == pytest.approx(0.6 * math.sqrt(50 / 200))


def test_of_a_vast_hub_the_strongest_edges_count() -> None:
    """By itself it brings nothing to mind; what another seed brings, it still makes stronger."""
    leaves = range(2, 4_002)
    star = [(0, leaf, 0.5 + leaf / 10_000) for leaf in leaves]
    assert network(star, 4_002).spread({0: 1.0}) == []
    found = network([*star, (1, 4_001, 0.5), (1, 2, 0.5)], 4_002).spread({0: 1.0, 1: 1.0})
    hub = 0.6 * math.sqrt(50 / 4_000) * (0.5 + 0.4001)
    assert [fired.node for fired in found] == [4_001, 2]
    assert [fired.energy for fired in found] == pytest.approx([0.3 + hub, 0.3])


def test_edges_that_only_questions_lifted_are_not_recalled() -> None:
    many = network([(n, 99, QUERY_CAP) for n in range(10)], 100)
    assert many.spread(dict.fromkeys(range(10), 1.0)) == []


def test_the_greater_of_two_namespaces_counts() -> None:
    low = network([(0, 1, 0.4)], 2)
    rows = EdgeRows(low.target[:1] * 0, low.target[:1] * 0 + 1, *(np.zeros(1),) * 2, *(np.ones(1, np.int64),) * 2)
    both = Network(2, [(rows, np.array([0.4])), (rows, np.array([0.9]))])
    assert both.n_edges == 1
    assert both.weight.tolist() == [0.9, 0.9]


def test_a_spread_over_a_million_edges_is_quick() -> None:
    random = np.random.default_rng(1)
    n_edges, n_nodes = 1_000_000, 100_000
    ones = np.ones(n_edges, np.int64)
    weight = random.uniform(0.06, 1.0, n_edges)
    a, b = random.integers(0, n_nodes, (2, n_edges))
    large = Network(n_nodes, [(EdgeRows(a, b, weight, weight, ones, ones), weight)])
    seeds = {int(node): 1.0 for node in random.integers(0, n_nodes, 10)}
    best = math.inf
    for _ in range(5):
        before = time.perf_counter()
        assert len(large.spread(seeds)) == 12
        best = min(best, time.perf_counter() - before)
    assert best <= 0.015
