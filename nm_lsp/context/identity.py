"""L0: what this project is, in its own words.

Taken from the first of `SOURCES` that says something: its title and first sentences, without badges and markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nm_lsp.context.budget import LayerText, Page, finish
from nm_lsp.context.quoting import PROSE, inline
from nm_lsp.search.token_count import TokenCount

Reader = Callable[[str], str | None]
"""Path relative to the folder to the text there, or None."""

SOURCES: Final = (
    "mempalace.yaml",
    "CLAUDE.md",
    "AGENTS.md",
    "README.md",
    "README.rst",
    "README.txt",
    "README",
    "readme.md",
    "Readme.md",
)
NAME, TITLE = "L0", "Project"
MAX_READ: Final = 20_000
MAX_PARAGRAPHS: Final = 6

_HTML = re.compile(r"<!--.*?-->|<[^>]{1,300}>", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_RST_ROLE = re.compile(r":[a-z:]+:`([^`<]+?)(?:\s*<[^>]*>)?`|`([^`<]+?)\s*<[^>]*>`__?")
_NOISE = re.compile(r"^\s*(?:\.\. |:[\w -]+:|\[!|\[[^\]]+\]:|[-=~^*_#+]{3,}\s*$|```|\|)")
_EMPHASIS = re.compile(r"[*`]+|\b_(?=$|\s)")
_BACKSLASH = re.compile(r"\\([^A-Za-z0-9\s])")
_YAML_LINE = re.compile(r"^([A-Za-z_][\w -]*):\s*(.+?)\s*$")


def identity(read: Reader, folder_name: str, budget: int, count: TokenCount) -> LayerText:
    """The layer, at most `budget` tokens; the folder's name alone where nothing describes the project."""
    page = Page(budget, count)
    source, paragraphs = _described(read)
    heading = f"## {TITLE}: {inline(folder_name)}" + (f" (from {source})" if source else "")
    if not page.add(heading):
        return LayerText(NAME, TITLE, "", 0, budget, ("no room",))
    for paragraph in paragraphs[:MAX_PARAGRAPHS]:
        if not page.add_cut(paragraph, PROSE):
            break
    if page.text == heading:
        page.add(f"{PROSE}Nothing in this folder describes the project.")
    return finish(NAME, TITLE, page, budget, count, (f"source: {source or 'none'}",))


def _described(read: Reader) -> tuple[str | None, list[str]]:
    for source in SOURCES:
        text = read(source)
        if text is None:
            continue
        text = text[:MAX_READ]
        paragraphs = _of_yaml(text) if source.endswith(".yaml") else _of_prose(text)
        if paragraphs:
            return source, paragraphs
    return None, []


def _of_yaml(text: str) -> list[str]:
    """Top-level `key: value` lines; a value that goes on below is not followed."""
    found = []
    for line in text.split("\n"):
        match = _YAML_LINE.match(line)
        if match and match.group(2) not in ("|", ">", "[]", "{}"):
            found.append(inline(f"{match.group(1)}: {match.group(2)}"))
    return found


def _of_prose(text: str) -> list[str]:
    paragraphs: list[str] = []
    current: list[str] = []
    in_code = False
    for line in [*_HTML.sub("", text).replace("\r\n", "\n").split("\n"), ""]:
        if line.lstrip().startswith("```"):
            in_code = not in_code
            continue
        if in_code:
            continue
        plain = _LINK.sub(r"\1", _IMAGE.sub("", line))
        plain = _RST_ROLE.sub(lambda match: match.group(1) or match.group(2), plain)
        is_heading = plain.startswith("#")
        if not plain.strip() or _NOISE.match(plain) or is_heading:
            if current:
                paragraphs.append(_clean(" ".join(current)))
                current = []
            if is_heading:
                paragraphs.append(_clean(plain.lstrip("# ")))
            continue
        current.append(plain.strip())
    return [paragraph for paragraph in paragraphs if any(character.isalpha() for character in paragraph)]


def _clean(text: str) -> str:
    """Without emphasis, code marks and backslashes before punctuation."""
    return inline(_EMPHASIS.sub("", _BACKSLASH.sub(r"\1", text)))
