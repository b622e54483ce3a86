"""Layer 4, below both faces: the table of commands and their JSON forms, shared by `server/` and `cli/`.

May import engine and base. Must not import pygls, lsprotocol, asyncio, sqlite3, subprocess, server or cli.
"""
