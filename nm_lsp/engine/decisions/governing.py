"""Which verdicts speak of a file or of the files below a folder. Pure data in, pure data out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from nm_lsp.decisions.globs import anchor_governs, base_folder
from nm_lsp.decisions.model import AnchorKind, DecisionId
from nm_lsp.decisions.verdicts import AnchorView, Verdict

WIDE = frozenset({AnchorKind.FOLDER, AnchorKind.GLOB})
Rows = list[tuple[DecisionId, list[AnchorView]]]


@dataclass(frozen=True, slots=True)
class Asked:
    """Repository paths that one question is about: those of a file (a link has two), or all below `folder` ("" or with
    its `/`)."""

    names: tuple[str, ...]
    folder: str | None = None

    def picks(self, names: Iterable[str]) -> set[str]:
        """Those of `names` that the question is about, and its own."""
        if self.folder is None:
            return set(self.names)
        return {name for name in names if name.startswith(self.folder)}


class Governing:
    """The decisions by where their anchors are now."""

    def __init__(self, verdicts: Mapping[DecisionId, Verdict]) -> None:
        self._exact: dict[str, dict[DecisionId, list[AnchorView]]] = {}
        self._wide: list[tuple[DecisionId, AnchorView]] = []
        for identity in sorted(verdicts):
            for view in verdicts[identity].anchors:
                if view.now.kind in WIDE:
                    self._wide.append((identity, view))
                else:
                    self._exact.setdefault(view.now.path, {}).setdefault(identity, []).append(view)

    def rows(self, asked: Asked, here: Collection[str]) -> Rows:
        """The decisions that govern what was asked for, with the anchors that do, those anchored there itself first.

        `here` are the files of HEAD; of a folder it says what lies below it.
        """
        if asked.folder is None:
            found = [row for name in asked.names for row in self._exact.get(name, {}).items()]
            names = list(asked.names)
        else:
            below = sorted(name for name in self._exact if name.startswith(asked.folder) or name in asked.names)
            found = [row for name in below for row in self._exact[name].items()]
            names = [name for name in here if name.startswith(asked.folder)]
        found += [
            (identity, [view])
            for identity, view in self._wide
            if any(anchor_governs(view.now, name) for name in names) or _is_inside(view, asked.folder)
        ]
        return found


def _is_inside(view: AnchorView, folder: str | None) -> bool:
    return folder is not None and base_folder(view.now).startswith(folder)
