"""What a question is taken to ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.search.question import MAX_CONCEPTS, QuestionKind, complexity, understand
from nm_lsp.search.roles import Role, role_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("should_strip_auth", QuestionKind.IDENTIFIER),
        ("Response.iter_lines()", QuestionKind.IDENTIFIER),
        ("`std::vec::Vec`", QuestionKind.IDENTIFIER),
        ("redirect?", QuestionKind.IDENTIFIER),
        ("src/requests/auth.py", QuestionKind.PATH),
        ("sessions.py", QuestionKind.PATH),
        ("progress bar", QuestionKind.WORDS),
        ("where is the session cookie signed", QuestionKind.SENTENCE),
        ("", QuestionKind.WORDS),
    ],
)
def test_kind(text: str, kind: QuestionKind) -> None:
    assert understand(text).kind is kind


@pytest.mark.parametrize(
    ("text", "names", "owner"),
    [
        ("should_strip_auth", ("should_strip_auth",), ""),
        ("Response.iter_lines", ("iter_lines",), "Response"),
        ("how does shouldStripAuth decide", ("shouldStripAuth",), ""),
        ("what calls `send` and HTTPAdapter.cert_verify", ("send", "cert_verify"), ""),
        ("a plain question about redirects", (), ""),
    ],
)
def test_names_of_code_in_it(text: str, names: tuple[str, ...], owner: str) -> None:
    question = understand(text)
    assert question.names == names
    assert question.owner == owner


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("unit tests for redirects", {Role.TEST}),
        ("run a command in a test and capture its output", set()),
        ("example of a streaming upload", {Role.EXAMPLE}),
        ("what does the documentation say about proxies", {Role.DOCS}),
        ("dependencies in pyproject", {Role.CONFIG}),
        ("generated parser tables", {Role.GENERATED}),
    ],
)
def test_roles_asked_for(text: str, wanted: set[Role]) -> None:
    assert understand(text).wants == wanted


def test_a_word_and_its_abbreviation_are_one_concept() -> None:
    (concept,) = (c for c in understand("authentication").concepts if c.counts)
    assert concept.terms[0] == ("authentic", 1.0)
    assert ("auth", 0.4) in concept.terms


def test_two_words_may_be_written_as_one() -> None:
    pairs = {term for c in understand("progress bar").concepts if not c.counts for term, _ in c.terms}
    assert {"=progressbar", "progressbar"} <= pairs


def test_parts_of_an_identifier_are_asked_by_their_own_word() -> None:
    question = understand("should_strip_auth")
    assert [c.word for c in question.concepts if c.counts] == ["strip", "auth"]
    assert [c.terms[0][0] for c in question.concepts if not c.counts] == ["=shouldstripauth"]


def test_complexity_grows_with_what_is_asked() -> None:
    assert complexity("") == 0
    assert complexity("redirect") < complexity("strip credentials on redirect")
    assert complexity("strip credentials on redirect") < complexity(
        "how are credentials stripped when redirects happen"
    )
    assert complexity("how and why " + "word_one word_two " * 40) <= 1


@given(st.text(max_size=400))
def test_any_text_can_be_asked(text: str) -> None:
    question = understand(text)
    assert 0 <= question.complexity <= 1
    assert len(question.concepts) <= MAX_CONCEPTS
    assert all(concept.terms for concept in question.concepts)


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/requests/auth.py", Role.SOURCE),
        ("tests/test_auth.py", Role.TEST),
        ("pkg/http/client_test.go", Role.TEST),
        ("src/main/java/org/a/Cart.java", Role.SOURCE),
        ("src/test/java/org/a/CartTest.java", Role.TEST),
        ("web/cart.spec.ts", Role.TEST),
        ("src/click/testing.py", Role.SOURCE),
        ("src/contest.py", Role.SOURCE),
        ("docs/conf.py", Role.DOCS),
        ("README.md", Role.DOCS),
        ("examples/upload.py", Role.EXAMPLE),
        ("types/index.d.ts", Role.STUB),
        ("package-lock.json", Role.GENERATED),
        ("web/dist/app.js", Role.GENERATED),
        ("api/user_pb2.py", Role.GENERATED),
        ("third_party/zlib/inflate.c", Role.VENDORED),
        ("pyproject.toml", Role.CONFIG),
    ],
)
def test_role_of_a_path(path: str, role: Role) -> None:
    assert role_of(path) is role
