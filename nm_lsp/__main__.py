"""`python -m nm_lsp`: the same as the console script `nm-lsp`."""

from __future__ import annotations

from nm_lsp.cli.entry import run

if __name__ == "__main__":
    run()
