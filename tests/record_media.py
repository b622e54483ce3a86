"""Draws `editors/media/query.svg`: a real question asked of this repository, as a terminal shows it.

    python tests/record_media.py

Needs an installed nm-lsp with its model and a finished `nm-lsp index`.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "how are damaged databases set aside"
WIDTH, LINES = 100, 34
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    command = [sys.executable, "-P", "-m", "nm_lsp", "query", "--through-server", *QUESTION.split()]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.assemble(("$ ", "bold green"), f"nm-lsp query --through-server {QUESTION}"))
    lines = ended.stdout.splitlines()
    for line in lines[:LINES]:
        console.print(Text(line, style="cyan" if line.startswith("#") else ""), overflow="ellipsis", no_wrap=True)
    if len(lines) > LINES:
        console.print(Text(f"… {len(lines) - LINES} more lines", style="dim"))
    console.print(Text(ended.stderr.strip().splitlines()[-1], style="dim"))
    # Fonts are the viewer's own: a picture in a README fetches nothing.
    picture = FONT_FACE.sub("", console.export_svg(title="nm-lsp"))
    target = ROOT / "editors" / "media" / "query.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
