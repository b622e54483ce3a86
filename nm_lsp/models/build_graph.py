"""`python -m nm_lsp.models.build_graph [FILE]` writes the ONNX graph, by default over the package's own copy."""

from __future__ import annotations

import sys
from pathlib import Path

from nm_lsp.models.embedder import GRAPH_PATH
from nm_lsp.models.onnx_graph import build_graph


def main(arguments: list[str]) -> None:
    target = Path(arguments[0]) if arguments else GRAPH_PATH
    data = build_graph().SerializeToString(deterministic=True)
    target.write_bytes(data)
    sys.stdout.write(f"{target}: {len(data):,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
