"""Terms of nodes and questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_corpus import own_texts

from nm_lsp.graph.extract import parse_file
from nm_lsp.search.stemming import stem
from nm_lsp.search.tokens import WEIGHTS, terms_in, terms_of, whole, word_terms


@pytest.mark.parametrize(
    "words",
    [
        "parse parses parsed parsing parser parsers",
        "validate validates validator validation validating validated",
        "serialise serialize serializer serialization serializing",
        "wrap wraps wrapped wrapper wrapping",
        "redirect redirects redirected redirection",
        "iterate iterator iteration iter",
        "configure configured configuration",
        "apply applies applied",
        "verify verification verified",
        "base based bases",
        "color colour colors",
        "slug slugify",
        "header headers",
        "find found",
    ],
)
def test_forms_of_a_word_share_a_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("head", "header"),
        ("except", "exception"),
        ("pip", "pipe"),
        ("form", "format"),
        ("us", "use"),
        ("part", "port"),
        ("number", "numb"),
        ("free", "fre"),
    ],
)
def test_different_things_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=20))
def test_a_stem_is_never_empty_nor_longer_by_more_than_a_letter(word: str) -> None:
    assert bool(stem(word)) == bool(word)
    assert len(stem(word)) <= len(word) + 1


@pytest.mark.parametrize("spelling", ["should_strip_auth", "shouldStripAuth", "ShouldStripAuth", "SHOULD_STRIP_AUTH"])
def test_an_identifier_is_one_term_in_every_spelling(spelling: str) -> None:
    assert "=shouldstripauth" in word_terms(spelling)
    assert {"strip", "auth"} <= set(word_terms(spelling))
    assert whole(spelling) == "=shouldstripauth"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("HTTPDigestAuth", ("http", "digest", "auth", "=httpdigestauth")),
        ("sha256", ("sha256", "sha", "256")),
        ("the and of", ()),
        ("a.b_c", ("=bc",)),
        ("Response.iter_lines", ("respons", "iter", "lin", "=iterlines")),
        ("größe_max", ("größe", "max", "=größemax")),
        ("数据库连接", ("数据", "据库", "库连", "连接", "=数据库连接")),
        ("x" * 65, ()),
        ("", ()),
    ],
)
def test_terms_of_a_text(text: str, terms: tuple[str, ...]) -> None:
    assert terms_in(text) == terms


def test_fields_add_to_the_count_of_the_text() -> None:
    source = 'def open_parcel(knife):\n    """Cut the tape."""\n    tape = find_tape()\n'
    parsed = parse_file("depot.py", source)
    node, own = next(
        (n, o) for n, o in zip(parsed.nodes, own_texts(parsed, source), strict=True) if n.name == "open_parcel"
    )
    terms = terms_of(node, own, "depot.py")
    fields = WEIGHTS.name + WEIGHTS.qualified_name + WEIGHTS.signature
    assert terms["parcel"] == 1 + fields
    assert terms["tap"] == 3 + WEIGHTS.doc  # documentation, variable, part of find_tape
    assert terms["=findtape"] == 1
    assert terms["depot"] == WEIGHTS.path


@given(st.text(max_size=300))
def test_any_text_has_terms(text: str) -> None:
    terms = terms_in(text)
    assert all(terms)
    assert len(terms) == len(set(terms))
