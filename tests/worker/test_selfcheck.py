"""The question through a server process, against small servers that behave and misbehave on purpose."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, EnvironmentProblem, InternalError
from nm_lsp.worker.selfcheck import ServerProcess, check_server, read_frame

# Reads frames, lets `answer(message)` of the test's own text decide, ends at `exit` or EOF.
SERVER = """
import json, sys
def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()
def read():
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"", b"\\r\\n"):
        if line.lower().startswith(b"content-length"):
            length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length)) if length else None
while (message := read()) is not None:
    if message.get("method") == "exit":
        sys.exit(CODE)
    if "id" in message and "method" in message:
        ANSWER
"""
POLITE = "send(id=message['id'], result={'ready': True, 'method': message['method']})"


def command(answer: str, code: int = 0) -> list[str]:
    return [sys.executable, "-c", SERVER.replace("ANSWER", answer).replace("CODE", str(code))]


def test_a_server_that_shakes_hands_and_ends_is_healthy(tmp_path: Path) -> None:
    assert 0 < check_server(tmp_path, Cancellation(), command=command(POLITE)) < 30


@pytest.mark.parametrize(
    ("answer", "code", "error", "words"),
    [
        (
            "sys.exit('no such module')",
            0,
            EnvironmentProblem,
            "ended or broke off before it answered initialize.*no such module",
        ),
        ("print('hello', flush=True)", 0, EnvironmentProblem, "broke off before"),
        ("send(id=message['id'], error={'code': -1, 'message': 'boom'})", 0, InternalError, "boom"),
        (POLITE, 3, EnvironmentProblem, "ended with code 3"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, answer: str, code: int, error: type[Exception], words: str) -> None:
    # A stray print makes the stream unreadable; the reader then gives up on it instead of waiting for ever.
    with pytest.raises(error, match=f"(?s){words}"):
        check_server(tmp_path, Cancellation(), command=command(answer, code))


def test_a_missing_program_is_a_problem_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="cannot be started"):
        check_server(tmp_path, Cancellation(), command=["nm-lsp-that-does-not-exist"])


def test_requests_of_the_server_are_answered_and_progress_is_passed_on(tmp_path: Path) -> None:
    answer = """
        if message["method"] == "neuralmind/status":
            send(id="w", method="workspace/configuration", params={"items": [{}, {}]})
            reply = read()
            value = {"kind": "report", "message": "a.py", "percentage": 7}
            send(method="$/progress", params={"token": 1, "value": value})
            send(id=message["id"], result={"ready": reply["result"] == [None, None]})
        else:
            send(id=message["id"], result={})
"""
    seen: list[tuple[str, int | None]] = []
    with ServerProcess(tmp_path, Cancellation(), command=command(answer)) as server:
        server.initialize()
        server.wait_ready(lambda message, percent: seen.append((message, percent)))
    assert seen == [("a.py", 7)]


def test_a_cancelled_wait_ends_and_leaves_no_process(tmp_path: Path) -> None:
    cancel = Cancellation()
    cancel.cancel()
    with pytest.raises(Cancelled), ServerProcess(tmp_path, cancel, command=command("pass")) as server:
        server.initialize()
    assert server.exit_code is not None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"Content-Length: 2\r\n\r\n{}", {}),
        (b'Content-Type: x\r\ncontent-length: 7\r\n\r\n{"a":1}', {"a": 1}),
        (b"", None),
        (b"Content-Length: 20\r\n\r\n{}", None),
        (b"Content-Length: 2\r\n\r\n[]", None),
        (b"Content-Length: 2\r\n\r\n{{", None),
        (b"hello\n", None),
    ],
)
def test_frames(raw: bytes, expected: object) -> None:
    assert read_frame(io.BytesIO(raw)) == expected
