"""Settings: what is usable is used, what is not is named, and the schema says the same as the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.engine.settings import (
    CONFIG_FILE,
    Settings,
    apply_settings,
    read_environment,
    resolve_settings,
    settings_markdown,
    settings_schema,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["index", "enabled", "search", "rrfK", "git", "path", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("written", "name", "said"),
    [
        ({"indx": {}}, "indx", "no such setting"),
        ({"index": {"enable": True}}, "index.enable", "no such setting"),
        ({"index": {"enabled": 1}}, "index.enabled", "expected true or false, got 1"),
        ({"index": {"max_files": "3"}}, "index.maxFiles", "expected a whole number, got '3'"),
        ({"index": {"maxFiles": 2.5}}, "index.maxFiles", "expected a whole number"),
        ({"index": {"maxFiles": 0}}, "index.maxFiles", "0 is not between 1 and 2,000,000"),
        ({"index": {"excludes": "x"}}, "index.excludes", "expected a list of texts"),
        ({"git.path": ""}, "git.path", "expected a text"),
        ({"search": 5}, "search", "expected an object"),
        ([], "(all)", "expected an object"),
        ({"search": {"cosineFloor": float("nan")}}, "search.cosineFloor", "expected a number"),
    ],
)
def test_a_wrong_setting_is_named_and_costs_only_itself(written: Any, name: str, said: str) -> None:
    good = {"search": {"rrfK": 7}}
    both = {**good, **written} if isinstance(written, dict) and "search" not in written else written
    settings, problems = apply_settings(Settings(), both, "here")
    assert [problem.name for problem in problems] == [name]
    assert said in problems[0].message
    assert f"Setting {name} in here was not used" in str(problems[0])
    assert settings.search.rrf_k == (7 if both is not written else 60)


@given(JSON)
def test_any_json_gives_settings(written: Any) -> None:
    settings, _ = apply_settings(Settings(), written, "here")
    assert isinstance(settings, Settings)


@pytest.mark.parametrize("content", [b"[index", b"\xff\xfe", b"a = " + b"[" * 5000, b""])
def test_an_unreadable_file_is_one_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CONFIG_FILE).parent.mkdir(parents=True)
    (tmp_path / CONFIG_FILE).write_bytes(content)
    settings, problems = resolve_settings({"search": {"rrfK": 7}}, tmp_path)
    assert settings.search.rrf_k == 7
    assert len(problems) == (1 if content else 0)


def test_the_parts_of_the_client_alone_are_no_problem() -> None:
    assert apply_settings(Settings(), {"trace": {"server": "off"}, "server": {"path": "x"}}, "here") == (Settings(), ())


def test_schema_and_page_name_every_setting() -> None:
    schema: Any = settings_schema()
    names = {f"{part}.{name}" for part, inner in schema["properties"].items() for name in inner.get("properties", {})}
    page = settings_markdown()
    assert {"index.maxFileBytes", "search.rrfK", "git.path"} <= names
    assert all(f"| `{name}` |" in page for name in names)
    for part, inner in schema["properties"].items():
        for name, entry in inner["properties"].items():
            given_back, problems = apply_settings(Settings(), {part: {name: entry["default"]}}, "schema")
            assert (given_back, problems) == (Settings(), ())
            assert entry["description"].endswith((".", "absolute path."))


def test_only_the_known_variables_are_read() -> None:
    assert read_environment({}).bm25
    env = {
        "NEURALMIND_BM25": "0",
        "NEURALMIND_EVENT_LOG": "0",
        "NEURALMIND_ONNX_MODEL_DIR": "/m",
        "NM_LSP_LOG": "debug",
    }
    read = read_environment(env)
    assert (read.bm25, read.event_log, read.model_dir, read.log_level) == (False, False, Path("/m"), "DEBUG")
