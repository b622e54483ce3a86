"""Source files of any content: each becomes sound rows of a segment or is refused with a reason, in a second."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from lengths import Length, lengths

from nm_lsp.graph.model import Node
from nm_lsp.search.segment import FileStamp, SegmentBuilder
from nm_lsp.worker.analysis import analyse_text, content_hash
from nm_lsp.worker.sources import Unreadable, decode

MAX_S = 2.0
SUFFIXES = [
    "py",
    "js",
    "ts",
    "tsx",
    "java",
    "go",
    "rs",
    "c",
    "h",
    "cpp",
    "cs",
    "rb",
    "php",
    "sh",
    "md",
    "rst",
    "txt",
    "toml",
    "yaml",
    "json",
]
PIECES = [
    b"def f(a, *, b=1):\n    ", b"class A(B):\n", b"async ", b"lambda x: x", b"@dec\n", b'"""doc"""\n',
    b"# WHY: so\n", b"function f() {", b"class A extends B {", b"export default ", b"import x from 'y';\n", b"=>",
    b"<T extends U>", b"public static void main(String[] a) {", b"package main\n", b"func (a *A) F() error {",
    b"use a::{b, c};\n", b"impl<T> A for B {", b"#include <a.h>\n", b"#define X(a) a##a\n",
    b"template<typename T> ", b"namespace a::b {", b"struct s { int x; };\n", b"using System;\n", b"module M\n",
    b"end\n", b"<?php ", b"$x->y();", b"?>", b"cat <<A\n", b"A\n", b"f() {\n", b"esac\n", b"# Title\n",
    b"Title\n=====\n", b"```py\n", b".. code::\n\n   x\n", b"[a]\nb = 1\n", b"- a: [b\n", b'{"a": [1, {', b"{",
    b"}", b"(", b")", b"[", b"]", b"<", b">", b";", b",", b":", b".", b"\\", b"'", b'"', b"`", b"/*", b"*/", b"//",
    b"\n", b"\r\n", b"\r", b"\t", b" " * 8, b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\xa9", b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80", b"\x80", b"\0", b"\xe2\x80\xae", b"\x1b[31m", b"# -*- coding: latin-1 -*-\n",
    b"# coding: no-such\n", b"#!/usr/bin/env python\n", b"x" * 300,
]  # fmt: skip
CONTENTS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=12), max_size=60).map(b"".join)


def check_nodes(nodes: tuple[Node, ...], size: int) -> None:
    """Spans lie in the file and in their parents, parents come first, ids are unique."""
    assert nodes[0].parent is None
    assert len({node.id for node in nodes}) == len(nodes)
    for row, node in enumerate(nodes):
        span = node.span
        assert 0 <= span.start_byte <= span.end_byte <= size
        assert (span.start_line, span.start_col) <= (span.end_line, span.end_col)
        assert span.start_byte <= node.name_span.start_byte <= node.name_span.end_byte <= span.end_byte
        if node.parent is not None:
            parent = nodes[node.parent].span
            assert node.parent < row
            assert parent.start_byte <= span.start_byte <= span.end_byte <= parent.end_byte
    assert all(a.span.start_byte <= b.span.start_byte for a, b in pairwise(nodes))


@pytest.mark.parametrize("suffix", SUFFIXES)
@lengths(15)
def test_any_content_is_indexed_or_refused(length: Length, suffix: str) -> None:
    def check(data: bytes) -> None:
        started = time.process_time()
        stamp = FileStamp(content_hash(data), len(data), 1)
        try:
            text = decode(data)
            file = analyse_text(f"a/b.{suffix}", text, stamp)
        except Unreadable as refusal:
            assert str(refusal)  # noqa: PT017 (either outcome is right)
            return
        check_nodes(tuple(file.parsed.nodes), len(text.encode("utf-8", "surrogatepass")))
        builder = SegmentBuilder()
        builder.add(file)
        segment = builder.build()
        assert [segment.node(doc, 0) for doc in range(segment.n_docs)] == list(file.parsed.nodes)
        assert time.process_time() - started < MAX_S

    length.attack(CONTENTS, check)
