"""A question asked through a real server process. Prints what an editor would receive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nm_lsp.base.wording import counted
from nm_lsp.cli.folders import workspace_folder
from nm_lsp.cli.interrupts import interruptible
from nm_lsp.cli.output import Output, clean
from nm_lsp.cli.progress import ProgressBar
from nm_lsp.worker import selfcheck


def ask(folder: Path | None, params: Mapping[str, object], output: Output) -> bool:
    """Ask `query` with `params` (wire form) and print the answer; say whether anything was found."""
    root = workspace_folder(folder, output)
    bar = ProgressBar(shown=False if output.as_json else None)
    bar.open()
    try:
        with interruptible() as cancel:
            answer: dict[str, Any] = selfcheck.ask(root, "query", params, cancel, bar.update)
    finally:
        bar.close()
    if output.as_json:
        output.document(answer)
    elif answer["hits"]:
        output.text(clean(answer["text"]))
        output.note(
            f"{counted(answer['tokens'], 'token')}, {counted(len(answer['hits']), 'hit')}, through the language server"
        )
    return bool(answer["hits"])
