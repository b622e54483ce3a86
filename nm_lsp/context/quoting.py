"""Text of the repository inside a text of ours: data, never structure.

Headings of ours begin at the start of a line with "## ". Foreign text gets onto a line only behind a prefix of ours,
with everything taken out that could end the line or hide: so it can state anything and forge nothing.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

PROSE: Final = "> "
CODE: Final = "  | "

_BREAKS = re.compile("[\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
# Terminal escapes, and the marks that change the direction or the look of what follows.
_ESCAPES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b.")
_SPACES = re.compile(r"[ \t]+")


def inline(text: str) -> str:
    """One line without control characters, for names, titles and signatures."""
    return _SPACES.sub(" ", _visible(_BREAKS.sub(" ", text))).strip()


def quoted(text: str, prefix: str) -> list[str]:
    """The lines of `text`, each behind `prefix`; blank ones left out."""
    lines = (_visible(line).rstrip() for line in _BREAKS.split(text))
    return [prefix + line for line in lines if line.strip()]


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        for character in _ESCAPES.sub("", text)
        if character == "\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co")
    )
