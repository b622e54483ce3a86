"""README.md says what the product does: its tables come from the code, its figures from `claims.json`.

`python tests/test_readme.py` rewrites the generated blocks.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from claim_guard import problems

from nm_lsp.cli.main import COMMANDS
from nm_lsp.engine.settings import settings_markdown

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
CLAIMS = ROOT / "tests" / "claims.json"

BLOCK = re.compile(r"<!-- generated: (?P<name>\w+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
LINE = re.compile(r"<!-- line: (?P<name>\w+) -->\n```sh\n(?P<line>[^\n]*)\n```\n")
LINK = re.compile(r"\]\((?P<target>[^)#]+)\)")
DESCRIPTION = re.compile(r'"?description"?\s*[:=]\s*"((?:[^"\\]|\\.)*)"')


def claims() -> list[dict[str, Any]]:
    """See `claim_guard`."""
    loaded: list[dict[str, Any]] = json.loads(CLAIMS.read_text(encoding="utf-8"))
    return loaded


def commands_block() -> str:
    rows = ["| command | what it does |", "| --- | --- |"]
    rows += [f"| `nm-lsp {name}` | {text} |" for name, text in COMMANDS.items()]
    return "\n".join(rows) + "\n"


def figures_block() -> str:
    rows = ["| what | measured | goal | command |", "| --- | --- | --- | --- |"]
    rows += [
        f"| {claim['what']} | {claim['figure']} | {claim['goal']} | `{claim['command']}` |"
        for claim in claims()
        if "table" not in claim
    ]
    return "\n".join(rows) + "\n"


def reliability_block() -> str:
    rows = ["| attack | result | command |", "| --- | --- | --- |"]
    rows += [
        f"| {claim['what']} | {claim['figure']} | `{claim['command']}` |"
        for claim in claims()
        if claim.get("table") == "reliability"
    ]
    return "\n".join(rows) + "\n"


BLOCKS = {
    "commands": commands_block,
    "settings": settings_markdown,
    "figures": figures_block,
    "reliability": reliability_block,
}
MEASURED = {"figures", "reliability"}
"""Blocks whose figures are claims."""


def readme_line(name: str) -> str:
    return next(match["line"] for match in LINE.finditer(README.read_text(encoding="utf-8")) if match["name"] == name)


def rewritten(text: str) -> str:
    return BLOCK.sub(lambda found: f"<!-- generated: {found['name']} -->\n{BLOCKS[found['name']]()}<!-- end -->", text)


@pytest.mark.parametrize("name", BLOCKS)
def test_generated_blocks_are_up_to_date(name: str) -> None:
    written = {match["name"]: match["body"] for match in BLOCK.finditer(README.read_text(encoding="utf-8"))}
    assert written.get(name) == BLOCKS[name](), "run: python tests/test_readme.py"


def texts() -> dict[str, str]:
    """Everything that users read before they have the product: README, the editors' pages, all descriptions."""
    readme = BLOCK.sub(lambda found: found["body"] if found["name"] in MEASURED else "", README.read_text("utf-8"))
    found = {"README.md": readme}
    for path in sorted((ROOT / "editors").rglob("*.md")):
        if "node_modules" not in path.parts and path.name != "PROTOCOL.md":
            found[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
    for path in sorted([*(ROOT / "editors").rglob("*.json"), ROOT / "editors" / "zed" / "extension.toml"]):
        if "node_modules" not in path.parts and path.name != "package-lock.json":
            said = DESCRIPTION.findall(path.read_text("utf-8"))
            found[path.relative_to(ROOT).as_posix()] = "\n\n".join(said)
    found["pyproject.toml"] = "\n\n".join(DESCRIPTION.findall((ROOT / "pyproject.toml").read_text("utf-8")))
    return found


def test_every_figure_is_a_claim_with_a_source() -> None:
    assert problems(texts(), claims(), ROOT) == []


def test_descriptions_and_pages_are_read() -> None:
    found = texts()
    assert {"README.md", "editors/README.md", "editors/vscode/README.md", "editors/nvim/README.md"} <= set(found)
    assert "A memory for your code" in found["editors/vscode/package.nls.json"]
    assert "about 1,000 tokens" in found["editors/agents/claude-code/skills/code-memory/SKILL.md"]


SAMPLE: list[dict[str, Any]] = [
    {
        "what": "Django 5.1.4 (3,500 files) opened", "figure": "5.4 s", "goal": "6 s", "was": ["9.9 s"],
        "source": "README.md", "command": "nm-lsp benchmark",
    },
    {
        "what": "memory there", "figure": "406 MB", "goal": "900 MB",
        "source": "README.md", "command": "nm-lsp benchmark",
    },
    {
        "what": "a hover", "figure": "0.9 ms", "goal": "", "source": "README.md", "command": "nm-lsp benchmark",
        "gate": "ci", "test": "tests/test_readme.py::test_links_lead_somewhere",
    },
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Django 5.1.4 opens in 5.4 s.",
        "It takes 406 MB on 3,500 files.",
        "A hover takes 0.9 ms, which CI checks.",
        "Python 3.11 and git 2.20 are needed; `nm-lsp --wait 30 s` is code.",
        "```sh\nsleep 99 s\n```",
        "| memory there | 406 MB | 900 MB | `nm-lsp benchmark` |",
    ],
)
def test_what_was_measured_may_be_said(text: str) -> None:
    assert problems({"a page": text}, SAMPLE, ROOT) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It opens in 3.2 s.", "“3.2 s” is no claim"),
        ("It is 4 times faster.", "“4 times” is no claim"),
        ("It is 12× smaller.", "“12×” is no claim"),
        ("It needs half the memory.", "“half” is no claim"),
        ("It takes 900 MB.", "“900 MB” is no claim"),  # a goal is no measurement
        ("It opens in 15.4 s.", "“15.4 s” is no claim"),  # not the 5.4 s that stands in it
        ("It opens in 9.9 s.", "“9.9 s” is superseded"),
        ("50,000 files open in 5.4 s.", "“5.4 s” was not measured on 50,000 files"),
        ("Flask 3.0.3 opens in 5.4 s.", "“5.4 s” was not measured on Flask 3.0.3"),
        ("With 3,500 files a hover takes 0.9 ms.", "“0.9 ms” was not measured on 3,500 files"),
        ("It opens in 5.4 s, which is gated in CI.", "“5.4 s” was measured by hand and is said to be held by CI"),
        ("| memory there | 500 MB | 900 MB | `nm-lsp benchmark` |", "“500 MB” is no claim"),
    ],
)
def test_what_was_not_measured_is_refused(text: str, said: str) -> None:
    (found,) = problems({"a page": text}, SAMPLE, ROOT)
    assert found.startswith(f"a page: {said}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "tests/none.py"}, "there is no tests/none.py"),
        ({"command": "nm-lsp fly"}, "there is no command `nm-lsp fly`"),
        ({"command": "python tests/bench/none.py"}, "there is no tests/bench/none.py"),
        ({"gate": "ci"}, "there is no test None that CI runs"),
        (
            {"gate": "ci", "test": "tests/test_readme.py::test_none"},
            "there is no test 'tests/test_readme.py::test_none'",
        ),
        ({"gate": "sometimes"}, "gate is neither local nor ci"),
        ({"was": ["406 MB"]}, "its figure is also its former one"),
        ({"colour": "red"}, "has ['colour']"),
    ],
)
def test_a_claim_that_cannot_be_measured_again_is_refused(change: dict[str, Any], said: str) -> None:
    (found,) = problems({}, [{**SAMPLE[1], **change}], ROOT)
    assert said in found


