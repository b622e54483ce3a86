"""Layer 3: the associative brain. Signals in (edits, commits, opens, used hits), recall out, and its own store.

May import: everything below the engine, and the engine's requests, outlines and look at HEAD. Must not know any face.
"""
