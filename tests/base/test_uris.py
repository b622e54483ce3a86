"""URIs and paths, on POSIX and Windows rules alike."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.base.uris import child_uri, path_of_uri, relative_to, uri_of_path


@pytest.mark.parametrize(
    "uri",
    [
        "file:///tmp/a%20b/%C3%BC%23%25%2B%26.py",
        "file:///tmp/a%20b/%c3%bc%23%25%2b%26.py",
        "file:///tmp/a b/ü%23%25+&.py",
        "file://localhost/tmp/a%20b/%C3%BC%23%25%2B%26.py",
        "FILE:///tmp/a%20b/%C3%BC%23%25%2B%26.py",
        "file:///tmp/./x/../a%20b/%C3%BC%23%25%2B%26.py",
    ],
)
def test_u04_every_spelling_is_one_path(uri: str) -> None:
    """U04: escapes in either case, unescaped letters and `localhost` name the same file."""
    assert path_of_uri(uri, windows=False) == "/tmp/a b/ü#%+&.py"


@pytest.mark.parametrize(
    "uri", ["file:///c:/a/b.py", "file:///C:/a/b.py", "file:///c%3A/a/b.py", "file:///C%3a/a/b.py"]
)
def test_u04_drive_letters_have_one_form(uri: str) -> None:
    """U04: `c:`, `C:` and `c%3A` are one drive."""
    assert path_of_uri(uri, windows=True) == "C:\\a\\b.py"
    assert uri_of_path("C:\\a\\b.py", windows=True) == "file:///C:/a/b.py"


def test_u04_unc_paths() -> None:
    """U04: a share keeps its host."""
    assert path_of_uri("file://server/share/a.py", windows=True) == "\\\\server\\share\\a.py"
    assert uri_of_path("\\\\server\\share\\a.py", windows=True) == "file://server/share/a.py"
    assert path_of_uri("file://server/share/a.py", windows=False) is None


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:Untitled-1",
        "git:/tmp/gov.py?ref",
        "vscode-vfs://github/a/b.py",
        "vscode-notebook-cell:/tmp/a.ipynb#W0",
        "file:///tmp/a.ipynb#W0",
        "output:x",
        "zipfile:///tmp/a.zip::b.py",
        "/tmp/no/scheme.py",
        "file:relative.py",
        "file:///a%00b",
        "",
    ],
)
def test_u02_other_schemes_have_no_path(uri: str) -> None:
    """U02: nothing but a plain `file:` URI is taken for a file."""
    assert path_of_uri(uri, windows=False) is None


@given(st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name and b"/" not in name))
def test_s07_names_of_any_bytes_survive(name: bytes) -> None:
    """S07: a name that is no UTF-8 leads through its URI back to the same bytes."""
    if name in {b".", b".."}:
        return
    path = os.fsdecode(b"/tmp/" + name)
    assert path_of_uri(uri_of_path(path, windows=False), windows=False) == path


def test_relative_paths_need_a_whole_component() -> None:
    assert relative_to("/a/b/c.py", "/a/b", windows=False) == "c.py"
    assert relative_to("/a/bc/c.py", "/a/b", windows=False) is None
    assert relative_to("/a/b", "/a/b/", windows=False) == ""
    assert relative_to("/x", "/", windows=False) == "x"
    assert relative_to("C:\\A\\b.py", "c:\\a", windows=True) == "b.py"


def test_children_keep_the_spelling_of_the_folder() -> None:
    assert child_uri("file:///C%3A/my%20dir/", "a b/ü.py") == "file:///C%3A/my%20dir/a%20b/%C3%BC.py"
