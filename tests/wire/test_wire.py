"""The table, its JSON forms and the page generated from it."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.base.text import PositionEncoding
from nm_lsp.engine import requests as r
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.host import Host
from nm_lsp.engine.memory.desk import MemoryDesk
from nm_lsp.graph.model import Span
from nm_lsp.wire.command import Command
from nm_lsp.wire.commands import BY_NAME, COMMANDS
from nm_lsp.wire.decode import decode
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces
from nm_lsp.wire.protocol_page import protocol_page

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_row_is_a_method_of_the_host(command: Command) -> None:
    part, _, rest = command.method.partition(".")
    owner, name = ({"decisions": Desk, "memory": MemoryDesk}[part], rest) if rest else (Host, command.method)
    method = getattr(owner, name)
    hints = typing.get_type_hints(method)
    parameters = list(inspect.signature(method).parameters)[1:]
    expected = [command.params, Cancellation, *([Caller] if command.with_caller else [])]
    assert [hints[name] for name in parameters] == expected
    assert hints["return"] is command.result
    assert command.doc.endswith(".")
    assert not command.title.endswith(".")


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(COMMANDS)


def test_the_page_is_the_one_that_is_committed() -> None:
    """After a change of the table or the settings: `python -m nm_lsp.wire.protocol_page`."""
    page = Path(__file__).parents[2] / "editors" / "PROTOCOL.md"
    assert page.read_text(encoding="utf-8") == protocol_page()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@given(
    fields=st.dictionaries(st.sampled_from(["query", "limit", "kinds", "path", "budget", "trace", "to"]), JSON) | JSON
)
def test_any_json_is_parameters_or_an_error_that_names_a_field(command: Command, fields: Any) -> None:
    try:
        params = decode(command.params, fields)
    except InvalidInput as error:
        refused = error
    else:
        assert isinstance(params, command.params)
        return
    assert refused.field
    assert refused.message.startswith(f"{refused.field}: ")


def test_defaults_and_lenient_numbers() -> None:
    assert decode(r.SearchParams, {"query": "x"}) == r.SearchParams(query="x")
    assert decode(r.SearchParams, {"query": "x", "limit": 5.0, "kinds": None}).limit == 5
    assert decode(r.Nothing, None) == r.Nothing()


@dataclasses.dataclass(frozen=True)
class _Inner:
    tag_names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Outer:
    set_it: _Inner
    phase: r.Phase = r.Phase.IDLE
    expect: dict[str, int] | None = None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"setIt": {"tagNames": ["a", 2]}}, "setIt.tagNames[1]: expected a text, got the number 2"),
        ({"setIt": {"tagNames": "a"}}, "setIt.tagNames: expected a list"),
        ({"setIt": {"tagNames": [], "x": 1}}, "setIt.x: unknown field."),
        ({"setIt": {}}, "setIt.tagNames: is missing; expected a list"),
        ({"setIt": {"tagNames": []}, "phase": "busy"}, 'phase: expected one of "scanning"'),
        ({"setIt": {"tagNames": []}, "phase": []}, "phase: expected one of"),
        ({"setIt": {"tagNames": []}, "expect": {"a": True}}, "expect.a: expected a whole number, got true"),
        ({"setIt": {"tagNames": ["a"] * 1001}}, "setIt.tagNames: is too long"),
        ({"set_it": {"tagNames": []}}, "set_it: unknown field."),
    ],
)
def test_nested_errors_name_the_whole_way(data: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        decode(_Outer, data)
    assert said in str(error.value)


def test_results_have_the_form_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_text('x\n"😀" def f\n')
    place = r.Place("a b.py", Span(0, 0, 1, 7, 1, 11))
    hit = r.Hit("a b.py::f", place, "function", "f", "def f()", 0.5, "text", r.Ranks(1, None, None))
    places = FolderPlaces(tmp_path, PositionEncoding.UTF16)
    assert encode(r.SearchResult((hit,), (r.Missing.MODEL,)), places) == {
        "hits": [
            {
                "id": "a b.py::f",
                "uri": (tmp_path / "a b.py").as_uri(),
                "path": "a b.py",
                "range": {"start": {"line": 1, "character": 5}, "end": {"line": 1, "character": 9}},
                "kind": "function",
                "name": "f",
                "signature": "def f()",
                "score": 0.5,
                "text": "text",
                "ranks": {"keyword": 1, "vector": None, "synapse": None},
            }
        ],
        "partial": ["model"],
    }
    assert "trace" not in encode(r.QueryResult("", 0, (), (), (), None), places)


def test_a_column_of_a_file_that_changed_or_went_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("é\n")
    places = FolderPlaces(tmp_path)
    assert places.column("gone.py", 3, 7) == 7
    assert places.column("short.py", 9, 7) == 7
    assert places.column("short.py", 0, 7) == 1
    assert places.column("nul\0.py", 0, 7) == 7
