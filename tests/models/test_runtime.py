"""The inference library reports nothing and leaves nothing in the user's folders."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import nm_lsp

PACKAGE = Path(nm_lsp.__file__).parent

# The library keeps quiet by itself where it sees a test or a build server, so the child must not look like one.
QUIETING = {
    "CI",
    "TF_BUILD",
    "GITHUB_ACTIONS",
    "BUILD_ID",
    "BUILD_NUMBER",
    "BUILDKITE",
    "TRAVIS",
    "CIRCLECI",
    "APPVEYOR",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "CODEBUILD_BUILD_ID",
    "ORT_DISABLE_TELEMETRY",
    "ORT_RUNNING_UNIT_TESTS",
}


def test_loading_and_running_a_model_writes_nothing_into_the_users_folders(model_files, tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from nm_lsp.models.embedder import Embedder\n"
        "from nm_lsp.models.weights import ModelFiles, WeightsFormat\n"
        "weights, tokenizer = map(Path, sys.argv[1:])\n"
        "files = ModelFiles(weights, tokenizer, WeightsFormat.SAFETENSORS, True, 'id')\n"
        "print(Embedder.open(files).embed(['text']).shape)\n"
    )
    kept = {key: value for key, value in os.environ.items() if key not in QUIETING and not key.startswith("XDG_")}
    environment = {**kept, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    printed = subprocess.check_output(
        [sys.executable, "-c", program, str(model_files.weights), str(model_files.tokenizer)],
        env=environment,
        text=True,
    )
    assert printed.strip() == "(1, 384)"
    assert list(tmp_path.rglob("*")) == []


def test_only_one_module_imports_the_runtime():
    importers = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "onnxruntime" for name in names):
                importers.add(path.relative_to(PACKAGE).as_posix())
    assert importers == {"models/runtime.py"}
