"""Layer 1: the code graph. Text in, nodes and references out; pure.

May import: base, numpy, networkx, tree-sitter. Must not do I/O, read clocks or the environment.
"""
