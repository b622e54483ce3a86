"""The settings of the VS Code extension are those that the server reads, neither more nor less."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nm_lsp.engine.settings import settings_schema

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"
CLIENT_ONLY = {"nmLsp.server.path", "nmLsp.server.package", "nmLsp.trace.server"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("extension_settings", EXTENSION / "scripts" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return json.loads((EXTENSION / "package.nls.json").read_text(encoding="utf-8"))


def test_the_manifest_is_what_the_script_writes(
    script: ModuleType, manifest: dict[str, Any], texts: dict[str, str]
) -> None:
    expected = script.generated(manifest, texts)
    assert (manifest, texts) == expected, "run: python editors/vscode/scripts/settings.py"


def test_every_setting_of_the_schema_is_there_with_its_default(manifest: dict[str, Any]) -> None:
    schema: Any = settings_schema()
    wanted = {
        f"nmLsp.{group}.{name}": entry["default"]
        for group, body in schema["properties"].items()
        for name, entry in body["properties"].items()
    }
    groups = manifest["contributes"]["configuration"]
    found = {name: entry["default"] for group in groups for name, entry in group["properties"].items()}
    assert {name: value for name, value in found.items() if name not in CLIENT_ONLY} == wanted
    assert found.keys() >= CLIENT_ONLY


def test_every_text_of_the_manifest_exists_and_is_used(manifest: dict[str, Any], texts: dict[str, str]) -> None:
    used = {text[1:-1] for text in _texts(manifest) if text.startswith("%") and text.endswith("%")}
    assert used == texts.keys()


def test_every_name_is_our_own(manifest: dict[str, Any]) -> None:
    contributes = manifest["contributes"]
    names = [command["command"] for command in contributes["commands"]]
    names += [view["id"] for views in contributes["views"].values() for view in views]
    names += [name for group in contributes["configuration"] for name in group["properties"]]
    names += [walkthrough["id"] for walkthrough in contributes["walkthroughs"]]
    assert [name for name in names if not name.startswith("nmLsp.")] == []
    assert len(names) == len(set(names))
    assert (
        [each["id"] for each in contributes["viewsContainers"]["activitybar"]]
        == list(contributes["views"])
        == ["nmLsp"]
    )
    # The server's advertised commands become names of the editor, too; NeuralMind's extension has those of the default.
    source = (EXTENSION / "src/logic/names.ts").read_text(encoding="utf-8")
    (prefix,) = re.findall(r'COMMAND_PREFIX = "(.*)"', source)
    assert prefix.startswith("nmLsp.")
    assert not [name for name in names if name.startswith(f"{prefix}.") and name not in CLIENT_ONLY]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for child in children for text in _texts(child)]
