"""Layer 4: the command line, twin of the language server: the same engine, the same names, the same answers.

May import `engine`, `wire` and what lies below, typer and rich; of `server` only `main`, and only when a server is
asked for. Must not import pygls, lsprotocol, sqlite3 or subprocess. Start-up time is a feature: `main` knows the
commands by name only and imports the module of the one that runs.
"""