def test_a_test_that_is_slow_holds_nothing_in_ci(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "README.md").write_text("")
    (tmp_path / "tests" / "x.py").write_text("@pytest.mark.slow\ndef test_x() -> None: ...\n\n\ndef test_y(): ...\n")
    claim = {**SAMPLE[1], "gate": "ci", "test": "tests/x.py::test_x"}
    assert len(problems({}, [claim], tmp_path)) == 1
    assert problems({}, [{**claim, "test": "tests/x.py::test_y"}], tmp_path) == []


def test_every_claim_of_the_table_stands_in_it_once() -> None:
    body = next(m["body"] for m in BLOCK.finditer(README.read_text("utf-8")) if m["name"] == "figures")
    for claim in claims():
        assert body.count(f"| {claim['what']} |") == ("table" not in claim), claim["what"]


@pytest.mark.parametrize("name", ["main", "tests"])
def test_the_two_commands_are_one_line_each_and_set_everything_up(name: str) -> None:
    line = readme_line(name)
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    subprocess.run(["bash", "-n", "-c", line], check=True)


def test_ci_runs_the_line_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    # The function ends at the first brace in a line of its own; its awk program has none there.
    function = script[script.index("readme_line() {") : script.index("\n}\n") + 3]
    shown = subprocess.run(
        ["bash", "-c", f"{function} readme_line tests"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert shown == readme_line("tests") + "\n"
    assert "readme_line tests" in script.replace(function, "")


def test_links_lead_somewhere() -> None:
    targets = [found["target"] for found in LINK.finditer(README.read_text(encoding="utf-8"))]
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert not missing, missing


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
