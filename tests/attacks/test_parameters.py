"""Every command of the table with parameters of every kind: refused by name of the field, or answered; nothing lost."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from decision_session import Repo, private_env
from hypothesis import strategies as st
from lengths import Length, lengths
from lsp_harness import REAL, LspError, ProcessClient

from nm_lsp.wire.command import Command
from nm_lsp.wire.commands import COMMANDS
from nm_lsp.wire.decode import BOUNDS
from nm_lsp.wire.naming import is_enum, plain_type, union_members, wire_fields

INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603

WORDS = st.sampled_from(
    [
        "", " ", "gov.py", "gov.py::governed", "docs/", "*.py", "../outside.py", "/etc/passwd", "file:///etc/passwd",
        "%2e%2e/x", "a\0b", "\ud800", "\u202e", "[x](command:y)", "HEAD", "HEAD~1", "-x", "nm-", "all", "active",
        "stale", "json", "title", "rationale", "layout", "personal", "2026-01-01T00:00:00Z", "x" * 300, "doubled",
    ]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
WRONG: dict[type, st.SearchStrategy[Any]] = {
    str: st.one_of(st.none(), st.integers(), st.booleans(), st.lists(st.text()), st.just({}), st.just("x" * 20_001)),
    int: st.one_of(
        st.none(), st.just(1.5), st.booleans(), st.text(), st.just([1]), st.just(10**30), st.just(-(10**30))
    ),
    float: st.one_of(st.none(), st.booleans(), st.text(), st.just([]), st.just(1e999)),
    bool: st.one_of(st.none(), st.sampled_from([0, 1]), st.text(), st.just([])),
}


def fitting(hint: Any, name: str, ids: list[str]) -> st.SearchStrategy[Any]:
    """Values of the right type, sensible or not."""
    hint = plain_type(hint)
    if members := union_members(hint):
        return st.one_of([fitting(member, name, ids) for member in members])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return st.lists(fitting(arguments[0], name, ids), max_size=3)
    if origin is dict:
        return st.dictionaries(WORDS | st.sampled_from(ids), fitting(arguments[1], name, ids), max_size=2)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if is_enum(hint):
        return st.sampled_from([member.value for member in hint])
    if dataclasses.is_dataclass(hint):
        return objects(hint, ids)
    low, high = BOUNDS.get(name, (-5, 2**53))
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: WORDS | st.text(max_size=20) | st.sampled_from(ids),
        int: st.integers(low, min(high, 50)) | st.sampled_from([low, high]),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return plain.get(hint, JSON)


def objects(cls: Any, ids: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    fields = {f.wire_name: fitting(f.type, f.wire_name, ids) for f in wire_fields(cls)}
    needed = {f.wire_name for f in wire_fields(cls) if not f.optional}
    return st.fixed_dictionaries(
        {name: values for name, values in fields.items() if name in needed},
        optional={name: values for name, values in fields.items() if name not in needed},
    )


def wrong(hint: Any) -> st.SearchStrategy[Any] | None:
    """Values that no value of `hint` is; None where every JSON value is one."""
    hint = plain_type(hint)
    members = union_members(hint) or (hint,)
    kinds = [member for member in members if member is not type(None)]
    if len(kinds) != 1:
        return None
    kind = kinds[0]
    if typing.get_origin(kind) in {tuple, dict} or dataclasses.is_dataclass(kind):
        values: st.SearchStrategy[Any] = st.one_of(st.integers(), st.booleans(), st.just("text"))
    elif kind in WRONG:
        values = WRONG[kind]
    elif is_enum(kind) or typing.get_origin(kind) is typing.Literal:
        values = st.sampled_from([7, [], {}, "no such choice"])
    else:
        return None
    return values.filter(lambda value: value is not None) if type(None) in members else values


def spoilt(command: Command, ids: list[str]) -> st.SearchStrategy[tuple[dict[str, Any], str]]:
    """Parameters with one fault, and the field it lies in."""
    good = objects(command.params, ids)
    faults = [st.tuples(good.map(lambda fields: {**fields, "noSuchField": 1}), st.just("noSuchField"))]
    for field in wire_fields(command.params):
        name = field.wire_name
        values = wrong(field.type)
        if values is not None:
            put = st.builds(lambda fields, value, name=name: {**fields, name: value}, good, values)
            faults.append(st.tuples(put, st.just(name)))
        if not field.optional:
            left_out = good.map(lambda fields, name=name: {key: each for key, each in fields.items() if key != name})
            faults.append(st.tuples(left_out, st.just(name)))
    return st.one_of(faults)


class Memory:
    """A server on a repository with decisions, and what must never change unasked."""

    def __init__(self, client: ProcessClient, repo: Repo) -> None:
        self.client = client
        self.repo = repo
        self.ids: list[str] = []

    def call(self, name: str, fields: Any) -> Any:
        return self.client.request(f"neuralmind/{name}", fields, 20.0)

    def kept(self) -> set[str]:
        listed = self.call("decisions.list", {"limit": 1_000})
        assert listed["cursor"] is None
        return {row["id"] for row in listed["decisions"]}

    def n_records(self) -> int:
        verdict = self.call("audit.verify", {})
        assert verdict["valid"], verdict
        return int(verdict["records"])

    def outside(self) -> set[str]:
        """What lies beside the repository and in it, the folder of ours left out."""
        root = self.repo.path.parent
        ours = {".neuralmind", ".git", "home"}
        return {path.relative_to(root).as_posix() for path in root.rglob("*") if not ours & {*path.parts}}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("parameters")
    repo = Repo(folder / "repo")
    client = ProcessClient(REAL, env=private_env(folder / "home"))
    try:
        client.start(repo.path, options={"settings": {"index": {"enabled": False}}})
        memory = Memory(client, repo)
        for number in range(3):
            fields = {"title": f"Rule {number}", "rationale": "Because.", "files": ["gov.py::governed", "docs/"]}
            memory.ids.append(memory.call("decisions.record", fields)["decision"]["id"])
        yield memory
        assert client.stop() == 0
        assert client.unframed == b""
        assert b"Traceback" not in client.errors, client.errors.decode()
    finally:
        client.kill()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@lengths(6, share=4)
def test_a_wrong_field_is_named_and_nothing_changes(length: Length, command: Command, memory: Memory) -> None:
    before = memory.kept(), memory.n_records()

    def check(example: tuple[dict[str, Any], str]) -> None:
        fields, name = example
        with pytest.raises(LspError) as error:
            memory.call(command.name, fields)
        assert (error.value.code, error.value.message.startswith(name)) == (INVALID_PARAMS, True), error.value

    length.attack(spoilt(command, memory.ids), check)
    assert (memory.kept(), memory.n_records()) == before


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@lengths(6, share=4)
def test_fitting_parameters_are_answered_and_lose_nothing(length: Length, command: Command, memory: Memory) -> None:
    """Whatever a well-formed call asks for, it is done or refused in plain words; no decision, record or file of
    others is lost, and nothing is written outside the folder of ours unless it was asked for by name."""
    before, n_before, files = memory.kept(), memory.n_records(), memory.outside()

    def check(fields: dict[str, Any]) -> None:
        refused = None
        try:
            memory.call(command.name, fields)
        except LspError as error:
            refused = error
        assert refused is None or (refused.code != INTERNAL_ERROR and refused.message), refused

    length.attack(objects(command.params, memory.ids), check)
    assert memory.kept() >= before
    assert memory.n_records() >= n_before
    lost = files - memory.outside()
    assert not lost
