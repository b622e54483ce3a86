"""No parameter of any call leads out of the opened folder: the cases come from the table of commands itself."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, Session, private_env, session
from lsp_harness import LspError

from nm_lsp.wire.commands import COMMANDS
from nm_lsp.wire.naming import plain_type, union_members, wire_fields

CANARY = "xyzzy_not_yours"

# By name on the wire: what lets a call get past its other parameters. A field that is not here gets the plainest value
# of its type, so that a new call is attacked without a word here.
PLAUSIBLE: dict[str, Any] = {
    "files": ["gov.py"],
    "symbol": "gov.py::governed",
    "query": "governed",
    "reason": "a reason",
    "field": "rationale",
    "commit": "HEAD",
    "source": "docs",
    "mode": "keyword",
}


def hostile(outside: Path) -> list[str]:
    """Ways to say `outside/secret.py`, or something that is nobody's business, in the place of a path."""
    secret = outside / "secret.py"
    return [
        "../outside/secret.py",
        "docs/../../outside/secret.py::" + CANARY,
        str(secret),
        secret.as_uri(),
        "..%2Foutside%2Fsecret.py",
        "%2e%2e/outside/secret.py",
        "..\\outside\\secret.py",
        "out/secret.py",
        "link.py",
        "out/new/export.json",
        "dangling.json",
        ".git/config",
        ".git/new.json",
        "docs/../.git/hooks/post-commit",
        "inner/made.json",
        "docs/.GIT/hooks/post-commit",
        "../outside",
        "out",
        "~/secret.py",
        "a\0b",
        "-o../outside/new",
        "--output=../outside/new",
        "*/../../outside/*",
    ]


def places_of_text(cls: type, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a text can stand in the parameters `cls`: names of fields, 0 for an item of a list, "*" for any key."""
    for field in wire_fields(cls):
        yield from _places(field.type, (*at, field.wire_name))


def _places(hint: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    hint = plain_type(hint)
    for member in union_members(hint) or (hint,):
        if member is str:
            yield at
        elif typing.get_origin(member) is tuple:
            yield from _places(typing.get_args(member)[0], (*at, 0))
        elif typing.get_origin(member) is dict:
            yield (*at, "*")
        elif dataclasses.is_dataclass(member):
            yield from places_of_text(typing.cast("type", member), at)


def filled(cls: type, known: dict[str, Any]) -> dict[str, Any]:
    """The parameters that must be there, with what is plausible."""
    found: dict[str, Any] = {}
    for field in wire_fields(cls):
        if field.wire_name in known:
            found[field.wire_name] = known[field.wire_name]
        elif not field.optional:
            hint = plain_type(field.type)
            plain: dict[Any, Any] = {str: "x", int: 1, float: 0.5, bool: True}
            found[field.wire_name] = [] if typing.get_origin(hint) is tuple else plain.get(hint, {})
    return found


def put(params: dict[str, Any], at: tuple[Any, ...], value: str) -> dict[str, Any]:
    """A copy of `params` with `value` at a place."""
    name, rest = at[0], at[1:]
    if not rest:
        return {**params, name: value}
    if rest[0] == 0:
        return {**params, name: [value]}
    if rest[0] == "*":
        return {**params, name: {value: 1}}
    return {**params, name: put(params.get(name) or {}, rest, value)}


def digest(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes, links by where they lead."""
    return {
        path.relative_to(folder).as_posix(): (
            str(path.readlink()) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
        )
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Repo, Path, dict[str, Any]]]:
    """A server on a repository that is full of links out of it, and the folder that they lead to."""
    base = tmp_path_factory.mktemp("world")
    outside = base / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(f'def {CANARY}():\n    """What governed values are doubled for."""\n')
    (outside / "secret.json").write_text(json.dumps({CANARY: 1}))
    repo = Repo(base / "repo", {"gov.py": GOV, "docs/a.md": "# A\n", "d/secret.py": "public = 1\n"})
    # git lists the file still, although a link has taken the place of its folder.
    (repo.path / "d" / "secret.py").unlink()
    (repo.path / "d").rmdir()
    for name, target in (
        ("d", outside),
        ("out", outside),
        ("inner", repo.path / ".git"),
        ("link.py", outside / "secret.py"),
        ("link.json", outside / "secret.json"),
        ("dangling.json", outside / "made-by-a-link.json"),
        ("graph.json.partial", outside / "secret.json"),
    ):
        (repo.path / name).symlink_to(target)
    env = {**private_env(base / "home"), "HOME": str(outside)}
    with session(repo.path, env=env, settings={"index": {"enabled": True}}) as opened:
        first, second = opened.record("gov.py"), opened.record("docs/a.md", title="Another")
        known = {**PLAUSIBLE, "id": first, "ids": [first], "by": second, "supersededBy": second}
        opened.until(lambda: opened.call("status")["ready"], 60)
        yield opened, repo, outside, known


