"""A language server started for one question, spoken to over real pipes, as an editor would.

Serves `nm-lsp doctor` (does the server start and answer?) and `nm-lsp query --through-server`. Guarantees: every wait
can be cancelled and ends; the server is ended, and killed if it does not end by itself; it gets no input of ours but
frames. Must not know pygls, lsprotocol or what the answers mean: they are plain JSON here.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import EnvironmentProblem, InternalError
from nm_lsp.base.uris import uri_of_path

Progress = Callable[[str, int | None], None]
"""Message and percent (None while the total is unknown), on the calling thread."""

SERVER_COMMAND = (sys.executable, "-P", "-m", "nm_lsp", "--stdio")
ANSWER_WITHIN_S = 30.0
END_WITHIN_S = 10.0
POLL_S = 0.05
STDERR_LINES_KEPT = 20
MAX_HEADER_BYTES = 4096

Message = dict[str, Any]


class ServerProcess:
    """One server on one folder. Use it as a context manager; one thread at a time."""

    def __init__(self, folder: Path, cancel: Cancellation, *, command: Sequence[str] = SERVER_COMMAND) -> None:
        self._folder = folder
        self._cancel = cancel
        self._command = command
        self._last_id = 0
        self._inbox: queue.Queue[Message | None] = queue.Queue()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES_KEPT)
        self._on_progress: Progress = lambda _message, _percent: None

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise EnvironmentProblem(f"The server cannot be started: {error}.") from error
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._stdin, self._stdout, self._stderr_pipe = stdin, stdout, stderr
        self._readers = [
            threading.Thread(target=self._read_frames, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closing its input ends the server, whatever state it is in."""
        # It may have ended already and taken its end of the pipe with it.
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(END_WITHIN_S)
        self._stdout.close()
        self._stderr_pipe.close()

    @property
    def exit_code(self) -> int | None:
        """None while the process runs."""
        return self._process.poll()

    def initialize(self) -> Message:
        """The handshake; returns the `initialize` result."""
        uri = uri_of_path(self._folder)
        result: Message = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "nm-lsp"},
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": self._folder.name}],
                "capabilities": {"window": {"workDoneProgress": True}, "workspace": {"workspaceFolders": True}},
            },
        )
        self._send({"method": "initialized", "params": {}})
        return result

    def wait_ready(self, on_progress: Progress) -> None:
        """Until symbols, keyword search and graph are complete."""
        self._on_progress = on_progress
        while not self.request("neuralmind/status", {}).get("ready"):
            self._cancel.check()
            time.sleep(POLL_S)

    def shut_down(self) -> int:
        """The polite end; returns the exit code of the process."""
        self.request("shutdown", None)
        self._send({"method": "exit"})
        try:
            return self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired as error:
            raise EnvironmentProblem(f"The server did not end within {END_WITHIN_S:.0f} s of `exit`.") from error

    def request(self, method: str, params: object) -> Any:
        """The result of one request. Raises `EnvironmentProblem` where the server ends or keeps silent, `InternalError`
        where it answers with an error."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while True:
            self._cancel.check()
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"The server did not answer {method} within {ANSWER_WITHIN_S:.0f} s.")
            try:
                message = self._inbox.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if message is None:
                words = self._last_words()
                raise EnvironmentProblem(f"The server ended or broke off before it answered {method}.{words}")
            if "method" in message:
                self._react(message)
            elif message.get("id") == self._last_id:
                if "error" in message:
                    raise InternalError(f"The server answered {method}: {message['error'].get('message')}")
                return message.get("result")

    def _react(self, message: Message) -> None:
        """Answer a request of the server's with nothing, look at a notification."""
        if "id" in message:
            items = (
                message.get("params", {}).get("items", []) if message["method"] == "workspace/configuration" else None
            )
            self._send({"id": message["id"], "result": None if items is None else [None] * len(items)})
        elif message["method"] == "$/progress":
            value = message["params"]["value"]
            if value.get("kind") != "end":
                self._on_progress(value.get("message") or value.get("title") or "", value.get("percentage"))

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            self._stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self._stdin.flush()
        except OSError as error:
            raise EnvironmentProblem(f"The server closed its input.{self._last_words()}") from error

    def _read_frames(self) -> None:
        while (message := read_frame(self._stdout)) is not None:
            self._inbox.put(message)
        self._inbox.put(None)

    def _read_stderr(self) -> None:
        for line in self._stderr_pipe:
            self._stderr.append(line.decode("utf-8", "replace").rstrip())

    def _last_words(self) -> str:
        self._readers[1].join(POLL_S)
        return f" Its last words: {self._stderr[-1]}" if self._stderr else ""


def read_frame(stream: IO[bytes]) -> Message | None:
    """The next message; None at the end of the stream and for anything that is no frame."""
    length = -1
    while (line := stream.readline(MAX_HEADER_BYTES)) not in {b"", b"\r\n"}:
        name, colon, value = line.partition(b":")
        if not colon:
            return None  # a stray print, say: waiting for the end of such a header would be waiting for ever
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    body = stream.read(length) if length >= 0 else b""
    if length < 0 or len(body) < length:
        return None
    try:
        message = json.loads(body)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def ask(folder: Path, name: str, params: object, cancel: Cancellation, on_progress: Progress) -> Any:
    """The JSON answer to `neuralmind/<name>` of a server started on `folder`, once its index is ready."""
    with ServerProcess(folder, cancel) as server:
        server.initialize()
        server.wait_ready(on_progress)
        answer = server.request(f"neuralmind/{name}", params)
        server.shut_down()
        return answer


def check_server(folder: Path, cancel: Cancellation, *, command: Sequence[str] = SERVER_COMMAND) -> float:
    """Start a server on `folder`, shake hands, end it. Returns the seconds until `initialize` was answered; raises
    `EnvironmentProblem` or `InternalError` with what went wrong."""
    started = time.monotonic()
    with ServerProcess(folder, cancel, command=command) as server:
        server.initialize()
        answered_s = time.monotonic() - started
        code = server.shut_down()
        if code != 0:
            raise EnvironmentProblem(f"The server ended with code {code}.")
    return answered_s
