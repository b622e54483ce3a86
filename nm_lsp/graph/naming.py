"""Node ids and content hashes: the names by which memory finds a symbol again."""

from __future__ import annotations

from hashlib import blake2b

from nm_lsp.graph.model import NodeId


def content_hash(data: bytes) -> bytes:
    """16 bytes of BLAKE2b."""
    return blake2b(data, digest_size=16).digest()


class Names:
    """Gives ids within one file: `path` for the file, `path::Qualified.name` inside, `#2`, `#3` for homonyms."""

    __slots__ = ("_counts", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._counts: dict[str, int] = {}

    def id_of(self, qualified: str) -> NodeId:
        if not qualified:
            return NodeId(self._path)
        count = self._counts.get(qualified, 0) + 1
        name = qualified if count == 1 else f"{qualified}#{count}"
        while count > 1 and name in self._counts:
            # A heading may be called "Release#2" itself.
            count += 1
            name = f"{qualified}#{count}"
        self._counts[qualified] = count
        if count > 1:
            self._counts[name] = 1
        return NodeId(f"{self._path}::{name}")
