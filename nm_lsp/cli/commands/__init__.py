"""One module per command, each with its typer application `app`. Imported only when that command runs.

May import what `nm_lsp.cli` may. The modules do not import each other.
"""
