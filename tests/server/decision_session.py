"""A client of a real server on a real repository: what it was shown of decisions, and what it does about them."""

from __future__ import annotations

import copy
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lsp_harness import REAL, Answer, ProcessClient, answer_nothing, initialize_params

GOV = "\n".join(
    [
        '"""The rule of the house."""',
        "",
        "import os",
        "",
        "",
        "def governed(value):",
        '    """Values are doubled."""',
        "    return value * 2",
        "",
        "",
        "def other(value):",
        "    return value + 1",
        "",
    ]
)

START_S = 60.0
"""How long the start may take on a machine that has much else to do."""

EDITOR = {
    "textDocument": {
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor"]}}},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": True},
    },
    "window": {"showDocument": {"support": True}},
    "workspace": {"fileOperations": {"didRename": True, "willDelete": True, "didDelete": True}},
}
"""An editor that shows Markdown and takes literal actions."""


class Repo:
    """A git repository whose commits have fixed author and dates. One that is not `born` has no commit yet."""

    def __init__(self, path: Path, files: dict[str, str] | None = None, *, born: bool = True) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._n_commits = 0
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.write(files if files is not None else {"gov.py": GOV, "other.py": "x = 1\n", "docs/a.md": "# A\n"})
        if born:
            self.commit("first")

    def beside(self, path: Path) -> Repo:
        """Another work tree of the same repository, which is there already."""
        other = copy.copy(self)
        other.path = path
        return other

    def git(self, *arguments: str) -> str:
        date = f"2026-01-01T00:{self._n_commits // 60:02}:{self._n_commits % 60:02}Z"
        env = {**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_GLOBAL": os.devnull}
        run = subprocess.run(
            ["git", *arguments], cwd=self.path, env=env, capture_output=True, text=True, check=True, timeout=30
        )
        return run.stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
        self.write(files or {})
        self._n_commits += 1
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def uri(self, name: str) -> str:
        return (self.path / name).as_uri()


class Session:
    """`shown` holds the newest diagnostics by URI; an entry that was taken back is an empty list."""

    def __init__(
        self,
        *roots: Path,
        env: dict[str, str],
        capabilities: Any = None,
        options: Any = None,
        settings: Any = None,
        answer: Answer = answer_nothing,
        command: list[str] = REAL,
    ) -> None:
        self.client = ProcessClient(command, env=env)
        self.client.answer = answer
        given = {"index": {"enabled": False}, **(settings or {})}
        params = initialize_params(
            roots[0], EDITOR if capabilities is None else capabilities, {"settings": given, **(options or {})}
        )
        params["workspaceFolders"] = [{"uri": root.as_uri(), "name": root.name} for root in roots]
        params["clientInfo"] = {"name": "test-editor"}
        self.capabilities = self.client.request("initialize", params, START_S)["capabilities"]
        self.client.notify("initialized", {})

    # -- what is shown ------------------------------------------------------------------------------------------------

    def publications(self, uri: str | None = None) -> list[dict[str, Any]]:
        method = "textDocument/publishDiagnostics"
        found = [message["params"] for message in list(self.client.messages) if message.get("method") == method]
        return [each for each in found if uri in {None, each["uri"]}]

    @property
    def shown(self) -> dict[str, list[dict[str, Any]]]:
        return {each["uri"]: each["diagnostics"] for each in self.publications()}

    def marks(self, uri: str) -> list[tuple[str, str]]:
        """Code and decision of what a file shows."""
        return [(each["code"], each["data"]["id"]) for each in self.shown.get(uri, ())]

    def messages(self, method: str = "window/showMessage") -> list[str]:
        return [m["params"]["message"] for m in list(self.client.messages) if m.get("method") == method]

    def until(self, look: Callable[[], Any], timeout: float = 30.0) -> Any:
        deadline = time.monotonic() + timeout
        while not (found := look()):
            assert time.monotonic() < deadline, (self.shown, self.messages())
            time.sleep(0.01)
        return found

    def until_stale(self, uri: str, identity: str, timeout: float = 30.0) -> dict[str, Any]:
        """STALE(uri): exactly one item, and it carries the id."""
        self.until(lambda: self.marks(uri) == [("decision-stale", identity)], timeout)
        return self.shown[uri][0]

    def until_clean(self, uri: str, timeout: float = 30.0) -> None:
        self.until(lambda: uri in self.shown and self.shown[uri] == [], timeout)

    # -- what is done -------------------------------------------------------------------------------------------------

    def call(self, name: str, **fields: Any) -> Any:
        return self.client.request(f"neuralmind/{name}", fields)

    def record(self, *files: str, title: str = "Values are doubled", rationale: str = "Half was too little.") -> str:
        result = self.call("decisions.record", title=title, rationale=rationale, files=list(files))
        return str(result["decision"]["id"])

    def scan(self) -> Any:
        return self.call("decisions.scan")

    def execute(self, command: dict[str, Any]) -> Any:
        return self.client.request(
            "workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]}
        )

    def open(self, uri: str, text: str, version: int = 1) -> None:
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, text: str, version: int) -> None:
        item = {"uri": uri, "version": version}
        self.client.notify("textDocument/didChange", {"textDocument": item, "contentChanges": [{"text": text}]})

    def close(self, uri: str) -> None:
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def hover(self, uri: str, line: int = 0, character: int = 0) -> Any:
        position = {"line": line, "character": character}
        return self.client.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})

    def hover_text(self, uri: str, line: int = 0, character: int = 0) -> str:
        answer = self.hover(uri, line, character)
        return "" if answer is None else str(answer["contents"]["value"])

    def actions(self, uri: str, line: int = 0, diagnostics: Any = (), **context: Any) -> list[dict[str, Any]]:
        where = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}
        params = {
            "textDocument": {"uri": uri},
            "range": where,
            "context": {"diagnostics": list(diagnostics), **context},
        }
        return list(self.client.request("textDocument/codeAction", params))

    def action(self, uri: str, word: str, line: int = 0, **context: Any) -> dict[str, Any]:
        """The command of the first action whose title begins with `word`."""
        for each in self.actions(uri, line, **context):
            if each["title"].startswith(word):
                command = each["command"]
                return command if isinstance(command, dict) else each
        raise AssertionError([each["title"] for each in self.actions(uri, line, **context)])

    def stop(self) -> None:
        """A proper end: nothing but frames was written, nothing was complained about."""
        assert self.client.stop() == 0
        assert self.client.unframed == b""
        assert self.client.errors == b"", self.client.errors[-4000:].decode(errors="replace")


@contextmanager
def session(*roots: Path, env: dict[str, str], **more: Any) -> Iterator[Session]:
    opened = Session(*roots, env=env, **more)
    try:
        yield opened
        opened.stop()
    finally:
        opened.client.kill()


def private_env(folder: Path) -> dict[str, str]:
    """A user with nothing cached, no weights and no git configuration."""
    return {
        **{name: str(folder / name) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")},
        "NEURALMIND_ONNX_MODEL_DIR": str(folder / "none"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
