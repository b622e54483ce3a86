"""The text of a hit and the text of a vector."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_corpus import Built

from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.model import Node
from nm_lsp.search.embedding_text import embedding_text, first_sentences
from nm_lsp.search.question import understand
from nm_lsp.search.snippet import MAX_TOKENS, snippet
from nm_lsp.search.token_count import TokenCount, counted_tokens, cut_to, estimated_tokens

words_and_marks = counted_tokens(lambda text: len(text.split()))


def node_of(source: str, name: str, path: str = "a.py") -> Node:
    return next(node for node in parse_file(path, source).nodes if node.name == name)


def test_signature_documentation_and_the_lines_that_answer() -> None:
    source = (
        "def ship(parcel):\n"
        '    """Send a parcel.\n\n    Never twice.\n    """\n'
        "    log('start')\n"
        "    if parcel.is_fragile:\n"
        "        wrap(parcel)\n"
        "    return courier.collect(parcel)\n"
    )
    text = snippet(node_of(source, "ship"), source, understand("who wraps a fragile parcel"), estimated_tokens)
    assert text.split("\n") == [
        "def ship(parcel)",
        "Send a parcel.",
        "if parcel.is_fragile:",
        "wrap(parcel)",
        "return courier.collect(parcel)",
    ]
    assert "log" not in text


def test_a_definition_that_cannot_be_read_still_has_a_text() -> None:
    node = node_of('def ship(parcel):\n    """Send a parcel."""\n', "ship")
    assert snippet(node, "", understand("send"), estimated_tokens) == "def ship(parcel)\nSend a parcel."


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="parcel wraps()_.ÿ漢🙂\"'#", max_size=200), max_size=30),
    st.text(alphabet="abc def,()", max_size=400),
    st.integers(0, 120),
    st.sampled_from([estimated_tokens, words_and_marks]),
)
def test_never_over_the_limit(lines: list[str], signature: str, limit: int, count: TokenCount) -> None:
    source = "def wraps(parcel):\n    return 1\n"
    node = node_of(source, "wraps")
    long = Node(**{**{name: getattr(node, name) for name in node.__slots__}, "signature": signature, "doc": signature})
    text = snippet(long, "\n".join(lines), understand("parcel wraps"), count, limit)
    assert count(text) <= limit


def test_hits_of_a_real_search_stay_under_the_limit(shop: Built) -> None:
    question = understand("total of the cart with a voucher")
    for doc in range(shop.corpus.n_docs):
        node = shop.corpus.node(doc)
        body = shop.texts[node.path].encode()[node.span.start_byte : node.span.end_byte].decode()
        assert estimated_tokens(snippet(node, body, question, estimated_tokens)) <= MAX_TOKENS


@given(st.text(max_size=300), st.integers(0, 100))
def test_cutting_keeps_to_the_limit(text: str, limit: int) -> None:
    cut = cut_to(text, limit, estimated_tokens)
    assert estimated_tokens(cut) <= limit
    assert cut == text or cut == "" or cut.endswith("…")


def test_the_larger_count_is_the_cost() -> None:
    assert counted_tokens(lambda _: 1)("x" * 41) == 11
    assert counted_tokens(lambda _: 99)("x" * 41) == 99
    assert counted_tokens(lambda _: 99)("") == 0
    assert estimated_tokens("x" * 31) == 11


@pytest.mark.parametrize(
    ("doc", "sentences"),
    [
        ("Send a parcel. Wait for it. And more.", "Send a parcel. Wait for it."),
        ("Send a parcel\n\nNever twice.", "Send a parcel"),
        ("Send it.\n@param parcel what", "Send it."),
        ("Send :class:`Parcel` to ``there``.", "Send Parcel to there."),
        ("{@link Parcel} and <b>more</b>", "Parcel and more"),
        ("", ""),
    ],
)
def test_first_sentences(doc: str, sentences: str) -> None:
    assert first_sentences(doc, 30) == sentences


def test_a_long_sentence_is_cut_at_a_word() -> None:
    assert first_sentences("wrap the parcel in brown paper", 20) == "wrap the parcel in"


@pytest.mark.parametrize(
    ("path", "source", "name", "text"),
    [
        (
            "src/depot/send.py",
            'def wrap_parcel(self, paper):\n    """Wrap it twice."""\n',
            "wrap_parcel",
            "wrap parcel: Wrap it twice. (self, paper) in depot send",
        ),
        ("src/send.py", "def wrap():\n    return 1\n", "wrap", "wrap in send"),
        ("tests/test_send.py", "def test_wrap():\n    assert wrap()\n", "test_wrap", None),
        (
            "tests/test_send.py",
            'def test_wrap():\n    """It wraps."""\n',
            "test_wrap",
            "test wrap: It wraps. in tests test send",
        ),
        ("src/send.py", "LIMIT = 3\n", "LIMIT", None),
    ],
)
def test_text_of_a_vector(path: str, source: str, name: str, text: str | None) -> None:
    assert embedding_text(node_of(source, name, path)) == text
