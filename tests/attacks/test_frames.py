"""Whatever a client writes, every request gets exactly one answer and nothing but frames comes back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from decision_session import private_env
from hypothesis import strategies as st
from lengths import Length, lengths
from lsp_harness import REAL, ProcessClient

PATIENCE_S = 20.0

IDS = (
    st.integers(-(10**40), 10**40)
    | st.text(max_size=12)
    | st.sampled_from(["", "\ud800", "é漢😀", "1", 0, -1, 2**53, 2**63, "x" * 5_000])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
URI = "file:///nowhere/a.py"
POSITION = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
KNOWN = st.sampled_from(
    [
        ("neuralmind/status", {}),
        ("neuralmind/search", {"query": "governed"}),
        ("neuralmind/decisions.list", {}),
        ("neuralmind/decisions.get", {"ids": ["nm-aaaaaaaa"]}),
        ("textDocument/hover", POSITION),
        ("textDocument/codeLens", {"textDocument": {"uri": URI}}),
        ("workspace/symbol", {"query": "x"}),
        ("workspace/executeCommand", {"command": "neuralmind.status", "arguments": [{}]}),
        ("initialize", {"capabilities": {}}),
    ]
)
METHODS = KNOWN.map(lambda call: call[0]) | st.text(max_size=20).filter(lambda name: name not in {"exit", "shutdown"})
NO_IDS = st.sampled_from([True, False, None, 1.5, [], {}, [1], {"id": 1}])

Message = tuple[bytes, Any]
"""A body and the id that exactly one answer to it must bear; `NO_ANSWER` where there must be none."""
NO_ANSWER = object()


def body(message: Any) -> bytes:
    return json.dumps(message).encode()


def request(msg_id: Any, method: Any, params: Any) -> bytes:
    return body({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})


NESTED = [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000]
BROKEN = st.sampled_from(
    [b"", b"\xff\xfe", b'{"jsonrpc": "2.0", "id": 1, "method": "\xc3"}', b"\xef\xbb\xbf{}", b"{" * 7, b"nul", *NESTED]
) | st.binary(max_size=40).filter(lambda raw: not is_json(raw))
NO_MESSAGES = st.one_of(
    st.lists(KNOWN.map(lambda call: {"jsonrpc": "2.0", "id": 1, "method": call[0], "params": call[1]}), max_size=3),
    st.integers(),
    st.text(max_size=8),
    st.just({}),
    st.just({"jsonrpc": "2.0"}),
    st.builds(lambda method: {"jsonrpc": "2.0", "id": 1, "method": method}, st.sampled_from([None, 7, [], {}])),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(lambda i, call: (request(i, *call), i), IDS, KNOWN),
    st.builds(lambda i, method, params: (request(i, method, params), i), IDS, METHODS, JSON),
    st.builds(lambda i, call: (request(i, *call), None), NO_IDS, KNOWN),
    BROKEN.map(lambda raw: (raw, None)),
    NO_MESSAGES.map(lambda message: (body(message), None)),
    st.builds(
        lambda method, params: (body({"jsonrpc": "2.0", "method": method, "params": params}), NO_ANSWER), METHODS, JSON
    ),
    IDS.map(lambda i: (body({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": i}}), NO_ANSWER)),
    st.builds(lambda i, result: (body({"jsonrpc": "2.0", "id": i, "result": result}), NO_ANSWER), IDS, JSON),
    IDS.map(lambda i: (body({"jsonrpc": "2.0", "id": i, "error": 5}), NO_ANSWER)),
)
DUPLICATES = st.builds(lambda i, call, n: [(request(i, *call), i)] * n, IDS, KNOWN, st.integers(2, 4))
CONVERSATIONS = st.lists(MESSAGES.map(lambda message: [message]) | DUPLICATES, min_size=1, max_size=8).map(
    lambda parts: [message for part in parts for message in part]
)


def is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def shown(msg_id: Any) -> str:
    """Ids of different kinds are different ids: 1 is not "1"."""
    return json.dumps(msg_id)


class Talk:
    """One server and what it has answered."""

    def __init__(self, client: ProcessClient) -> None:
        self.client = client
        self._n_fences = 0
        self._counted = 0

    def answers(self, wanted: Counter[str]) -> Counter[str]:
        """The ids answered since the last call, once as many as `wanted` have come and a request after them too."""
        start = self._counted

        def new() -> list[dict[str, Any]]:
            return [each for each in list(self.client.messages)[start:] if "method" not in each]

        with self.client._changed:
            assert self.client._changed.wait_for(lambda: len(new()) >= wanted.total(), PATIENCE_S), wanted - Counter(
                shown(each["id"]) for each in new()
            )
        # A second answer to anything would come before that to a later request.
        self._n_fences += 1
        fence = f"fence {self._n_fences}"
        self.client.send_bytes(request(fence, "neuralmind/status", {}))
        self.client.wait_for(lambda message: message.get("id") == fence, PATIENCE_S)
        found = Counter(shown(each["id"]) for each in new())
        found[shown(fence)] -= 1
        self._counted = len(self.client.messages)
        return +found


@pytest.fixture
def talk(root: Path, tmp_path: Path, process_client: Callable[..., ProcessClient]) -> Iterator[Talk]:
    client = process_client(REAL, env=private_env(tmp_path / "home"))
    client.start(root, options={"settings": {"index": {"enabled": False}}})
    talk = Talk(client)
    talk._counted = len(client.messages)
    # Ids of its own, so that no answer to an attack is taken for one to the shutdown.
    client._next_id = 10**50
    yield talk
    assert client.stop() == 0
    assert client.unframed == b""
    assert b"Traceback" not in client.errors, client.errors.decode()


@lengths(40)
def test_every_request_gets_exactly_one_answer(length: Length, talk: Talk) -> None:
    """Malformed, unknown, early, late, doubled, cancelled, deeply nested: one answer each, to its own id."""

    def check(conversation: list[Message]) -> None:
        wanted = Counter(shown(answered) for _, answered in conversation if answered is not NO_ANSWER)
        for raw, _ in conversation:
            talk.client.send_bytes(raw)
        assert talk.answers(wanted) == wanted

    length.attack(CONVERSATIONS, check)


VALID = request(1, "initialize", {"capabilities": {}})
HEADERS = st.sampled_from(
    [
        b"Content-Length: %d\r\n\r\n",
        b"Content-Length: -%d\r\n\r\n",
        b"Content-Length: %d0\r\n\r\n",
        b"Content-Length: %d\n\n",
        b"Content-Length: %d.0\r\n\r\n",
        b"Content-Length: 99999999999999999999%d\r\n\r\n",
        b"Content-Length: \xd9\xa1%d\r\n\r\n",
        b"Content-Type: %d\r\n\r\n",
        b": %d\r\n\r\n",
        b"\r\n\r\n%d",
        b"",
    ]
).map(lambda header: header % len(VALID) if b"%d" in header else header) | st.binary(max_size=60)
STREAMS = st.one_of(
    st.builds(lambda header, cut: (header + VALID)[: cut or None], HEADERS, st.integers(0, 120)),
    st.binary(max_size=200),
    st.builds(lambda cut: b"Content-Length: %d\r\n\r\n" % (len(VALID) - cut) + VALID, st.integers(-40, 40)),
)


@lengths(6)
def test_a_broken_stream_ends_the_process_and_nothing_else(
    length: Length, tmp_path: Path, process_client: Callable[..., ProcessClient]
) -> None:
    """Cut off, with a wrong length or no frame at all: the process ends by itself within 5 s of the end of its input,
    with frames alone on standard output and no traceback."""
    env = private_env(tmp_path / "home")

    def check(stream: bytes) -> None:
        client = process_client(REAL, env=env)
        assert client.process.stdin is not None
        try:
            client.process.stdin.write(stream)
            client.process.stdin.close()
        except BrokenPipeError:
            pass  # it had seen enough
        assert client.wait(PATIENCE_S) in {0, 1}
        assert client.unframed == b""
        assert b"Traceback" not in client.errors, client.errors.decode()

    length.attack(STREAMS, check, shrink=False)
