"""A server of any version that answers nothing but `initialize` and `shutdown`: `fake_server.py VERSION --stdio`."""

from __future__ import annotations

import json
import sys


def main(version: str) -> None:
    answers = {
        "initialize": {"capabilities": {}, "serverInfo": {"name": "nm_lsp", "version": version}},
        "shutdown": None,
    }
    while header := sys.stdin.buffer.readline():
        sys.stdin.buffer.readline()
        message = json.loads(sys.stdin.buffer.read(int(header.split(b":")[1])))
        if message.get("method") == "exit":
            return
        if message.get("method") in answers:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answers[message["method"]]}).encode()
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sys.stdout.buffer.flush()


main(sys.argv[1])
