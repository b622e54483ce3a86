"""Files for other editors and agents: as much of each as can be checked where the editor is not installed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from nm_lsp import __version__
from nm_lsp.cli.main import app
from nm_lsp.graph.languages import CODE_LANGUAGES, DOCUMENT_LANGUAGES, FILE_LANGUAGES, language_of

EDITORS = Path(__file__).parents[2] / "editors"
CLAUDE = EDITORS / "agents" / "claude-code"
TEXTS = [
    EDITORS / "README.md",
    EDITORS / "nvim/README.md",
    EDITORS / "agents/AGENTS.md",
    CLAUDE / "skills/code-memory/SKILL.md",
]
READ = CODE_LANGUAGES | DOCUMENT_LANGUAGES | FILE_LANGUAGES
COMMAND = re.compile(r"(?:^|[`;] ?|%sh\{ )(nm-lsp [^`\n]*?)(?=`|\n|$| 2>&1)", re.MULTILINE)


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def commands_in(path: Path) -> list[list[str]]:
    found = COMMAND.findall(path.read_text(encoding="utf-8"))
    return [words for text in found if len(words := shlex.split(text)) > 1 and words[1] != "--stdio"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_commands_that_are_named_exist(path: Path) -> None:
    """Each `nm-lsp …` names a command, its subcommand where it has some, and options that it has."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("nm-lsp", ["status"], resilient_parsing=True)
    for words in commands_in(path):
        name, rest = words[1], words[2:]
        command = root.get_command(context, name)
        assert command is not None, words
        if getattr(command, "commands", None) and rest:
            command, rest = command.commands.get(rest[0]), rest[1:]
            assert command is not None, words
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known, words


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_commands_are_found_in_texts() -> None:
    named = {tuple(words[1:3]) for path in TEXTS for words in commands_in(path)}
    assert {("guard", "--hook"), ("query", "--json"), ("decisions", "record"), ("decisions", "diff")} <= named


def test_code_in_the_page_is_well_formed() -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", (EDITORS / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert {language for language, _ in blocks} == {"sh", "json", "elisp", "kak"}
    for language, text in blocks:
        if language == "json":
            json.loads(text)


# -- Claude Code -------------------------------------------------------------------------------------------------------


def test_claude_code_finds_the_plugin() -> None:
    market, plugin = (
        load(EDITORS / "agents/.claude-plugin/marketplace.json"),
        load(CLAUDE / ".claude-plugin/plugin.json"),
    )
    (entry,) = market["plugins"]
    assert (EDITORS / "agents" / entry["source"]).resolve() == CLAUDE.resolve()
    assert entry["name"] == plugin["name"] == market["name"]
    head = (CLAUDE / "skills/code-memory/SKILL.md").read_text(encoding="utf-8").split("---")[1]
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines())
    assert fields["name"] == "code-memory"
    assert len(fields["description"]) < 1024
    # What changes a decision is not allowed in advance: a person is asked.
    allowed = re.findall(r"Bash\(nm-lsp ([^:]*):\*\)", fields["allowed-tools"])
    assert set(allowed) == {"query", "search", "guard", "decisions search", "decisions diff"}


def test_claude_code_has_the_server_for_types_without_another() -> None:
    (server,) = load(CLAUDE / ".lsp.json").values()
    assert [server["command"], *server["args"]] == ["nm-lsp", "--stdio"]
    rest = (CLAUDE / "more-file-types.jsonc").read_text(encoding="utf-8")
    others = dict(re.findall(r'// "(\.\w+)": "(\w+)"', rest))
    taken = server["extensionToLanguage"]
    assert not taken.keys() & others.keys()
    # Together they are what the server reads, and nothing else.
    assert {language_of(f"file{ending}") for ending in {**taken, **others}} == READ
    # All of it is commented out.
    assert json.loads("\n".join(line for line in rest.splitlines() if not line.strip().startswith("//"))) == {}


def hook_command(event: str) -> tuple[str, str]:
    (group,) = load(CLAUDE / "hooks/hooks.json")["hooks"][event]
    (hook,) = group["hooks"]
    assert hook["type"] == "command"
    return group["matcher"], hook["command"]


@pytest.fixture
def env(
    tmp_path: Path,
    user_env: Callable[[Path], dict[str, str]],
    server_on_path: Callable[[Path, dict[str, str]], dict[str, str]],
) -> dict[str, str]:
    """A user whose PATH has `nm-lsp` as this interpreter runs it."""
    return server_on_path(tmp_path, user_env(tmp_path))


