"""The use cases of decisions: recording, confirming, doubting, showing, searching.

May import every layer below and the engine's contract. Must not import a face, sqlite3 or subprocess.
"""
