"""Two real clients on one workspace at once, each with a server of its own: same answers, no error."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psutil
import pytest
from decision_session import GOV, Repo, session

PLUGIN = Path(__file__).parents[2] / "editors" / "nvim"


class Neovim:
    """A headless Neovim with the plugin, driven through its socket."""

    def __init__(self, program: str, folder: Path, workspace: Path, env: dict[str, str]) -> None:
        self._program, self._socket = program, folder / "nvim.sock"
        setup = f"require('nm_lsp').setup {{ cmd = {{ '{sys.executable}', '-m', 'nm_lsp', '--stdio' }} }}"
        before = ("--cmd", f"let &runtimepath = '{PLUGIN},' . &runtimepath")
        after = ("-c", f"lua {setup}", "-c", "filetype on")
        command = [program, "--headless", "--clean", "-u", "NONE", "--listen", str(self._socket), *before, *after]
        self._process = subprocess.Popen(
            command, cwd=workspace, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.until(self._socket.exists)

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression, which must be one that JSON can hold."""
        call = f"luaeval('vim.json.encode({expression.replace(chr(39), chr(39) * 2)})')"
        done = subprocess.run(
            [self._program, "--server", str(self._socket), "--remote-expr", call],
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
        return json.loads(done.stdout or done.stderr)

    def edit(self, path: Path) -> None:
        self.lua(f"{{ vim.cmd.edit('{path}') }}")
        self.until(lambda: self.lua("#vim.lsp.get_clients({ name = 'nm_lsp', bufnr = 0 })") == 1)

    def request(self, method: str, params: Any) -> Any:
        """The result from this editor's own server; 0 where it is null."""
        client = "vim.lsp.get_clients({ name = 'nm_lsp', bufnr = 0 })[1]"
        sent = f"'{method}', vim.json.decode([==[{json.dumps(params)}]==]), 20000"
        split = "(function(answer) return { answer.err or 0, answer.result or 0 } end)"
        error, result = self.lua(f"{split}({client}:request_sync({sent}))")
        assert error == 0, error
        return result

    def marks(self) -> list[dict[str, Any]]:
        return list(self.lua("vim.tbl_map(function(one) return one.user_data.lsp end, vim.diagnostic.get(0))"))

    def until(self, look: Callable[[], Any], timeout: float = 40.0) -> Any:
        deadline = time.monotonic() + timeout
        while not (found := look()):
            assert self._process.poll() is None, self._process.communicate()[1].decode()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return found

    def stop(self) -> str:
        """What it had to say, once it and its server have ended."""
        servers = psutil.Process(self._process.pid).children(recursive=True)
        messages = str(self.lua("vim.fn.execute('messages')"))
        leave = [self._program, "--server", str(self._socket), "--remote-send", "<C-\\><C-N>:qa!<CR>"]
        # Neovim may be gone before it has answered; that it ends is what counts.
        subprocess.run(leave, check=False, capture_output=True, timeout=30)
        self._process.wait(20)
        _, left = psutil.wait_procs(servers, 20)
        assert left == []
        return messages

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def env(tmp_path: Path, user_env: Callable[[Path], dict[str, str]]) -> dict[str, str]:
    return user_env(tmp_path)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "Bücher und mehr")


@pytest.fixture
def nvim(neovim: str, tmp_path: Path, repo: Repo, env: dict[str, str]) -> Iterator[Neovim]:
    editor = Neovim(neovim, tmp_path, repo.path, env)
    yield editor
    editor.kill()


def test_two_editors_show_and_answer_the_same(nvim: Neovim, repo: Repo, env: dict[str, str]) -> None:
    uri = repo.uri("gov.py")
    with session(repo.path, env=env, settings={"index": {"enabled": True}}) as other:
        both: tuple[Callable[[str, Any], Any], ...] = (nvim.request, other.client.request)
        nvim.edit(repo.path / "gov.py")
        other.open(uri, GOV)

        # Recorded here, known there.
        identity = other.record("gov.py::governed")
        hover = {"textDocument": {"uri": uri}, "position": {"line": 5, "character": 4}}
        nvim.until(lambda: identity in json.dumps(nvim.request("textDocument/hover", hover)))

        # One commit, one mark in each, with the same words at the same place.
        tripled = GOV.replace("value * 2", "value * 3")
        repo.commit("triple", {"gov.py": tripled})
        mine = other.until_stale(uri, identity, timeout=40)
        (theirs,) = nvim.until(nvim.marks)
        for part in ("message", "range", "severity", "code", "data"):
            assert theirs[part] == mine[part], part

        # Both take up what the commit brought, as editors do with files that changed. Questions have one answer.
        nvim.lua("{ vim.cmd('silent edit!') }")
        other.change(uri, tripled, 2)
        for request in both:
            nvim.until(lambda request=request: request("neuralmind/status", {})["ready"])
        for name, params in (
            ("search", {"query": "governed value"}),
            ("query", {"query": "what doubles a value"}),
            ("decisions.list", {}),
            ("decisions.history", {"id": identity}),
        ):
            first, second = (_plain(request(f"neuralmind/{name}", params)) for request in both)
            assert first == second, name

        # Restored there, clear in both; and then invalidated here.
        actions = nvim.request("textDocument/codeAction", _at(uri, theirs))
        (action,) = [each for each in actions if each["title"].startswith("Restore")]
        nvim.request("workspace/executeCommand", action["command"])
        other.until_clean(uri, timeout=40)
        nvim.until(lambda: nvim.marks() == [])
        other.call("decisions.invalidate", id=identity, reason="It was tripled on purpose.")
        listed = {"status": "invalidated"}
        nvim.until(lambda: _ids(nvim.request("neuralmind/decisions.list", listed)) == [identity])
        assert _ids(other.call("decisions.list", **listed)) == [identity]

        assert other.messages() == []
        said = nvim.stop()
        assert "rror" not in said, said


def _at(uri: str, mark: dict[str, Any]) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "range": mark["range"], "context": {"diagnostics": [mark]}}


def _ids(listed: dict[str, Any]) -> list[str]:
    return [row["id"] for row in listed["decisions"]]


def _plain(value: Any) -> Any:
    """Without nulls, as Neovim hands results on, and without escapes in URIs, which a server spells as its client."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, str):
        return unquote(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value
