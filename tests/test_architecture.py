"""Holds the layer table: imports go only down, and each outside power (SQL, processes, clocks, …) has one home.

Reads the source with `ast`, so imports inside functions and under `TYPE_CHECKING` count too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "nm_lsp"

# Lower numbers are lower layers. A package may import its own layer and everything below; `SIBLINGS` narrows that.
LAYERS = {
    "base": 0,
    "graph": 1,
    "search": 1,
    "context": 1,
    "synapses": 1,
    "decisions": 1,
    "audit": 1,
    "git": 2,
    "storage": 2,
    "models": 2,
    "worker": 2,
    "watch": 2,
    "events": 2,
    "engine": 3,
    "wire": 4,
    "server": 4,
    "cli": 4,
    "__main__": 5,
}
DOMAIN = {name for name, layer in LAYERS.items() if layer == 1}

# The only edges between the parts of the top layer. The command line starts the server, and only when asked to.
FACES = {("server", "wire"), ("cli", "wire"), ("cli", "server")}
CLI_TO_SERVER = "nm_lsp.server.main"

# Outside modules with one home each: whoever is not named here may not import them.
HOMES = {
    "sqlite3": {"storage"},
    "subprocess": {"git", "worker", "models"},
    "multiprocessing": {"worker"},
    "pygls": {"server"},
    "lsprotocol": {"server"},
    "watchdog": {"watch"},
    "onnxruntime": {"models"},
    "tokenizers": {"models"},
    "annoy": {"models"},
    "safetensors": {"models", "storage"},
    "tree_sitter": {"graph"},
    "networkx": {"graph"},
    "rank_bm25": {"search"},
    "typer": {"cli"},
    "rich": {"cli"},
    "asyncio": {"server"},
}

# What would make a domain function depend on anything but its arguments.
IMPURE_MODULES = {
    "os", "io", "time", "random", "secrets", "socket", "shutil", "tempfile", "glob", "threading",
    "logging", "platformdirs", "psutil", "filelock", "uuid", "urllib", "http", "signal", "sys",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input"}
IMPURE_METHODS = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "iterdir",
    "exists",
    "is_file",
    "is_dir",
    "stat",
    "now",
    "utcnow",
    "today",
}

FORBIDDEN_NAMES = {"manager", "helper", "helpers", "utils", "util", "core", "misc", "common"}


@dataclass(frozen=True, slots=True)
class Import:
    where: str  # "nm_lsp/engine/host.py:12"
    source: str  # the importing module, dotted
    target: str  # the imported module or name, dotted
    top_level: bool  # executed when the module is imported


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def area(dotted: str) -> str | None:
    """The package directly below nm_lsp, or None for nm_lsp itself and for foreign modules."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == "nm_lsp" and len(parts) > 1 and parts[1] in LAYERS else None


def imports_of(path: Path, tree: ast.Module) -> Iterator[Import]:
    source = module_name(path)
    package = source if path.name == "__init__.py" else source.rpartition(".")[0]
    inside = {id(child) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
              for child in ast.walk(node)}  # fmt: skip
    for node in ast.walk(tree):
        where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for target in imported_names(node, package):
            yield Import(where, source, target, id(node) not in inside)


def imported_names(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*anchor, *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
            yield node.args[0].value


SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
IMPORTS = [found for path, tree in TREES.items() for found in imports_of(path, tree)]


def test_every_package_has_a_layer() -> None:
    found = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()
             if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))} - {"__init__"}  # fmt: skip
    assert found <= set(LAYERS), f"packages without a layer: {sorted(found - set(LAYERS))}"


def test_imports_go_only_down() -> None:
    wrong = []
    for found in IMPORTS:
        source, target = area(found.source), area(found.target)
        if source is None or target is None or source == target:
            continue
        if LAYERS[target] > LAYERS[source]:
            wrong.append(f"{found.where} imports {found.target}: up from layer {LAYERS[source]} to {LAYERS[target]}")
        elif LAYERS[source] == 4 and LAYERS[target] == 4 and (source, target) not in FACES:
            wrong.append(f"{found.where} imports {found.target}: faces do not know each other")
    assert not wrong, "\n".join(wrong)


