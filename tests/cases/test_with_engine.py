"""The server with its real engine: children, and answers about what is on the screen."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsp_harness import FULL, REAL, ProcessClient

Start = Callable[..., ProcessClient]


def until_ready(client: ProcessClient) -> Any:
    deadline = time.monotonic() + 60
    while not (status := client.request("neuralmind/status", {}))["ready"]:
        assert time.monotonic() < deadline, status
        time.sleep(0.05)
    return status


def test_what_is_on_the_screen_is_found(root: Path, process_client: Start) -> None:
    """The main job: open a folder, search it, change a buffer without saving, find the change under its own URI."""
    client = process_client(REAL)
    client.start(root, FULL)
    status = until_ready(client)
    assert (status["files"], status["folder"]) == (2, root.as_uri())
    result = client.request("neuralmind/search", {"query": "governed"})
    assert result["hits"][0]["id"] == "gov.py::governed"
    assert result["hits"][0]["range"]["start"] == {"line": 0, "character": 0}
    uri = (root / "other.py").as_uri()
    item = {"uri": uri, "languageId": "python", "version": 1, "text": "def marmalade():\n    pass\n"}
    client.notify("textDocument/didOpen", {"textDocument": item})
    deadline = time.monotonic() + 20
    while not (hits := client.request("neuralmind/search", {"query": "marmalade"})["hits"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert (hits[0]["id"], hits[0]["uri"]) == ("other.py::marmalade", uri)
    assert client.stop() == 0
    assert client.unframed == b""
    assert client.errors == b""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("end", ["exit", "eof", "sigterm", "sigkill"])
def test_l01_l07_no_child_is_left(root: Path, process_client: Start, end: str) -> None:
    """L01, L07: however the server ends, its children end with it within 5 s."""
    client = process_client(REAL)
    client.start(root)
    until_ready(client)
    server = psutil.Process(client.process.pid)
    children = server.children(recursive=True)
    assert children
    match end:
        case "exit":
            assert client.stop() == 0
        case "eof":
            client.process.stdin.close()
        case "sigterm":
            client.process.send_signal(signal.SIGTERM)
        case _:
            client.process.kill()
    client.wait(5)
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    assert client.errors == b""


def test_l05_shutdown_amid_indexing_is_quick(root: Path, process_client: Start) -> None:
    """L05: while files are indexed, shutdown and exit do not wait for the build."""
    for number in range(400):
        (root / f"m{number}.py").write_text(f"def function_{number}(a):\n    return a + {number}\n" * 40)
    client = process_client(REAL)
    client.start(root)
    client.request("neuralmind/status", {})
    started = time.monotonic()
    client.request("shutdown")
    answered = time.monotonic() - started
    client.notify("exit")
    assert client.wait(5) == 0
    ended = time.monotonic() - started
    print(f"shutdown {answered:.3f} s, exit {ended:.3f} s, load {os.getloadavg()[0]:.1f}")
    assert ended < 3
    assert client.errors == b""


def test_l09_broken_files_and_debug_logging_leave_the_output_clean(
    root: Path, process_client: Start, tmp_path: Path
) -> None:
    """L09: fifty broken files, a git that prints banners, development mode and debug logging: only frames come out."""
    for number in range(50):
        (root / f"broken{number}.py").write_bytes(b"def f(:\n  '''\x00\xff" + b"(" * number)
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho banner; echo banner >&2\nexit 1\n")
    shim.chmod(0o755)
    loud = {
        "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDEVMODE": "1",
        "PYTHONWARNINGS": "always",
        "NM_LSP_LOG": "DEBUG",
    }
    client = process_client(REAL, env=loud)
    client.start(root, FULL)
    until_ready(client)
    client.request("neuralmind/search", {"query": "governed"})
    assert client.stop() == 0
    assert client.unframed == b""
    assert b"Traceback" not in client.errors, client.errors[-2000:]
