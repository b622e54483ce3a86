"""`file:` URIs and paths. Pure text: no file is looked at, so links are not resolved here.

Every spelling of a file's URI (escapes in either case, unescaped letters, `file://localhost/`, `C:` or `c%3A`) leads to
one path. Bytes of a name that are no UTF-8 survive both ways (surrogateescape, as `os.fsdecode` does).
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import PurePath
from urllib.parse import quote_from_bytes, unquote_to_bytes

from nm_lsp.base.errors import InvalidInput

_WINDOWS = sys.platform == "win32"
_FILE_URI = re.compile(r"file://(?P<host>[^/?#]*)(?P<path>/[^?#]*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"/(?P<drive>[A-Za-z])(?::|\|)(?=/|\Z)")
# What RFC 3986 lets stand in a path, less `:` and `@`, which clients escape differently.
_SAFE = b"/!$&'()*+,;=-._~"

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 2_048
"""Below what systems take (4,096), since the folder's own path comes before it."""


def path_of_uri(uri: str, *, windows: bool = _WINDOWS) -> str | None:
    """The normalised absolute path a `file:` URI names; None for every other scheme, a fragment or a malformed URI."""
    match = _FILE_URI.fullmatch(uri)
    if match is None:
        return None
    raw = unquote_to_bytes(match["path"].encode("utf-8", "surrogateescape" if _is_fs_text(uri) else "replace"))
    if b"\0" in raw:
        return None
    path = raw.decode("utf-8", "surrogateescape")
    host = match["host"].lower()
    if windows:
        drive = _DRIVE.match(path)
        if drive is not None:
            path = f"{drive['drive'].upper()}:{path[3:] or '/'}"
        elif host not in {"", "localhost"}:
            path = f"//{host}{path}"
        return path.replace("/", "\\")
    if host not in {"", "localhost"}:
        return None
    return os.path.normpath(path).replace("//", "/", 1)


def uri_of_path(path: str | PurePath, *, windows: bool = _WINDOWS) -> str:
    """The canonical `file:` URI of an absolute path."""
    text = str(path)
    host = ""
    if windows:
        text = text.replace("\\", "/")
        if text.startswith("//"):
            host, _, rest = text[2:].partition("/")
            text = "/" + rest
        elif text[1:2] == ":":
            quoted = quote_from_bytes(text[2:].encode("utf-8", "surrogateescape"), _SAFE)
            return f"file:///{text[0].upper()}:{quoted}"
    return f"file://{host}{quote_from_bytes(text.encode('utf-8', 'surrogateescape'), _SAFE)}"


def child_uri(folder_uri: str, path: str) -> str:
    """The URI of folder-relative `path` below a folder, keeping the client's own spelling of the folder."""
    return f"{folder_uri.rstrip('/')}/{quote_from_bytes(path.encode('utf-8', 'surrogateescape'), _SAFE)}"


def relative_to(path: str, folder: str, *, windows: bool = _WINDOWS) -> str | None:
    """`path` relative to `folder` with forward slashes ("" for the folder itself), None if it lies outside.

    Both are normalised absolute paths as `path_of_uri` gives them. On Windows letter case does not separate files.
    """
    separator = "\\" if windows else "/"
    base = folder.rstrip(separator)
    left, right = (path.lower(), base.lower()) if windows else (path, base)
    if left.rstrip(separator) == right:
        return ""
    if not left.startswith(right + separator):
        return None
    return path[len(base) + 1 :].replace("\\", "/") if windows else path[len(base) + 1 :]


def checked_path(text: str, field: str) -> str:
    """`text`, if a file could have that path; else `InvalidInput`. The system calls would raise all sorts of errors."""
    if "\0" in text:
        raise InvalidInput(field, "a path holds no NUL.")
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidInput(field, "a path holds no half of a surrogate pair.") from None
    longest = max(map(len, raw.replace(b"\\", b"/").split(b"/")))
    if len(raw) > MAX_PATH_BYTES or longest > MAX_NAME_BYTES:
        reason = f"a path has at most {MAX_PATH_BYTES:,} bytes, and each name in it at most {MAX_NAME_BYTES}."
        raise InvalidInput(field, reason)
    return text


def _is_fs_text(uri: str) -> bool:
    """Whether every surrogate in `uri` stands for one byte, as in text that came from a file name."""
    return all(not 0xD800 <= ord(char) <= 0xDFFF or 0xDC80 <= ord(char) <= 0xDCFF for char in uri)
