"""A memory for code, served over LSP. `ARCHITECTURE.md` beside this file is the map."""

__version__ = "0.1.0"
