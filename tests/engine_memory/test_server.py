"""The brain behind the real server: messages of an editor teach, questions and events show it. Real clocks."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from editing import ENVIRONMENT
from lsp_harness import FULL, REAL, LspError, ProcessClient

from nm_lsp.storage.times import utc_text

Start = Callable[..., ProcessClient]
BODY = "def {name}():\n    return {n}\n"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        **{name: str(tmp_path / name) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")},
        "NEURALMIND_ONNX_MODEL_DIR": str(tmp_path / "none"),
    }


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    for name in ("cart", "ship", "mail"):
        (root / f"{name}.py").write_text(BODY.format(name=name, n=1))
    for command in (
        ("init", "-q", "-b", "main"),
        ("config", "user.email", "ada@example.org"),
        ("config", "user.name", "Ada"),
        ("add", "-A"),
        ("commit", "-q", "-m", "first"),
    ):
        subprocess.run(["git", *command], cwd=root, env=ENVIRONMENT, check=True)
    return root


def until(look: Callable[[], Any], timeout_s: float = 40.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def opened(client: ProcessClient, root: Path, *names: str) -> None:
    for name in names:
        path = root / f"{name}.py"
        item = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text()}
        client.notify("textDocument/didOpen", {"textDocument": item})


def change(client: ProcessClient, root: Path, name: str, n: int) -> None:
    document = {"uri": (root / f"{name}.py").as_uri(), "version": n}
    text = BODY.format(name=name, n=n)
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})


def neighbors(client: ProcessClient, symbol: str) -> dict[str, tuple[float, int]]:
    rows = client.request("neuralmind/neighbors", {"symbol": symbol})["neighbors"]
    return {row["id"]: (row["weight"], row["count"]) for row in rows if row["source"] != "structural"}


def test_an_editor_teaches(shop: Path, env: dict[str, str], process_client: Start) -> None:
    """Changes of unopened and of foreign documents beside them teach nothing and break nothing."""
    client = process_client(REAL, env=env)
    client.start(shop, FULL, {"notifications": ["event"]})
    until(lambda: client.request("neuralmind/status", {})["ready"])
    change(client, shop, "mail", 7)
    item = {"uri": "untitled:Untitled-1", "languageId": "python", "version": 1, "text": "x"}
    client.notify("textDocument/didOpen", {"textDocument": item})
    opened(client, shop, "cart", "ship")
    for n in range(2, 20):
        for name in ("cart", "ship"):
            change(client, shop, name, n)
        document = {"uri": "untitled:Untitled-1", "version": n}
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": f"x{n}"}]})
    found = until(lambda: neighbors(client, "cart.py::cart"))
    assert found == {"ship.py::ship": (pytest.approx(0.3, abs=0.001), 1)}
    assert client.request("neuralmind/next", {"symbol": "cart.py::cart"})["steps"][0]["id"] == "ship.py::ship"
    event = client.wait_for(
        lambda message: message.get("method") == "neuralmind/event" and message["params"]["kind"] == "synapse"
    )
    assert event["params"]["data"]["pairs"] == [["cart.py", "ship.py", 1.0], ["cart.py::cart", "ship.py::ship", 1.0]]
    inspected = client.request("neuralmind/synapses.inspect", {})
    assert (inspected["active"], inspected["learning"]) == ("personal", True)
    assert client.stop() == 0
    assert client.errors == b""
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=shop, env=ENVIRONMENT, check=True, capture_output=True, text=True
    )
    assert status.stdout == ""
    assert "cart.py::cart" in (shop / ".neuralmind" / "SYNAPSE_MEMORY.md").read_text()


def write_bundle(shop: Path, weight: float) -> dict[str, str]:
    learned = {"edges": [["cart.py::cart", "ship.py::ship", weight, 3, 3]], "transitions": []}
    data = {"format": "nm-lsp-synapses", "version": 1, "time": utc_text(time.time() - 60)}
    (shop / "bundle.json").write_text(json.dumps({**data, "namespaces": {"personal": learned}}))
    return {"source": "bundle.json"}


def test_what_others_learned_shows_beside_the_decisions_that_govern(
    shop: Path, env: dict[str, str], process_client: Start
) -> None:
    client = process_client(REAL, env=env)
    client.start(shop, FULL, {"settings": {"synapses": {"hover": True}}})
    until(lambda: client.request("neuralmind/status", {})["ready"])
    record = {"title": "Carts are small", "rationale": "They must fit a bike.", "files": ["cart.py::cart"]}
    client.request("neuralmind/decisions.record", record)
    with pytest.raises(LspError, match=r"namespaces\.personal\.edges\[0\]\[2\]"):
        client.request("neuralmind/synapses.import", write_bundle(shop, -0.5))
    taken = client.request("neuralmind/synapses.import", write_bundle(shop, 0.9))
    assert taken == {"edges": 1, "transitions": 0, "unchanged": 0, "unknown": 0}
    at = {"textDocument": {"uri": (shop / "cart.py").as_uri()}, "position": {"line": 0, "character": 5}}
    text = client.request("textDocument/hover", at)["contents"]["value"]
    assert text.index("Carts are small") < text.index("Usually changes together with") < text.index("ship.py::ship")
    assert client.stop() == 0
    ended = subprocess.run(
        [sys.executable, "-m", "nm_lsp", "memory", "import", "bundle.json", "--json"],
        cwd=shop, env={**os.environ, **env}, check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert json.loads(ended.stdout) == {"edges": 0, "transitions": 0, "unchanged": 1, "unknown": 0}


@pytest.mark.slow
def test_a_locked_store_holds_up_nothing(shop: Path, env: dict[str, str], process_client: Start) -> None:
    client = process_client(REAL, env=env)
    client.start(shop, FULL)
    until(lambda: client.request("neuralmind/status", {})["ready"])
    opened(client, shop, "cart", "ship")
    change(client, shop, "cart", 2)
    change(client, shop, "ship", 2)
    until(lambda: neighbors(client, "cart.py::cart"))
    other = sqlite3.connect(shop / ".neuralmind" / "lsp" / "synapses.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        for n in range(3, 6):
            change(client, shop, "cart", n)
            change(client, shop, "ship", n)
        began = time.monotonic()
        time.sleep(3.0)  # the batch closes while the store is locked
        for _ in range(5):
            at = {"textDocument": {"uri": (shop / "cart.py").as_uri()}, "position": {"line": 0, "character": 5}}
            before = time.monotonic()
            client.request("textDocument/hover", at)
            client.request("neuralmind/search", {"query": "cart"})
            assert time.monotonic() - before < 2.0
        assert neighbors(client, "cart.py::cart")["ship.py::ship"][1] == 1
        assert time.monotonic() - began < 20
    finally:
        other.execute("ROLLBACK")
        other.close()
    until(lambda: neighbors(client, "cart.py::cart")["ship.py::ship"][1] == 2)
    assert client.stop() == 0


def test_a_store_that_cannot_be_read_is_set_aside_and_told(
    shop: Path, env: dict[str, str], process_client: Start
) -> None:
    folder = shop / ".neuralmind" / "lsp"
    folder.mkdir(parents=True)
    (folder / "synapses.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 9_000)
    client = process_client(REAL, env=env)
    client.start(shop, FULL)
    until(lambda: client.request("neuralmind/status", {})["ready"])
    problems = until(
        lambda: [p for p in client.request("neuralmind/status", {})["problems"] if p["code"] == "synapses-set-aside"]
    )
    assert "corrupt-" in problems[0]["message"]
    assert client.stop() == 0
