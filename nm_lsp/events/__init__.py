"""Layer 2: what happens in the brains, told within the process (bus) and between processes (event file).

May import: base. Must not know who listens, or what an event means.
"""
