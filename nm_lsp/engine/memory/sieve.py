"""Which of the noted changes are somebody's editing. Everything else teaches nothing, and says why.

Reload, checkout, reset, stash and pull are told by the content: it is what the disk, HEAD or the index holds and nobody
saved it here. Undo, layout, generated files and versions that went back are told by the note itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.base.text import split_lines
from nm_lsp.engine.memory.funnel import Notes, ScreenNote
from nm_lsp.engine.memory.shapes import content_key, text_key
from nm_lsp.git import Repository as GitRepository
from nm_lsp.git import head_stamp
from nm_lsp.git.place import Stamp
from nm_lsp.graph.languages import language_of
from nm_lsp.graph.same_code import same_code
from nm_lsp.synapses.edits import LineRange, changed_lines, is_layout
from nm_lsp.worker.sources import Unreadable, decode, read_bytes

MAX_BYTES: Final = 2_000_000
FORMATTER_HUNKS: Final = 3
"""From so many places on, a change that leaves the code the same is a formatter's, not a person's."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that counts, folder-relative: the new text, the lines that changed, and when the first did."""

    path: str
    text: str
    ranges: tuple[LineRange, ...]
    at: float
    source: str
    key: bytes

    @property
    def is_whole(self) -> bool:
        """Whether every line is new, as in a file that was just written."""
        return self.ranges == ((0, max(len(split_lines(self.text)) - 1, 0)),)


@dataclass(frozen=True, slots=True)
class Sifted:
    """`edits` in the order they began; `refused`: path → why it teaches nothing; `dealt_with`: keys of all contents
    that were looked at, counted or not, so that another reporter's word for them is no news."""

    edits: tuple[Edit, ...]
    refused: Mapping[str, str]
    dealt_with: frozenset[bytes]


class Sieve:
    """One work tree's. `git` and `to_repository` (folder-relative → repository-relative) as they are now."""

    def __init__(self, folder: Path, is_generated: Callable[[str], bool]) -> None:
        self._folder = folder
        self._is_generated = is_generated

    def sift(
        self,
        notes: Notes,
        *,
        known: Callable[[bytes, str], bool],
        last_text: Callable[[str], str | None],
        committed: Committed,
        head_moved: bool,
    ) -> Sifted:
        """`known(key, source)`: another reporter has counted that content. `last_text`: the last content of a path that
        was dealt with. `head_moved`: HEAD or the stash moved while the batch was open."""
        edits: list[Edit] = []
        refused: dict[str, str] = {}
        dealt: set[bytes] = set()
        for path, note in notes.screen.items():
            key = content_key(path, note.after)
            found = self._screen(path, note)
            if isinstance(found, tuple):
                dealt.add(key)
                if known(key, "lsp"):
                    refused[path] = "counted already"
                else:
                    edits.append(Edit(path, note.after, found, note.at, "lsp", key))
                continue
            refused[path] = found
            if found != RELOADED:
                dealt.add(key)
        for path, at in notes.disk.items():
            text = self._read(path)
            if text is None or any(edit.path == path for edit in edits):
                continue
            key = content_key(path, text)
            if key in dealt or known(key, "disk"):
                continue
            reason = self._disk(path, text, committed, head_moved=head_moved)
            ranges = () if reason else tuple(changed_lines(last_text(path) or committed.at_head(path) or "", text))
            if reason or not ranges:
                refused.setdefault(path, reason or "nothing changed")
                dealt.add(key)
                continue
            refused.pop(path, None)
            dealt.add(key)
            edits.append(Edit(path, text, ranges, at, "disk", key))
        edits.sort(key=lambda edit: edit.at)
        return Sifted(tuple(edits), refused, frozenset(dealt))

    def _screen(self, path: str, note: ScreenNote) -> tuple[LineRange, ...] | str:
        """The changed lines, or the reason why this is no editing."""
        if note.regressed:
            return "its version went back"
        if note.before == note.after:
            return "undone"
        if self._is_generated(path):
            return "generated"
        if not note.saved:
            on_disk = self._read(path)
            if on_disk is not None and text_key(on_disk) == text_key(note.after):
                return RELOADED
        if is_layout(note.before, note.after):
            return "layout"
        ranges = tuple(changed_lines(note.before, note.after))
        if len(ranges) >= FORMATTER_HUNKS and _is_same_code(path, note.before, note.after):
            return "layout"
        return ranges

    def _disk(self, path: str, text: str, committed: Committed, *, head_moved: bool) -> str | None:
        if self._is_generated(path):
            return "generated"
        if head_moved:
            return "HEAD moved"
        if committed.holds(path, text):
            return "as committed or staged"
        return None

    def _read(self, path: str) -> str | None:
        try:
            return decode(read_bytes(self._folder, path, MAX_BYTES))
        except (Unreadable, OSError):
            return None


RELOADED: Final = "reloaded"


class Committed:
    """What HEAD and the index hold of some files, asked once. Where git does not answer, nothing."""

    def __init__(
        self, git: GitRepository | None, to_repository: Callable[[str], str], paths: Iterable[str], *, staged: bool
    ) -> None:
        """`staged`: a content that the index holds counts too."""
        self._head: dict[str, str] = {}
        self._texts: dict[str, set[bytes]] = {}
        asked = list(paths)
        if git is None or not asked:
            return
        try:
            head = git.head().commit
            names = {path: to_repository(path) for path in asked}
            at_head = git.contents(head, names.values()) if head is not None else {}
            in_index = git.tracked(names.values()) if staged else {}
            for path, name in names.items():
                for contents in (at_head, in_index):
                    blob = git.blob(contents[name]) if name in contents else None
                    if blob is None or len(blob) > MAX_BYTES:
                        continue
                    text = _decoded(blob)
                    self._texts.setdefault(path, set()).add(text_key(text))
                    if contents is at_head:
                        self._head[path] = text
        except GitUnavailable:
            return

    def holds(self, path: str, text: str) -> bool:
        return text_key(text) in self._texts.get(path, ())

    def at_head(self, path: str) -> str | None:
        return self._head.get(path)


class HeadWatch:
    """Tells whether HEAD, the index or the stash moved between two looks. A look is a few `stat` calls."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, object, object]] = []

    def look(self, git: GitRepository | None, now: float) -> None:
        if git is None:
            return
        place = git.place
        moved = (head_stamp(place), _stamp(place.common_dir / "refs" / "stash"))
        index = _stamp(place.git_dir / "index")
        if not self._seen or self._seen[-1][1:] != (moved, index):
            self._seen.append((now, moved, index))
            del self._seen[:-_LOOKS_KEPT]

    def moved_since(self, since: float) -> tuple[bool, bool]:
        """Whether HEAD or the stash, and whether the index, was seen to have moved at `since` or later."""
        head = index = False
        for (_, head_before, index_before), (at, head_now, index_now) in zip(self._seen, self._seen[1:], strict=False):
            if at >= since:
                head = head or head_before != head_now
                index = index or index_before != index_now
        return head, index


_LOOKS_KEPT: Final = 50


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return ((found.st_mtime_ns, found.st_size, found.st_ino),)


def _is_same_code(path: str, old: str, new: str) -> bool:
    return same_code(
        old.encode("utf-8", "surrogatepass"), new.encode("utf-8", "surrogatepass"), language_of(path, new[:2_000])
    )


def _decoded(blob: bytes) -> str:
    try:
        return decode(blob)
    except Unreadable:
        return blob.decode("utf-8", "replace")
