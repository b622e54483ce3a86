"""What the language server shows of decisions: one file per feature of the protocol.

May import engine, wire, base and the server's own parts. Must not import sqlite3 or subprocess, and nothing here blocks
the event loop: whatever reads a file, parses or asks the engine runs in the backend's threads.
"""
