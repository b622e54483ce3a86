"""Layer 1: the audit chain. Records, their hashes, their text form, and what is wrong with a chain; pure.

May import: base, and plain data of decisions. Must not do I/O, read clocks or the environment: lines, records and
times are arguments.
"""
