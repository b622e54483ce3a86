"""Four layers of context under a hard budget: identity, summary, what the hits belong to, and the hits.

May import `base`, the data of `graph`, and `search`. Must not do I/O or look at clocks: files are read and tokens are
counted by functions given as arguments.
"""
