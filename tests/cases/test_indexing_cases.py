"""Cases I01 to I09: odd folders and files. One real server on a folder that holds all of them, in a repository and
without one."""

from __future__ import annotations

import codecs
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from case_bench import Bench
from decision_session import GOV, Repo, Session
from lsp_harness import REAL
from typist import until_ready
from unprivileged import needs_setpriv, unprivileged

N_NORMAL = 20
N_OUTSIDE = 500
N_INSTALLED = 500
LONG_NAME = "n" * 252 + ".py"
ENCODED = {
    "latin1.py": ("# -*- coding: latin-1 -*-\ndef pâté():\n    return 'é'\n", "latin-1"),
    "cyrillic.py": ("# coding: iso-8859-5\ndef привет():\n    return 1\n", "iso-8859-5"),
    "western.py": ("def café():\n    return 'naïve'\n", "cp1252"),
}


def function(name: str) -> str:
    return f"def {name}(order):\n    return order\n"


@dataclass(frozen=True)
class Odd:
    """A folder of oddities, indexed; `status` is what the server said when it was ready, `took_s` from its start on."""

    root: Path
    s: Session
    status: dict[str, Any]
    took_s: float

    @property
    def skipped(self) -> dict[str, str]:
        return {row["path"]: row["reason"] for row in self.status["skipped"]}

    def hits(self, query: str, **fields: Any) -> list[str]:
        return [hit["id"] for hit in self.s.call("search", query=query, limit=50, **fields)["hits"]]


def fill(root: Path, outside: Path) -> None:
    def put(name: str, content: str | bytes) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    for n in range(N_NORMAL):
        put(f"normal/m{n}.py", function(f"normal_{n}"))
    # Links.
    put("a/in_a.py", function("marmalade"))
    put("b/in_b.py", function("chutney"))
    links = {
        "a/b": "../b", "b/a": "../a", "self": ".", "broken": "nowhere", "itself": "itself", "up": "..",
        "everything": "/", "ext": str(outside), "linked.py": "a/in_a.py",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    # Sizes.
    put("ten_megabytes.py", "x = 1\n" * 1_700_000)
    put("six_hundred.py", function("six_hundred_kilobytes") + "".join(function(f"filler_{n}") for n in range(14_000)))
    put("long_line.py", f"def with_long_line():\n    return '{'x' * 1_200}'\n")
    put("five_megabytes.js", "function minified(){return 1};" * 170_000)
    # Nesting.
    put("nested/sum.py", "x = " + "1+" * 5_000 + "1\n")
    put("nested/attributes.py", "x = a" + ".b" * 5_000 + "\n")
    put("nested/elif.py", "if a:\n    pass\n" + "elif a:\n    pass\n" * 3_000)
    put("nested/parentheses.py", "x = " + "(" * 300 + "1" + ")" * 300 + "\n")
    put("nested/minus.py", "x = " + "-" * 3_000 + "1\n")
    put("nested/deep.json", "[" * 2_000 + "]" * 2_000)
    # Binary content.
    put("binary/nul.py", b"def f():\n    return '\0'\n")
    put("binary/picture.py", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 20)
    put("binary/empty.py", "")
    put("binary/spaces.py", " " * 900_000)
    put("binary/shebang.py", "#!/usr/bin/env python\r")
    # Encodings.
    put("marked.py", codecs.BOM_UTF8 + function("with_mark").encode())
    for name, (text, encoding) in ENCODED.items():
        put(name, text.encode(encoding))
    put("utf16_le.py", codecs.BOM_UTF16_LE + function("sixteen_le").encode("utf-16-le"))
    put("utf16_be.py", codecs.BOM_UTF16_BE + function("sixteen_be").encode("utf-16-be"))
    put("unknown.py", b"# coding: martian\ndef f():\n    return '\xff'\n")
    # Names and permissions.
    put(LONG_NAME, function("long_name"))
    put("closed/in_closed.py", function("in_closed"))
    put("closed_file.py", function("closed_file"))


def too_deep(root: Path) -> None:
    """A path of more than 4,096 bytes, which no call takes as a whole."""
    before = Path.cwd()
    os.chdir(root)
    try:
        for _ in range(20):
            Path("d" * 240).mkdir()
            os.chdir("d" * 240)
        Path("deep.py").write_text(function("too_deep"))
    finally:
        os.chdir(before)


@pytest.fixture(scope="module", params=["git", "no git"])
def odd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odd]:
    if needs_setpriv():
        pytest.skip("setpriv is needed to take root's rights away")
    bench = Bench(tmp_path_factory.mktemp("odd"))
    outside = bench.folder / "outside"
    outside.mkdir()
    for n in range(N_OUTSIDE):
        (outside / f"o{n}.py").write_text(function(f"outside_{n}"))
    root = bench.folder / "project"
    root.mkdir()
    fill(root, outside)
    if request.param == "git":
        Repo(root, {"gov.py": GOV})
        too_deep(root)
    else:
        too_deep(root)
        for name in ("node_modules/lib", ".venv/lib", "dist", "target", ".git-like/objects"):
            (root / name).mkdir(parents=True)
        for n in range(N_INSTALLED):
            (root / "node_modules" / "lib" / f"i{n}.js").write_text(f"function installed_{n}() {{}}\n")
        for name in (".venv/lib", "dist", "target"):
            (root / name / "built.py").write_text(function("built"))
    (root / "closed").chmod(0)
    (root / "closed_file.py").chmod(0)
    began = time.monotonic()
    with bench.session(root, settings={"index": {"enabled": True}}, command=unprivileged(REAL)) as s:
        status = until_ready(s)
        yield Odd(root, s, status, time.monotonic() - began)
    (root / "closed").chmod(0o755)
    # No call of Python's own takes so long a path.
    subprocess.run(["rm", "-rf", str(root / ("d" * 240))], check=True, timeout=60)
    bench.close()
    bench.check()