def sh(command: str, folder: Path, env: dict[str, str], text: str = "") -> str:
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=env, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="hooks of Claude Code run in a POSIX shell")
def test_the_hook_puts_decisions_before_the_agent(tmp_path: Path, env: dict[str, str]) -> None:
    """The very command of hooks.json, with the call that Claude Code makes before an edit."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "auth.py").write_text("def check_token(token):\n    return token\n")
    (folder / "free.py").write_text("x = 1\n")
    record = 'nm-lsp decisions record auth.py::check_token --title "Tokens are opaque" --rationale "A rotation."'
    sh(f"git init -q -b main && git add . && git commit -q -m first && {record}", folder, env)
    matcher, command = hook_command("PreToolUse")
    for tool in ("Edit", "MultiEdit", "Write", "NotebookEdit"):
        assert re.fullmatch(matcher, tool)
    assert not re.fullmatch(matcher, "Read")

    def ask(path: Path) -> str:
        call = {
            "session_id": "1",
            "cwd": str(folder),
            "hook_event_name": "PreToolUse",
            "tool_name": "Edit",
            "tool_input": {"file_path": str(path), "old_string": "a", "new_string": "b"},
        }
        return sh(command, tmp_path, env, json.dumps(call))

    answer = json.loads(ask(folder / "auth.py"))["hookSpecificOutput"]
    assert answer["hookEventName"] == "PreToolUse"
    assert 'ACTIVE "Tokens are opaque"' in answer["additionalContext"]
    assert "permissionDecision" not in answer
    assert ask(folder / "free.py") == ""

    (folder / "auth.py").write_text("def check_token(token):\n    return token.strip()\n")
    sh("git commit -q -a -m 'strip tokens'", folder, env)
    stale = json.loads(ask(folder / "auth.py"))
    assert 'STALE "Tokens are opaque"' in stale["hookSpecificOutput"]["additionalContext"]
    assert "strip tokens" in stale["hookSpecificOutput"]["additionalContext"]
    # The person sees it too; the agent is not stopped.
    assert "Tokens are opaque" in stale["systemMessage"]
    assert "permissionDecision" not in stale["hookSpecificOutput"]
    assert ask(folder / "new.py") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="hooks of Claude Code run in a POSIX shell")
def test_a_missing_server_is_said_once_a_session_and_stops_nothing(tmp_path: Path, env: dict[str, str]) -> None:
    here = {**env, "PATH": "/usr/bin:/bin"}
    if subprocess.run(["sh", "-c", "command -v nm-lsp"], env=here, capture_output=True, check=False).returncode == 0:
        pytest.skip("nm-lsp is installed for the whole machine")
    _, at_start = hook_command("SessionStart")
    assert "Install it with `pipx install .`" in json.loads(sh(at_start, tmp_path, here))["systemMessage"]
    assert sh(at_start, tmp_path, env) == ""
    assert sh(hook_command("PreToolUse")[1], tmp_path, here, "{}") == ""


# -- editors -----------------------------------------------------------------------------------------------------------


def test_helix_keeps_its_own_servers() -> None:
    settings = tomllib.loads((EDITORS / "helix/languages.toml").read_text(encoding="utf-8"))
    server = settings["language-server"]["nm-lsp"]
    assert [server["command"], *server["args"]] == ["nm-lsp", "--stdio"]
    names = [language["name"] for language in settings["language"]]
    assert len(names) == len(set(names))
    for language in settings["language"]:
        assert set(language) == {"name", "language-servers"}
        # The last one, so that the language's own server answers first.
        assert language["language-servers"][-1] == "nm-lsp"
    # Every language that the server reads, by Helix's own name.
    assert {{"csharp": "c-sharp"}.get(name, name) for name in READ} <= set(names)


ZED_NAMES = {
    "python": "Python", "javascript": "JavaScript", "typescript": "TypeScript", "tsx": "TSX", "java": "Java",
    "go": "Go", "rust": "Rust", "c": "C", "cpp": "C++", "csharp": "C#", "ruby": "Ruby",
    "php": "PHP", "bash": "Shell Script", "markdown": "Markdown", "toml": "TOML", "yaml": "YAML", "json": "JSON",
}  # fmt: skip


def test_zed_has_what_an_extension_needs() -> None:
    manifest = tomllib.loads((EDITORS / "zed/extension.toml").read_text(encoding="utf-8"))
    cargo = tomllib.loads((EDITORS / "zed/Cargo.toml").read_text(encoding="utf-8"))
    source = (EDITORS / "zed/src/lib.rs").read_text(encoding="utf-8")
    assert {"id", "name", "version", "schema_version", "authors", "description"} <= manifest.keys()
    assert manifest["version"] == cargo["package"]["version"] == __version__
    (server,) = manifest["language_servers"]
    assert f'"{server}"' in source
    assert cargo["lib"]["crate-type"] == ["cdylib"]
    assert "register_extension!" in source
    # Every language that the server reads, by Zed's own name; RST and INI have none there.
    served = set(manifest["language_servers"][server]["languages"])
    assert {ZED_NAMES[name] for name in READ - {"rst", "ini"}} <= served


def test_emacs_lisp_is_balanced() -> None:
    text = (EDITORS / "emacs/nm-lsp.el").read_text(encoding="utf-8")
    code = re.sub(r'"(?:\\.|[^"\\])*"|;[^\n]*', "", text)
    depth = 0
    for character in code:
        depth += {"(": 1, ")": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert "(provide 'nm-lsp)" in code


def test_sublime_and_kakoune_run_the_server() -> None:
    (client,) = load(EDITORS / "sublime/LSP.sublime-settings")["clients"].values()
    assert (client["enabled"], client["command"]) == (True, ["nm-lsp", "--stdio"])
    # Scopes as Sublime names them: TOML, YAML and JSON are sources too.
    assert client["selector"].split(" | ") == ["source", "text.html.markdown", "text.restructuredtext", "text.plain"]
    assert client["schemes"] == ["file"]
    text = (EDITORS / "kakoune/nm-lsp.kak").read_text(encoding="utf-8")
    assert text.count("{") == text.count("}")
    (server,) = tomllib.loads(re.findall(r"lsp_servers %\{(.*?)\n    \}", text, re.DOTALL)[0]).values()
    assert [server["command"], *server["args"]] == ["nm-lsp", "--stdio"]
    assert server["root_globs"][0] == ".git"
