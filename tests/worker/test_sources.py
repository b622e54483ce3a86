"""Which files are taken, and how their bytes become text."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from nm_lsp.worker.sources import (
    Candidate,
    Refusal,
    Unreadable,
    candidates,
    decode,
    encode_like,
    read_bytes,
    walk,
)

MANY = 1_000_000


def walked(folder: Path, limit: int = MANY) -> tuple[list[str], list[Refusal]]:
    refused: list[Refusal] = []
    return list(walk(folder, refused.append, limit)), refused


def test_ignore_rules_and_built_in_excludes_hold_without_git(tmp_path: Path) -> None:
    for path in ("a.py", "skip/b.py", "keep/c.py", "keep/d.log", "keep/sub/e.log", "node_modules/x/f.js", ".venv/g.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / ".gitignore").write_text("skip/\n*.log\n")
    (tmp_path / "keep" / "sub" / ".gitignore").write_text("!e.log\n")
    paths, refused = walked(tmp_path)
    assert [path for path in paths if not path.endswith(".gitignore")] == ["a.py", "keep/c.py", "keep/sub/e.log"]
    assert refused == []


def test_links_are_not_followed_and_loops_end(tmp_path: Path) -> None:
    """I01, I02: each real file once, nothing outside."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "far.py").write_text("x")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "b").mkdir()
    (root / "a" / "b").symlink_to("../b")
    (root / "b" / "a").symlink_to("../a")
    (root / "self").symlink_to(".")
    (root / "broken").symlink_to("nowhere")
    (root / "itself").symlink_to("itself")
    (root / "ext").symlink_to(tmp_path / "outside")
    (root / "all").symlink_to("/")
    (root / "a" / "real.py").write_text("x")
    assert walked(root) == (["a/real.py"], [])


def test_a_walk_stops_at_its_limit_and_says_so(tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / f"f{n:02}.py").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "late.py").write_text("")
    paths, refused = walked(tmp_path, 20)
    assert "sub/late.py" not in paths
    assert len(refused) == 1
    assert "more than 20 entries" in refused[0].reason


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    refused: list[Refusal] = []
    paths = walk(tmp_path / "gone", refused.append, MANY)
    assert list(paths) == []
    assert "cannot be read" in refused[0].reason


def test_only_regular_files_in_a_known_language_are_candidates(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "dir.py").mkdir()
    (tmp_path / "data.bin").write_bytes(b"\0")
    os.mkfifo(tmp_path / "pipe.py")
    listing = ["a.py", "link.py", "dir.py", "data.bin", "pipe.py", "missing.py", ".git/x.py", ".neuralmind/y.py"]
    found = list(candidates(tmp_path, listing, (), MANY))
    assert [item.path for item in found if isinstance(item, Candidate)] == ["a.py"]
    assert [(item.path, item.reason) for item in found if isinstance(item, Refusal)] == [
        ("pipe.py", "it is no regular file")
    ]


def test_excludes_and_the_limit_of_files_are_kept(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py", "gen_d.py"):
        (tmp_path / name).write_text("")
    found = list(candidates(tmp_path, ["a.py", "gen_d.py", "b.py", "c.py"], ("gen_*",), 2))
    assert [item.path for item in found] == ["a.py", "b.py", "."]
    assert isinstance(found[-1], Refusal)


def test_reading_opens_no_link_and_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"12345")
    (tmp_path / "link.py").symlink_to("a.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert read_bytes(tmp_path, "a.py", 5) == b"12345"
    for path, reason in (
        ("link.py", "cannot be read"),
        ("pipe.py", "no regular file"),
        ("gone.py", "cannot be read"),
        (".", "cannot be read|no regular file"),
    ):
        with pytest.raises(Unreadable, match=reason):
            read_bytes(tmp_path, path, 100)
    with pytest.raises(Unreadable, match=r"larger than 4 bytes \(setting index.maxFileBytes\)"):
        read_bytes(tmp_path, "a.py", 4)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é".encode(), "é"),
        (codecs.BOM_UTF8 + b"x", "x"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "é"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "é"),
        (b"# -*- coding: latin-1 -*-\nn = '\xe9'", "# -*- coding: latin-1 -*-\nn = 'é'"),
        (b"#!/usr/bin/python\n# coding=iso-8859-5\n'\xd0'", "#!/usr/bin/python\n# coding=iso-8859-5\n'а'"),
        (b"caf\xe9 \x80", "café €"),
        (b"", ""),
    ],
)
def test_text_is_decoded_and_encoded_as_the_file_says(data: bytes, text: str) -> None:
    """I07, I08: marks and cookies are honoured; saving writes the bytes that were there."""
    assert decode(data) == text
    assert encode_like(text, data) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\0b", "binary"),
        (b"\x89PNG\r\n\0\0", "binary"),
        (b"# coding: klingon\n\xe9", "klingon, which is not known"),
        (codecs.BOM_UTF8 + b"\xff", "begins as UTF-8 but is not"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        decode(data)


def test_a_character_the_old_encoding_lacks_is_saved_as_utf_8() -> None:
    assert encode_like("snow ☃", b"caf\xe9") == "snow ☃".encode()
