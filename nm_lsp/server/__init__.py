"""Layer 4: the language server face. Converts between LSP and the engine; decides nothing about code or memory.

May import wire, engine and base, pygls and lsprotocol. Must not import sqlite3, subprocess or the command line.
"""
