"""What may be said in numbers: a figure in README or in an editor's description must be a claim of `claims.json`.

A claim: `what` was measured, its `figure`, the `goal`, the `source` in this repository and the `command` that measures
it again. Optional: `on`, the repository and its sizes (left out, those named in `what`; of "the same" and "there" those
of the claim before); `was`, figures it had formerly; `gate`: "ci" with the `test` that holds it, else "local"; `table`:
"no" for one that stands in prose alone, "reliability" for one of that section's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nm_lsp.cli.main import COMMANDS

Claim = Mapping[str, Any]

# A number with a unit is a figure, wherever it stands; so is a ratio.
FIGURE = re.compile(
    r"(?<![\w.,])\d[\d,.]*\s?(?:ms|s|h|seconds?|minutes?|hours?|[kKMG]B|%|percent|tokens?|times|x|×|fold|-fold)(?!\w)"
)
RATIO = re.compile(
    r"\b(?:half|a (?:third|quarter|fifth|tenth)|twice|thrice|ten times|an? order of magnitude)\b"
    r"(?= (?:the|as|of|faster|slower|fewer|smaller|less))"
)
SIZE = re.compile(r"(?<![\w.,])\d[\d,]*\s(?:files|symbols|decisions|commits|vectors|questions|lines)\b")
REPOSITORY = re.compile(r"\b[A-Za-z][\w-]+ \d+\.\d+\.\d+\b")
GATED = re.compile(
    r"\bCI\b|continuous integration|\bgated\b|(?:held|checked|guarded) by (?:a|the) tests?|every (?:build|push)",
    re.IGNORECASE,
)

FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[^\s\d])|\n\s*\n|\n(?=[*-] )|\n(?=\d\. )")


def problems(texts: Mapping[str, str], claims: Sequence[Claim], root: Path) -> list[str]:
    """Everything that is wrong with the claims and with what `texts` (by name) say, in words."""
    found = [problem for claim in claims for problem in _of_claim(claim, root)]
    places = _places(claims)
    for name, text in texts.items():
        for unit in units(text):
            found += [f"{name}: {problem}" for problem in _of_unit(unit, claims, places)]
    return found


def units(text: str) -> Iterator[str]:
    """The sentences and table rows of a Markdown text, code left out."""
    rows = re.compile(r"^\|.*$", re.MULTILINE)
    prose = FENCE.sub("", text)
    for part in [*rows.findall(prose), *_SENTENCE.split(rows.sub("\n", prose))]:
        bare = _bare(part)
        if bare:
            yield bare


def _bare(text: str) -> str:
    return " ".join(CODE.sub("", text).split())


def numbers(text: str) -> set[str]:
    """The figures and ratios of a text, each in one spelling."""
    return {" ".join(match.group().split()) for pattern in (FIGURE, RATIO) for match in pattern.finditer(text)}


def _of_unit(unit: str, claims: Sequence[Claim], places: Sequence[set[str]]) -> Iterator[str]:
    said = numbers(unit)
    if unit.startswith("| "):
        # A row of the table of figures is a claim as a whole; its goal is no measurement.
        shown = [claim for claim in claims if _bare(claim["what"]) in unit]
        said -= {figure for claim in shown for figure in numbers(claim["goal"]) | numbers(claim["what"])}
    named = set(_named(unit))
    for figure in sorted(said):
        fitting = [(claim, place) for claim, place in zip(claims, places, strict=True) if figure in _figures(claim)]
        if any(figure in numbers(former) for claim in claims for former in claim.get("was", ())) and not fitting:
            yield f"“{figure}” is superseded: {unit[:120]}"
        elif not fitting:
            yield f"“{figure}” is no claim: {unit[:120]}"
        elif not any(named <= place for _, place in fitting):
            yield f"“{figure}” was not measured on {', '.join(sorted(named))}: {unit[:120]}"
        elif GATED.search(unit) and not any(claim.get("gate") == "ci" for claim, _ in fitting):
            yield f"“{figure}” was measured by hand and is said to be held by CI: {unit[:120]}"


def _figures(claim: Claim) -> set[str]:
    return numbers(claim["figure"])


def _named(text: str) -> Iterator[str]:
    yield from (" ".join(match.group().split()) for match in SIZE.finditer(text))
    yield from (match.group() for match in REPOSITORY.finditer(text))


def _places(claims: Sequence[Claim]) -> list[set[str]]:
    """Per claim the repository and the sizes that may stand beside its figure."""
    found: list[set[str]] = []
    for claim in claims:
        own = set(_named(f"{claim.get('on', '')} {claim['what']} {claim['figure']}"))
        continues = re.search(r"\bthere\b|\bthe same\b|^searching all of them", claim["what"])
        found.append(own | (found[-1] if continues and "on" not in claim and found else set()))
    return found


def _of_claim(claim: Claim, root: Path) -> Iterator[str]:
    name = claim.get("what", "a claim")
    lacking = {"what", "figure", "goal", "source", "command"} - set(claim)
    unknown = set(claim) - {"what", "figure", "goal", "source", "command", "on", "was", "gate", "test", "table"}
    if lacking or unknown:
        yield f"{name}: lacks {sorted(lacking)}, has {sorted(unknown)}"
        return
    if not (root / claim["source"].partition("::")[0]).exists():
        yield f"{name}: there is no {claim['source']}"
    words = claim["command"].split()
    if words[:1] == ["nm-lsp"] and words[1:2] and words[1] not in COMMANDS:
        yield f"{name}: there is no command `nm-lsp {words[1]}`"
    if words[:1] == ["python"] and words[1] != "-m" and not (root / words[1]).exists():
        yield f"{name}: there is no {words[1]}"
    if claim.get("gate", "local") not in {"local", "ci"}:
        yield f"{name}: gate is neither local nor ci"
    if claim.get("gate") == "ci" and not _is_test(claim.get("test", ""), root):
        yield f"{name}: is said to be held by CI, and there is no test {claim.get('test')!r} that CI runs"
    if set(claim.get("was", ())) & {claim["figure"]}:
        yield f"{name}: its figure is also its former one"


def _is_test(name: str, root: Path) -> bool:
    """Whether `tests/x.py::test_y` is there and runs with every change (a slow one does not)."""
    path, _, function = name.partition("::")
    if not function or not (root / path).is_file():
        return False
    head = rf"(?P<marks>(?:^@.*\n)*)^(?:async )?def {re.escape(function)}\("
    found = re.search(head, (root / path).read_text("utf-8"), re.MULTILINE)
    return found is not None and "slow" not in found["marks"]
