"""Layer 2: what is kept on disk in SQLite. Model dataclasses in and out; rows, cursors and SQL stay inside.

May import: the domain packages, base, sqlite3, filelock, numpy. Must not import engine, server or cli, run a
process, or read settings and the environment: paths and clocks are arguments.
"""
