"""Layer 2: told by the system when files change. The only package with watchdog.

May import: base. Must not read file contents or decide what a change means; it names paths, sometimes too many.
"""
