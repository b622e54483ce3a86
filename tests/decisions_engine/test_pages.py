"""Pages are copies that follow the store; outlines say where symbols are without the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from nm_lsp.engine.decisions import pages
from nm_lsp.engine.decisions.outlines import Outlines
from nm_lsp.engine.decisions.pages import Pages


def test_pages_follow_what_they_are_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "page_folder", lambda _folder: tmp_path / "cache")
    text: list[str | None] = ["secret"]
    mine, other = Pages(tmp_path), Pages(tmp_path)
    path = mine.write("nm-1.md", lambda: text[0])
    assert path is not None
    assert path.read_text() == "secret"
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0
    # What a process that is gone has left behind, goes at the next start; another client's stays.
    left = path.parents[1] / "999999999-1"
    left.mkdir()
    beside = other.write("nm-1.md", lambda: "theirs")
    assert not left.exists()
    text[0] = "redacted"
    mine.renew()
    assert path.read_text() == "redacted"
    text[0] = None
    mine.renew()
    assert not path.exists()
    assert mine.write("nm-1.md", lambda: None) is None
    mine.clear()
    assert beside is not None
    assert beside.read_text() == "theirs"


def test_outlines_know_the_screen_before_the_disk(tmp_path: Path) -> None:
    source = "class A:\n    def f(self):\n        return 1\n\n    def f(self):\n        return 2\n\n\nx = 1\n"
    (tmp_path / "a.py").write_text(source)
    screen: dict[str, str] = {}
    outlines = Outlines(tmp_path, screen.get)
    outline = outlines.outline("a.py")
    around = [symbol.qualified_name if (symbol := outline.around(line)) else None for line in (0, 1, 4, 7)]
    assert around == ["A", "A.f", "A.f#2", None]
    spans = outlines.spans("a.py", "A.f#2")
    assert spans is not None
    assert (spans[1].start_line, spans[1].start_col, spans[1].end_col) == (4, 8, 9)
    screen["a.py"] = "\n\n" + source
    moved = outlines.spans("a.py", "A.f#2")
    assert moved is not None
    assert moved[1].start_line == 6
    assert outlines.spans("a.py", "A.g") is None
    del screen["a.py"]
    (tmp_path / "a.py").write_text("def g():\n    pass\n")
    assert outlines.spans("a.py", "g") is not None
    for odd in ("gone.py", "b.bin", "c.py"):
        (tmp_path / "b.bin").write_bytes(b"\0\1")
        (tmp_path / "c.py").write_bytes(b"def f(:\n" * 3 + b"\xff\0")
        assert outlines.outline(odd).around(0) is None