def test_the_command_line_reaches_the_server_only_lazily() -> None:
    wrong = [
        f"{found.where} imports {found.target}"
        for found in IMPORTS
        if area(found.source) == "cli"
        and area(found.target) == "server"
        and (found.top_level or not found.target.startswith(CLI_TO_SERVER))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("power", sorted(HOMES))
def test_each_outside_power_has_one_home(power: str) -> None:
    wrong = [
        f"{found.where} imports {found.target}; only {sorted(HOMES[power])} may"
        for found in IMPORTS
        # `tree_sitter` also stands for every grammar wheel `tree_sitter_<language>`.
        if (found.target.split(".")[0] == power or found.target.split(".")[0].startswith(f"{power}_"))
        and area(found.source) not in HOMES[power]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_domain_is_pure() -> None:
    wrong = []
    for path, tree in TREES.items():
        if area(module_name(path)) not in DOMAIN:
            continue
        wrong += [
            f"{found.where} imports {found.target}: I/O, clocks and the environment are arguments here"
            for found in imports_of(path, tree)
            if found.target.split(".")[0] in IMPURE_MODULES
        ]
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            if isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                wrong.append(f"{where} calls {node.func.id}()")
            if isinstance(node.func, ast.Attribute) and node.func.attr in IMPURE_METHODS:
                wrong.append(f"{where} calls .{node.func.attr}()")
    assert not wrong, "\n".join(wrong)


def test_the_engine_and_the_domain_have_no_protocol_types() -> None:
    wrong = [
        f"{found.where} imports {found.target}"
        for found in IMPORTS
        if found.target.split(".")[0] in {"pygls", "lsprotocol"} and area(found.source) != "server"
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_says_what_it_is() -> None:
    folders = {path.parent for path in SOURCES}
    missing = [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").is_file()]
    assert not missing, f"no __init__.py: {missing}"
    silent = [str(path.relative_to(ROOT)) for path, tree in TREES.items() if not ast.get_docstring(tree)]
    assert not silent, f"no module docstring: {silent}"


def test_names_are_nouns_of_the_field() -> None:
    wrong = [str(path.relative_to(ROOT)) for path in SOURCES
             if FORBIDDEN_NAMES & {path.stem, path.parent.name}]  # fmt: skip
    assert not wrong, wrong


def test_environment_names_are_the_documented_ones() -> None:
    allowed = {"NEURALMIND_BM25", "NEURALMIND_EVENT_LOG", "NEURALMIND_ONNX_MODEL_DIR", "NM_LSP_LOG"}
    found = {
        node.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.isupper()
        and node.value.startswith(("NEURALMIND_", "NM_LSP_"))
    }
    assert found <= allowed, sorted(found - allowed)


def test_the_top_level_of_the_repository_is_the_agreed_one() -> None:
    allowed = {"pyproject.toml", "nm_lsp", "editors", "tests", "fixtures", "README.md", "LICENSE"}
    generated = {"build", "dist", "node_modules"}
    found = {
        path.name for path in ROOT.iterdir() if not path.name.startswith(".") and not path.name.endswith(".egg-info")
    }
    assert found - generated <= allowed, sorted(found - generated - allowed)


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("engine/a.py", "def f():\n    import sqlite3\n", [("sqlite3", False)]),
        ("engine/a.py", "from ..server import main\n", [("nm_lsp.server.main", True)]),
        ("engine/__init__.py", "from . import host\n", [("nm_lsp.engine.host", True)]),
        ("engine/a.py", "import_module('nm_lsp.cli.main')\n", [("nm_lsp.cli.main", True)]),
    ],
)
def test_the_reader_sees_every_form_of_import(path: str, source: str, expected: list[tuple[str, bool]]) -> None:
    found = [(item.target, item.top_level) for item in imports_of(PACKAGE / path, ast.parse(source))]
    assert found == expected
