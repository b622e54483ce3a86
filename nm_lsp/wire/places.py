"""Where things are for one client: its spelling of URIs, its unit of columns.

A column other than 0 of a line that is not ASCII needs the line's text: an open document's as it is on the screen,
else the file's as it is on disk. Where the file has changed or gone meanwhile, the column is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from nm_lsp.base.text import PositionEncoding, convert_column, split_lines, without_surrogates
from nm_lsp.base.uris import child_uri, uri_of_path

_MAX_READ_BYTES = 4_000_000


class FolderPlaces:
    """The places of one workspace folder. Reads files: not for an event loop. One instance serves one answer.

    `folder_uri` is the client's spelling; `document_uri` and `document_text` know the client's open documents by
    folder-relative path and return None for every other.
    """

    def __init__(
        self,
        folder: PurePath,
        encoding: PositionEncoding = PositionEncoding.UTF16,
        *,
        folder_uri: str | None = None,
        repository: Path | None = None,
        document_uri: Callable[[str], str | None] = lambda _path: None,
        document_text: Callable[[str], str | None] = lambda _path: None,
    ) -> None:
        self._folder = folder
        self._encoding = encoding
        self._folder_uri = folder_uri or uri_of_path(folder)
        self._repository = repository or folder
        self._document_uri = document_uri
        self._document_text = document_text
        self._lines: dict[str, list[str]] = {}

    def folder_uri(self) -> str:
        return self._folder_uri

    def uri(self, path: str) -> str:
        return self._document_uri(path) or child_uri(self._folder_uri, path)

    def repository_uri(self, repo_path: str) -> str:
        """Of a path relative to the repository, in the client's spelling where it lies in the folder."""
        absolute = self._repository / repo_path
        if absolute.is_relative_to(self._folder):
            return self.uri(absolute.relative_to(self._folder).as_posix())
        return uri_of_path(absolute)

    def column(self, path: str, line: int, byte_column: int) -> int:
        if byte_column == 0 or self._encoding is PositionEncoding.UTF8:
            return byte_column
        lines = self._lines.get(path)
        if lines is None:
            lines = self._lines[path] = self._read(path)
        if line >= len(lines):
            return byte_column
        return convert_column(lines[line], byte_column, PositionEncoding.UTF8, self._encoding)

    def _read(self, path: str) -> list[str]:
        text = self._document_text(path)
        if text is None:
            try:
                with Path(self._folder, path).open("rb") as file:
                    raw = file.read(_MAX_READ_BYTES)
            except (OSError, ValueError):
                return []
            text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        return split_lines(without_surrogates(text))
