"""One command's session with the engine: open the folder, wait with a progress bar, ask, print, close.

Guarantees: the workspace is closed and the bar removed however the command ends; the first Ctrl-C withdraws the request
and ends cleanly, a second one ends at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.cli.folders import workspace_folder
from nm_lsp.cli.interrupts import interruptible
from nm_lsp.cli.output import Output
from nm_lsp.cli.progress import ProgressBar
from nm_lsp.engine.host import Host
from nm_lsp.engine.requests import (
    BrainEvent,
    HostEvent,
    IndexFinished,
    IndexProgress,
    Missing,
    Nothing,
    Notice,
    StatusChanged,
    StatusResult,
)
from nm_lsp.engine.settings import resolve_settings
from nm_lsp.engine.workspace import Workspace
from nm_lsp.wire.encode import encode
from nm_lsp.wire.places import FolderPlaces

MISSING = {
    Missing.INDEX: "the index is still being built",
    Missing.VECTORS: "not every vector is computed yet (`nm-lsp index` computes them)",
    Missing.MODEL: "keyword search and graph alone: there are no weights for vector search (`nm-lsp model install`)",
}


class Session:
    """An opened folder. `cancel` is withdrawn by Ctrl-C; pass it to every call of `host`."""

    def __init__(self, host: Host, folder: Path, output: Output, cancel: Cancellation, bar: ProgressBar) -> None:
        self.host = host
        self._bar = bar
        self.folder = folder
        self.output = output
        self.cancel = cancel
        self.settles = False
        """Whether the end of the session waits until what the child began is done."""

    def wait(self, *, vectors: bool = False, within_s: float = math.inf) -> None:
        """Wait until the index is complete, `within_s` at most, showing the bar."""
        self.settles = True
        self._bar.open()
        self.host.wait_ready(self.cancel, vectors=vectors, within_s=within_s)
        self._bar.close()

    def status_within(self, seconds: float) -> StatusResult:
        """The status once the index is complete, or after `seconds` as it stands then."""
        self.wait(within_s=seconds)
        return self.host.status(Nothing(), self.cancel)

    def emit(self, result: object) -> bool:
        """Print `result` in its wire form if `--json` asks for it; say whether that was done."""
        if self.output.as_json:
            self.output.document(encode(result, FolderPlaces(self.folder)))
        return self.output.as_json

    def tell_partial(self, partial: Sequence[Missing]) -> None:
        """What an answer had to do without, as notes beside it."""
        for missing in partial:
            self.output.note(f"partial answer: {MISSING[missing]}")


@contextmanager
def session(
    folder: Path | None,
    output: Output,
    *,
    ready: bool = True,
    vectors: bool = False,
    quiet: bool = False,
    question: str | None = None,
    learning: bool = True,
) -> Iterator[Session]:
    """Open `folder`. Raises what the engine raises.

    `question` is what will be asked, so that the model is loaded meanwhile. `ready` waits for symbols, keyword search
    and graph, `vectors` for all vectors too; `quiet` drops notices, for commands that report the same themselves.
    Without `learning` nothing that is asked is counted, learned from or recalled.
    """
    root = workspace_folder(folder, output)
    bar = ProgressBar(shown=False if output.as_json else None)

    def listen(event: HostEvent) -> None:
        match event:
            case IndexProgress():
                bar.update(event.message, event.percent)
            case IndexFinished():
                output.detail(event.error or event.message)
            case Notice() if not quiet:
                (output.note if event.level == "info" else output.warn)(event.message)
            case Notice() | StatusChanged() | BrainEvent():
                pass

    settings, wrong = resolve_settings(None, root)
    for problem in wrong:
        output.warn(str(problem))
    if not learning:
        settings = replace(settings, synapses=replace(settings.synapses, enabled=False))
    with interruptible() as cancel:
        workspace = Workspace(settings, listen)
        try:
            opened = Session(workspace.add_folder(root), root, output, cancel, bar)
            if question is not None:
                opened.host.prewarm(question)
            if ready or vectors:
                opened.wait(vectors=vectors)
            yield opened
            if opened.settles:
                opened.host.wait_settled(cancel)
        finally:
            bar.close()
            workspace.close()
