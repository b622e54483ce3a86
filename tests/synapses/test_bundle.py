"""Bundles: what is written is read back, and every field that is wrong is named."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.base.errors import InvalidInput
from nm_lsp.synapses.bundle import Bundle, Learned, from_json, to_json

SOUND: dict[str, Any] = {
    "format": "nm-lsp-synapses",
    "version": 1,
    "time": "2026-01-31T12:00:00.000000Z",
    "namespaces": {
        "personal": {"edges": [["a.py", "b.py::f", 0.51, 2, 1]], "transitions": [["a.py::g", "b.py::f", 3.5]]},
        "branch:x": {"edges": [], "transitions": []},
    },
}
EDGE = ("namespaces", "personal", "edges", 0)
STEP = ("namespaces", "personal", "transitions", 0)


def test_a_sound_bundle_is_read_and_written_unchanged() -> None:
    assert to_json(from_json(SOUND)) == {**SOUND, "namespaces": dict(sorted(SOUND["namespaces"].items()))}


@pytest.mark.parametrize(
    ("place", "value", "field"),
    [
        ((*EDGE, 2), -0.1, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), 1.01, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), math.inf, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), -math.inf, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), math.nan, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), 10**400, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), True, "namespaces.personal.edges[0][2]"),
        ((*EDGE, 2), "0.5", "namespaces.personal.edges[0][2]"),
        ((*EDGE, 3), -1, "namespaces.personal.edges[0][3]"),
        ((*EDGE, 3), 1.5, "namespaces.personal.edges[0][3]"),
        ((*EDGE, 4), 3, "namespaces.personal.edges[0][4]"),
        ((*EDGE, 0), "", "namespaces.personal.edges[0][0]"),
        ((*EDGE, 0), "../a.py", "namespaces.personal.edges[0][0]"),
        ((*EDGE, 0), "/etc/passwd", "namespaces.personal.edges[0][0]"),
        ((*EDGE, 0), "a\x1b[2J.py", "namespaces.personal.edges[0][0]"),
        ((*EDGE, 0), 7, "namespaces.personal.edges[0][0]"),
        ((*EDGE, 1), "a.py", "namespaces.personal.edges[0][1]"),
        (EDGE, ["a.py", "b.py"], "namespaces.personal.edges[0]"),
        ((*STEP, 2), math.inf, "namespaces.personal.transitions[0][2]"),
        ((*STEP, 2), -1, "namespaces.personal.transitions[0][2]"),
        ((*STEP, 2), 101, "namespaces.personal.transitions[0][2]"),
        (STEP, "a", "namespaces.personal.transitions[0]"),
        (("namespaces", "personal", "edges"), {}, "namespaces.personal.edges"),
        (("namespaces", "personal"), {"edges": []}, "namespaces.personal"),
        (("namespaces", "personal", "more"), 1, "namespaces.personal"),
        (("namespaces",), [], "namespaces"),
        (("format",), "other", "format"),
        (("version",), 2, "version"),
        (("time",), "yesterday", "time"),
        (("time",), "2026-01-31T12:00:00", "time"),
        (("more",), 1, "bundle"),
    ],
)
def test_what_is_wrong_is_named(place: tuple[Any, ...], value: object, field: str) -> None:
    data = copy.deepcopy(SOUND)
    inside: Any = data
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(InvalidInput) as caught:
        from_json(data)
    assert caught.value.field == field


@pytest.mark.parametrize("data", [None, [], "x", 1, {}])
def test_what_is_no_bundle_at_all_is_refused(data: object) -> None:
    with pytest.raises(InvalidInput):
        from_json(data)


names = st.from_regex(r"[a-z]{1,3}/[a-z]{1,3}\.py(::[a-z]{1,3})?", fullmatch=True)
ends = st.tuples(names, names).filter(lambda pair: pair[0] != pair[1])


@given(
    st.lists(st.tuples(ends, st.floats(0, 1), st.integers(1, 99), st.integers(0, 1)), max_size=8),
    st.lists(st.tuples(ends, st.floats(0, 100)), max_size=8),
)
def test_reading_and_writing_are_inverse(edges: list[Any], steps: list[Any]) -> None:
    learned = Learned([(*pair, *rest) for pair, *rest in edges], [(*pair, n) for pair, n in steps])
    written = to_json(Bundle(1_800_000_000.0, {"personal": learned}))
    assert to_json(from_json(json.loads(json.dumps(written)))) == written
