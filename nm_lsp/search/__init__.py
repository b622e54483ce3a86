"""Finding symbols: tokens, keyword scores, fusion with the vector leg, ranking, and the text shown for a hit.

May import `base`, the data of `graph`, numpy and rank_bm25. Must not do I/O or look at clocks or the environment: the
vector leg, synapse boosts and token counters arrive as arguments.
"""
