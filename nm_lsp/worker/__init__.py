"""Layer 2: the child process that parses, tokenises and embeds, and the parent's end of its pipe.

The only package that starts our child: `sys.executable -m nm_lsp.worker`, with pipes of its own; the child ends when
its standard input does. May import: storage, models, watch, git, the domain, base. Must not import engine or a face.
"""
