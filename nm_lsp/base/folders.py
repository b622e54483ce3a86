"""Whether paths of a tree really lie in it: a link on the way to a file leads elsewhere, however the path is spelt."""

from __future__ import annotations

import os
from pathlib import Path


class RealFolders:
    """Answers for one listing or request: each folder is looked at once. `root` is resolved already."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root)
        self._known: dict[str, bool] = {"": True}

    def is_inside(self, path: str) -> bool:
        """Whether no folder on the way to `path` (relative, slashed, without `..`) is a link. The last part may be."""
        return self._is_real(path.rpartition("/")[0])

    def _is_real(self, folder: str) -> bool:
        known = self._known.get(folder)
        if known is None:
            above, _, name = folder.rpartition("/")
            is_link = os.path.islink(f"{self._root}/{folder}")  # noqa: PTH114 (asked for each folder of an index)
            known = name != ".." and not is_link and self._is_real(above)
            self._known[folder] = known
        return known