def test_the_table_is_attacked_where_it_takes_paths() -> None:
    found = {f"{row.name} {'.'.join(map(str, at))}" for row in COMMANDS for at in places_of_text(row.params)}
    assert {
        "search path", "graph.export to", "graph.validate path", "decisions.record files.0", "decisions.diff path",
        "decisions.amend set.files.0", "decisions.list path", "decisions.export dir", "decisions.import source",
        "synapses.export to", "decisions.restore expect.*", "neighbors symbol", "feedback context.0",
    } <= found  # fmt: skip


@pytest.mark.parametrize("name", [row.name for row in COMMANDS])
def test_no_parameter_leads_out(world: tuple[Session, Repo, Path, dict[str, Any]], name: str) -> None:
    opened, repo, outside, known = world
    command = next(row for row in COMMANDS if row.name == name)
    before = digest(outside), digest(repo.path / ".git"), _config(repo)
    plain = filled(command.params, known)
    values = hostile(outside)
    calls = [put(plain, at, value) for at in places_of_text(command.params) for value in values]
    calls += [{**plain, "folder": value} for value in values]
    numbers = [opened.client.ask(f"neuralmind/{name}", call) for call in calls]
    for call, number in zip(calls, numbers, strict=True):
        answer = opened.client.wait_for(partial(_answers, number), 60)
        assert answer.get("error", {}).get("code") != -32603, (call, answer)
        assert CANARY not in json.dumps(answer).replace(json.dumps(call)[1:-1], "").replace(f"::{CANARY}", ""), call
    assert (digest(outside), digest(repo.path / ".git"), _config(repo)) == before


def _answers(number: int, message: dict[str, Any]) -> bool:
    return message.get("id") == number and "method" not in message


def _config(repo: Repo) -> str:
    return repo.git("config", "--local", "--list")


def test_the_index_does_not_follow_links(world: tuple[Session, Repo, Path, dict[str, Any]]) -> None:
    opened, *_ = world
    assert opened.call("search", query="governed values are doubled")["hits"], "the question finds what is inside"
    answers = [opened.call("search", query=CANARY), opened.call("query", query=f"what is {CANARY}")]
    assert f"def {CANARY}" not in json.dumps(answers)
    assert not answers[0]["hits"]


def test_an_export_is_not_written_through_a_link_beside_it(world: tuple[Session, Repo, Path, dict[str, Any]]) -> None:
    opened, repo, outside, _ = world
    before = digest(outside)
    assert opened.call("graph.export", to="graph.json")["path"] == "graph.json"
    assert json.loads((repo.path / "graph.json").read_text())["nodes"]
    assert digest(outside) == before


@pytest.mark.parametrize("path", ["../outside/graph.json", "out/graph.json", "graph-link.json"])
def test_no_file_outside_is_judged(world: tuple[Session, Repo, Path, dict[str, Any]], path: str) -> None:
    opened, repo, outside, _ = world
    (outside / "graph.json").write_text(json.dumps(opened.call("graph.export")["graph"]))
    if not (repo.path / "graph-link.json").is_symlink():
        (repo.path / "graph-link.json").symlink_to(outside / "graph.json")
    with pytest.raises(LspError, match="lies outside the folder"):
        opened.call("graph.validate", path=path)


@pytest.mark.parametrize("method", ["hover", "codeLens", "documentLink", "codeAction"])
def test_documents_outside_are_answered_with_nothing(
    world: tuple[Session, Repo, Path, dict[str, Any]], method: str
) -> None:
    opened, repo, outside, _ = world
    root = repo.path.as_uri()
    for uri in (
        (outside / "secret.py").as_uri(),
        f"{root}/../outside/secret.py",
        f"{root}/..%2Foutside%2Fsecret.py",
        f"{root}/%2e%2e/outside/secret.py",
        f"{root}/a%00b.py",
        "file://elsewhere/gov.py",
        "https://example.org/gov.py",
    ):
        where = {"line": 0, "character": 0}
        params = {
            "textDocument": {"uri": uri},
            "position": where,
            "range": {"start": where, "end": where},
            "context": {"diagnostics": []},
        }
        assert not opened.client.request(f"textDocument/{method}", params), uri