def test_i01_links_in_circles_are_no_way(odd: Odd) -> None:
    """I01: every real file once, whatever links lead around to it, and in the normal time."""
    print(f"ready after {odd.took_s:.1f} s")
    assert odd.took_s < 30
    assert odd.hits("marmalade", kinds=["function"]) == ["a/in_a.py::marmalade"]
    assert odd.hits("chutney", kinds=["function"]) == ["b/in_b.py::chutney"]


def test_i02_links_lead_to_nothing_outside(odd: Odd) -> None:
    """I02: nothing beyond a link out of the folder is indexed."""
    assert odd.hits("outside_7") == []
    assert odd.status["files"] < 100


def test_i03_installed_and_built_files_are_left_out(odd: Odd) -> None:
    """I03: without git and ignore rules, what dependency managers and builds write is left out by itself; in a
    repository git says which files there are (DESIGN, section 5)."""
    assert odd.hits("installed_7") == []
    assert odd.hits("built", kinds=["function"]) == []
    assert len(odd.hits("normal", kinds=["function"])) == N_NORMAL


def test_i04_what_is_too_large_is_named(odd: Odd) -> None:
    """I04: a long line and 600 KB are no reason; what is over the limit is listed with the setting that raises it, and
    memory stays bounded."""
    assert odd.hits("six_hundred_kilobytes")[0] == "six_hundred.py::six_hundred_kilobytes"
    assert odd.hits("with_long_line")[0] == "long_line.py::with_long_line"
    for name in ("ten_megabytes.py", "five_megabytes.js"):
        assert "index.maxFileBytes" in odd.skipped[name]
    server = psutil.Process(odd.s.client.process.pid)
    for process in (server, *server.children(recursive=True)):
        assert process.memory_info().rss < 500_000_000


def test_i05_nesting_costs_that_file_only(odd: Odd) -> None:
    """I05: deeply nested files are indexed or listed; all others are there."""
    assert len(odd.hits("normal", kinds=["function"])) == N_NORMAL
    assert all(reason for path, reason in odd.skipped.items() if path.startswith("nested/"))
    assert not [problem for problem in odd.status["problems"] if problem["code"].startswith("index")]


def test_i06_binary_content_is_named_or_empty(odd: Odd) -> None:
    """I06: content that is no text is listed as such, empty files are no fault."""
    assert {path: reason for path, reason in odd.skipped.items() if path.startswith("binary/")} == {
        "binary/nul.py": "it is binary",
        "binary/picture.py": "it is binary",
    }


def test_i07_a_byte_order_mark_shifts_nothing(odd: Odd) -> None:
    """I07: the same symbols and columns as without the mark."""
    [hit] = odd.s.call("search", query="with_mark", kinds=["function"])["hits"]
    assert hit["id"] == "marked.py::with_mark"
    assert hit["range"]["start"] == {"line": 0, "character": 0}


def test_i08_encodings_are_read_or_named(odd: Odd) -> None:
    """I08: cookies and marks are honoured, what is no UTF-8 is taken as Windows text, an unknown encoding is listed;
    the text on the screen counts, whatever the disk holds."""
    for name, symbol in (("latin1", "pâté"), ("cyrillic", "привет"), ("western", "café")):
        assert odd.hits(symbol)[0] == f"{name}.py::{symbol}"
    assert odd.hits("sixteen_le")[0] == "utf16_le.py::sixteen_le"
    assert odd.hits("sixteen_be")[0] == "utf16_be.py::sixteen_be"
    assert "martian" in odd.skipped["unknown.py"]
    uri = (odd.root / "unknown.py").as_uri()
    odd.s.open(uri, function("gooseberry"))
    odd.s.until(lambda: odd.hits("gooseberry")[:1] == ["unknown.py::gooseberry"])
    odd.s.close(uri)


def test_i09_what_cannot_be_opened_is_counted(odd: Odd) -> None:
    """I09: a folder and a file without permission are listed, a name of 255 bytes is indexed, and a path longer than
    any call takes stops nothing."""
    assert odd.hits("long_name")[0] == f"{LONG_NAME}::long_name"
    assert "Permission denied" in odd.skipped["closed_file.py"]
    assert any(path.startswith("closed") and "ermission" in reason for path, reason in odd.skipped.items())
    assert odd.status["nSkipped"] == len(odd.skipped)
    assert odd.status["ready"]


@pytest.mark.slow
def test_i05_a_file_that_takes_for_ever_is_given_up(bench: Bench) -> None:
    """I05: at every line of a long comment the scanner of this grammar reads on to its end; after seconds the file is
    listed, and the others are there."""
    slow = "def f():\n    return 1\n" + "# not code any more\n" * 40_000
    repo = bench.repo(files={"slow.py": slow, "normal.py": function("marmalade")})
    with bench.session(repo.path, settings={"index": {"enabled": True}}) as s:
        status = until_ready(s)
        assert [(row["path"], "time limit" in row["reason"]) for row in status["skipped"]] == [("slow.py", True)]
        assert s.call("search", query="marmalade")["hits"][0]["id"] == "normal.py::marmalade"
