"""Cases L01 to L09, P01, P03: a real server process over a real pipe."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsp_harness import FAKE, FULL, LspError, ProcessClient, Refusal, Silence, initialize_params

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")

Start = Callable[..., ProcessClient]

WRAPPER = """
import os, subprocess, sys, time
held, out = os.open(sys.argv[1], os.O_RDWR), open(sys.argv[2], "wb")
quiet = subprocess.DEVNULL
# The server holds its own input open, as if another process still had the pipe.
child = subprocess.Popen(sys.argv[3:], stdin=held, stdout=out, stderr=quiet, pass_fds=[held])
print(child.pid, flush=True)
time.sleep(60)
"""


FRAMES = re.compile(rb"Content-Length: \d+\r\n\r\n")


def frame(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def gone_within(process: psutil.Process, seconds: float) -> bool:
    try:
        process.wait(seconds)
    except psutil.TimeoutExpired:
        return False
    except psutil.NoSuchProcess:
        return True
    return True


def test_l01_the_server_ends_with_the_editor_that_started_it(root: Path, tmp_path: Path) -> None:
    """L01: the editor is killed and the pipe to the server stays open elsewhere: gone within 5 s, without spinning."""
    pipe, output = tmp_path / "pipe", tmp_path / "output"
    os.mkfifo(pipe)
    wrapper = subprocess.Popen(
        [sys.executable, "-c", WRAPPER, str(pipe), str(output), *FAKE],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert wrapper.stdout is not None
    with wrapper, pipe.open("wb", buffering=0) as stream:
        server = psutil.Process(int(wrapper.stdout.readline()))
        params = {**initialize_params(root, None, None), "processId": wrapper.pid}
        stream.write(frame({"id": 1, "method": "initialize", "params": params}))
        stream.write(frame({"method": "initialized", "params": {}}))
        deadline = time.monotonic() + 20
        while b"serverInfo" not in output.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        before = cpu(server)
        wrapper.kill()
        wrapper.wait()
        seen = before
        deadline = time.monotonic() + 5
        while not gone_within(server, 0.1):
            assert time.monotonic() < deadline
            with contextlib.suppress(psutil.NoSuchProcess):
                seen = cpu(server)
        assert seen - before < 1


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def test_l01_end_of_input_ends_the_server(root: Path, process_client: Start) -> None:
    """L01, variant B: processId is null and only standard input is closed: gone within 5 s, without spinning."""
    client = process_client()
    client.start(root, processId=None)
    assert client.request("neuralmind/status", {})["ready"]
    client.process.stdin.close()
    client.wait(5)
    assert client.errors == b""


def test_l01_a_foreign_process_id_is_not_believed(root: Path, process_client: Start) -> None:
    """L01: an id that is none of our ancestors (a client in a container) does not end the server."""
    other = subprocess.Popen([sys.executable, "-c", ""])
    other.wait()
    client = process_client()
    client.start(root, processId=other.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        client.process.wait(1.5)
    assert client.request("neuralmind/status", {})["ready"]
    assert client.stop() == 0


def test_l03_a_closed_standard_error_is_harmless(root: Path, process_client: Start) -> None:
    """L03: with nobody reading standard error, log lines are dropped, requests are answered, EOF ends the server."""
    read_end, write_end = os.pipe()
    client = process_client(stderr=write_end, env={"NM_LSP_LOG": "DEBUG"})
    os.close(write_end)
    client.start(root)
    os.close(read_end)
    for _ in range(20):
        client.notify("textDocument/didOpen", {"textDocument": 5})
        client.notify("no/such", {})
    with pytest.raises(LspError):
        client.request("neuralmind/search", {"query": "bug"})
    server = psutil.Process(client.process.pid)
    before = cpu(server)
    time.sleep(0.5)
    assert cpu(server) - before < 0.2
    client.process.stdin.close()
    assert client.process.wait(5) == 1


def test_l03_standard_error_that_was_never_open(root: Path, process_client: Start) -> None:
    """L03: started with descriptor 2 closed, the server speaks the protocol as ever."""
    command = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *FAKE]
    client = process_client(command)
    client.start(root)
    with pytest.raises(LspError):
        client.request("neuralmind/search", {"query": "bug"})
    client.request("neuralmind/search", {"query": "print"})
    assert client.stop() == 0
    assert client.unframed == b""


@pytest.mark.parametrize(("first", "code"), [("shutdown", 0), (None, 1), ("hover", 0)])
def test_l04_exit_codes(root: Path, process_client: Start, first: str | None, code: int) -> None:
    """L04: exit code 0 after shutdown, 1 without; a request after shutdown gets -32600; gone within 2 s each time."""
    client = process_client()
    client.start(root)
    if first is not None:
        assert client.request("shutdown") is None
    if first == "hover":
        where = {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}}
        with pytest.raises(LspError) as error:
            client.request("textDocument/hover", where)
        assert error.value.code == -32600
    started = time.monotonic()
    client.notify("exit")
    assert client.wait(2) == code
    assert time.monotonic() - started < 2


def test_l05_sigterm_ends_the_server(root: Path, process_client: Start) -> None:
    """L05: SIGTERM with a request in flight ends the process at once, and the request is answered."""
    client = process_client()
    client.start(root)
    number = client.ask("neuralmind/search", {"query": "wait"})
    client.request("neuralmind/status", {})
    client.process.send_signal(signal.SIGTERM)
    assert client.wait(2) == 1
    assert [message["error"]["code"] for message in client.messages if message.get("id") == number] == [-32800]
    assert client.errors == b""


def test_l06_shutdown_amid_work_is_clean(root: Path, process_client: Start) -> None:
    """L06: a 2 MB didOpen and queries in flight, then shutdown and exit at once: code 0, no traceback, all answered."""
    for _ in range(3):
        client = process_client()
        client.start(root)
        item = {"uri": (root / "gov.py").as_uri(), "languageId": "python", "version": 1, "text": "x = 1\n" * 350_000}
        client.notify("textDocument/didOpen", {"textDocument": item})
        numbers = [client.ask("neuralmind/search", {"query": "wait"}) for _ in range(8)]
        numbers.append(client.ask("shutdown"))
        client.notify("exit")
        assert client.wait(3) == 0
        assert client.errors == b""
        answered = [message["id"] for message in client.messages if "method" not in message]
        assert sorted(answered) == [1, *numbers]


def test_l06_a_client_that_reads_late_gets_every_answer(root: Path) -> None:
    """L06: answers larger than the pipe, still unread when exit comes, are written before the process ends."""
    server = subprocess.Popen(FAKE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert server.stdin is not None
    with server:
        server.stdin.write(frame({"id": 0, "method": "initialize", "params": initialize_params(root, None, None)}))
        server.stdin.write(frame({"method": "initialized", "params": {}}))
        for number in range(1, 21):
            server.stdin.write(frame({"id": number, "method": "neuralmind/graph.export", "params": {}}))
        server.stdin.flush()
        time.sleep(1.5)  # the answers fill the pipe meanwhile; a slow machine only makes the test weaker
        server.stdin.write(frame({"id": 21, "method": "shutdown"}) + frame({"method": "exit"}))
        server.stdin.flush()
        time.sleep(0.3)
        output, _ = server.communicate(timeout=5)
    ids = [json.loads(part)["id"] for part in FRAMES.split(output)[1:]]
    assert sorted(ids) == list(range(22))


def test_l09_nothing_but_frames_on_standard_output(root: Path, process_client: Start) -> None:
    """L09: prints, writes to descriptor 1, warnings and debug logging all go to standard error."""
    env = {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "always", "NM_LSP_LOG": "DEBUG"}
    client = process_client(env=env)
    client.answer = _answer_all
    client.start(root, FULL)
    client.request("neuralmind/search", {"query": "print"})
    client.request("neuralmind/search", {"query": "index"})
    client.notify("no/such", {"x": 1})
    assert client.stop() == 0
    assert client.unframed == b""
    assert b"stray line" in client.errors
    assert b"another stray line" in client.errors


def _answer_all(method: str, params: Any) -> Any:
    return [None] if method == "workspace/configuration" else None


def test_p01_lengths_count_bytes_and_text_comes_back(root: Path, process_client: Start) -> None:
    """P01: emoji, CJK, combining marks, U+2028 and a lone surrogate pass through frames of the right length."""
    text = "😀 漢字 e\u0301 \u2028 \ud83d end"
    client = process_client()
    client.start(root)
    item = {"uri": (root / "gov.py").as_uri(), "languageId": "python", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": item})
    result = client.request("neuralmind/search", {"query": "text gov.py"})
    assert result["hits"][0]["text"] == text.replace("\ud83d", "\ufffd")
    client.send_bytes(json.dumps({"jsonrpc": "2.0", "id": "é漢", "method": "shutdown"}, ensure_ascii=False).encode())
    assert client.wait_for(lambda message: message.get("id") == "é漢")["result"] is None
    assert client.unframed == b""


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"Content-Length:%d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc\r\nCONTENT-LENGTH:   %d\r\n\r\n",
    ],
)
def test_p01_headers_of_every_allowed_form(root: Path, process_client: Start, header: bytes) -> None:
    """P01: header names in any case and order are read."""
    client = process_client()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
    client.process.stdin.write(header % len(body) + body)
    client.process.stdin.flush()
    assert client.wait_for(lambda message: message.get("id") == 1)["result"]["serverInfo"]


@pytest.mark.parametrize("junk", [b"hello\r\n\r\n", b"Content-Length: x\r\n\r\n", b"x" * 20_000])
def test_p01_what_is_no_frame_ends_the_connection(process_client: Start, junk: bytes) -> None:
    """P01: after a broken header nothing can be trusted: the server says so on standard error and ends."""
    client = process_client()
    client.process.stdin.write(junk)
    client.process.stdin.flush()
    assert client.wait(5) == 1
    assert b"closing" in client.errors
    assert b"Traceback" not in client.errors


def test_initialize_is_answered_within_a_second(root: Path, process_client: Start) -> None:
    """From the start of the process, in CPU seconds, since the machine is shared: it waits for nothing else."""
    client = process_client()
    started = time.monotonic()
    client.request("initialize", initialize_params(root, FULL, None))
    taken = cpu(psutil.Process(client.process.pid))
    print(f"initialize answered after {taken:.2f} CPU s, {time.monotonic() - started:.2f} s of the clock")
    assert taken < 1


@pytest.mark.parametrize("reply", [Refusal, Silence])
def test_p05_p06_a_client_that_refuses_or_ignores_our_requests(
    root: Path, process_client: Start, reply: type[Exception]
) -> None:
    """P05, P06: refused or unanswered requests of ours show no progress, and leave nothing on standard error."""

    def answer(method: str, params: Any) -> Any:
        if method == "workspace/configuration":
            return [None]
        raise reply

    client = process_client()
    client.answer = answer
    client.start(root, FULL)
    client.request("neuralmind/search", {"query": "index"})
    client.request("neuralmind/status", {})
    assert client.stop() == 0
    assert client.errors == b""
    assert not [message for message in client.messages if message.get("method") == "$/progress"]
