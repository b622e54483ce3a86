"""Layer 3: the use cases. Everything a face can ask for is a method here, in plain data.

May import every layer below. Must not import pygls, lsprotocol, asyncio, sqlite3, subprocess or a face.
"""
