"""README.md says what the product does: its tables come from the code, its figures from `claims.json`.

`python tests/test_readme.py` rewrites the generated blocks.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from nm_lsp.cli.main import COMMANDS
from nm_lsp.engine.settings import settings_markdown

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
CLAIMS = ROOT / "tests" / "claims.json"

BLOCK = re.compile(r"<!-- generated: (?P<name>\w+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
LINE = re.compile(r"<!-- line: (?P<name>\w+) -->\n```sh\n(?P<line>[^\n]*)\n```\n")
LINK = re.compile(r"\]\((?P<target>[^)#]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# A number with a unit is a figure, wherever it stands.
FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*\s?(?:ms|s|seconds|minutes|MB|GB|KB|%|tokens|times)(?!\w)")


def claims() -> list[dict[str, str]]:
    """Each: `what` was measured, its `figure`, the `goal`, the `source` in this repository, the `command` that measures
    it again. A claim with `"table": "no"` stands in the prose."""
    loaded: list[dict[str, str]] = json.loads(CLAIMS.read_text(encoding="utf-8"))
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
        if claim.get("table") != "no"
    ]
    return "\n".join(rows) + "\n"


BLOCKS = {"commands": commands_block, "settings": settings_markdown, "figures": figures_block}


def readme_line(name: str) -> str:
    return next(match["line"] for match in LINE.finditer(README.read_text(encoding="utf-8")) if match["name"] == name)


def rewritten(text: str) -> str:
    return BLOCK.sub(lambda found: f"<!-- generated: {found['name']} -->\n{BLOCKS[found['name']]()}<!-- end -->", text)


@pytest.mark.parametrize("name", BLOCKS)
def test_generated_blocks_are_up_to_date(name: str) -> None:
    written = {match["name"]: match["body"] for match in BLOCK.finditer(README.read_text(encoding="utf-8"))}
    assert written.get(name) == BLOCKS[name](), "run: python tests/test_readme.py"


def test_every_figure_is_a_claim_with_a_source() -> None:
    prose = FENCE.sub(
        "", BLOCK.sub(lambda found: found["body"] if found["name"] == "figures" else "", README.read_text())
    )
    known = " ".join(f"{claim['what']} {claim['figure']} {claim['goal']} {claim['command']}" for claim in claims())
    unknown = [figure for figure in FIGURE.findall(" ".join(prose.split())) if figure not in known]
    assert not unknown, f"not in tests/claims.json: {unknown}"


def test_every_claim_can_be_measured_again() -> None:
    for claim in claims():
        assert set(claim) >= {"what", "figure", "goal", "source", "command"}, claim
        source = claim["source"].partition("::")[0]
        assert (ROOT / source).exists(), f"{claim['what']}: there is no {source}"


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
