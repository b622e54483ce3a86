"""Layer 1: what use teaches about code. Rules of learning and forgetting, batches of edits, the network and its spread.

May import: base, numpy, plain data of `graph`. Must not do I/O or look at a clock: times are arguments, Unix seconds.
"""
