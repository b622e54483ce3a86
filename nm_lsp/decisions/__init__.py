"""Layer 1: decisions. What a decision is, the events that make it, and when the repository doubts it; pure.

May import: base, and plain data of the other domain packages. Must not do I/O, run git, read clocks or the environment:
time, random numbers, the repository and the comparison of code are arguments.
"""
