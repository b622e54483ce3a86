"""What the command line prints, and how: answers on stdout, everything else on stderr.

Guarantees: no escape sequence reaches a pipe or a terminal that asked for none (`NO_COLOR`, `TERM=dumb`); with `--json`
stdout holds exactly one JSON document; control characters in text from a repository never reach a terminal.
Rich is imported only for colours, tables on a terminal and progress bars: most answers do not need its 40 ms.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

from nm_lsp.base.errors import NmError
from nm_lsp.cli.exits import Exit, exit_code

# C0 and C1 controls except tab and line feed, and the marks that change the direction of text or end a line.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

_OWN_COLOURS = re.compile(r"(\x1b\[(?:[012]|3[1236])(?:;(?:[12]|3[1236]))*m)")


def clean(text: str) -> str:
    """`text` without characters that could move the cursor, recolour or reorder what a terminal shows."""
    return CONTROLS.sub("�", text.replace("\r\n", "\n"))


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Output:
    """One command's output. `as_json`: the wire form instead of text for people."""

    def __init__(self, *, as_json: bool = False, verbose: bool = False) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self._colour = has_colour(sys.stdout) and not as_json
        self._colour_errors = has_colour(sys.stderr)

    @property
    def on_terminal(self) -> bool:
        return sys.stdout.isatty() and not self.as_json

    def style(self, text: str, *names: str) -> str:
        """`text` in colours where stdout shows them."""
        return _styled(text, names) if self._colour else text

    def text(self, text: str = "") -> None:
        """A line of the answer. What a caller forgot to clean is cleaned here, our own colours excepted."""
        parts = _OWN_COLOURS.split(text) if self._colour else [text]
        _write(sys.stdout, "".join(part if at % 2 else clean(part) for at, part in enumerate(parts)))

    def document(self, value: object) -> None:
        """`value` (plain data) as the JSON document of the answer."""
        text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
        # What JSON lets stand and a terminal does not: written as JSON's own escapes, so that the value stays the same.
        _write(sys.stdout, CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
        """Aligned columns without frames; `right` are the columns aligned to the right. Never cut."""
        shown = [[clean(cell) for cell in row] for row in rows]
        widths = [max([len(heading), *(len(row[at]) for row in shown)]) for at, heading in enumerate(headings)]

        def line(cells: Sequence[str]) -> str:
            padded = (
                c.rjust(w) if at in right else c.ljust(w) for at, (c, w) in enumerate(zip(cells, widths, strict=True))
            )
            return "  ".join(padded).rstrip()

        self.text(self.style(line(headings), "bold"))
        for row in shown:
            self.text(line(row))

    def note(self, text: str) -> None:
        """Something about the answer rather than of it."""
        _write(sys.stderr, _styled(clean(text), ("dim",)) if self._colour_errors else clean(text))

    def warn(self, text: str) -> None:
        _write(sys.stderr, f"{self._label('warning', 'yellow')}: {clean(text)}")

    def detail(self, text: str) -> None:
        """A note for `--verbose` alone."""
        if self.verbose:
            self.note(text)

    def failure(self, error: NmError) -> Exit:
        """Print `error` on stderr (as JSON with `--json`) and return the exit code it stands for."""
        if self.as_json:
            body = {"code": error.code, "message": error.message, "hint": error.hint}
            _write(sys.stderr, json.dumps({"error": body}, ensure_ascii=False))
        else:
            _write(sys.stderr, f"{self._label('error', 'red')}: {clean(error.message)}")
            if error.hint:
                _write(sys.stderr, f"{self._label('hint', 'cyan')}: {clean(error.hint)}")
        return exit_code(error)

    def _label(self, text: str, colour: str) -> str:
        return _styled(text, ("bold", colour)) if self._colour_errors else text


def _styled(text: str, names: Sequence[str]) -> str:
    return f"\x1b[{';'.join(STYLES[name] for name in names)}m{text}\x1b[0m"


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        _reader_gone(stream)
    except UnicodeEncodeError:
        # A terminal or pipe with an older encoding still gets the answer; what it cannot show becomes "?".
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def _reader_gone(stream: TextIO) -> NoReturn:
    """End quietly: nobody reads `stream` any more, and the interpreter must not try to flush it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(Exit.READER_GONE)
