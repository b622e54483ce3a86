"""Edits of an open document, sensible or not: the server's text is that of a plain model, and it goes on answering."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from lengths import Length, lengths
from lsp_harness import ProcessClient

PATIENCE_S = 20.0
TEXTS = st.text(st.sampled_from("ab é€😀\n\r\u2028\x0c\x00\ud83d\ude00"), max_size=40)
NUMBERS = (
    st.integers(-2, 12)
    | st.floats(0, 12).map(float)
    | st.sampled_from([2**31 - 1, 2**31, 2**64, -(2**31), 1e300, float("inf"), float("nan")])
)
NO_NUMBERS = st.sampled_from([None, "1", [], {}])
PLACES = st.fixed_dictionaries({"line": NUMBERS, "character": NUMBERS})
BROKEN_PLACES = st.one_of(
    st.none(),
    st.fixed_dictionaries({"line": NUMBERS, "character": NO_NUMBERS}),
    st.fixed_dictionaries({"line": NUMBERS}),
    st.just([0, 0]),
)
RANGES = st.fixed_dictionaries({"start": PLACES, "end": PLACES})
BROKEN_RANGES = st.one_of(
    st.fixed_dictionaries({"start": PLACES, "end": BROKEN_PLACES}), st.just({}), st.just([]), st.just(3)
)
CHANGES = st.one_of(
    st.fixed_dictionaries({"range": RANGES, "text": TEXTS}),
    st.fixed_dictionaries({"range": RANGES, "rangeLength": NUMBERS, "text": TEXTS}),
    st.fixed_dictionaries({"text": TEXTS}),
    st.fixed_dictionaries({"range": st.none(), "text": TEXTS}),
    st.fixed_dictionaries({"range": BROKEN_RANGES, "text": TEXTS}),
    st.fixed_dictionaries({"range": RANGES}),
    st.fixed_dictionaries({"range": RANGES, "text": NO_NUMBERS}),
    st.sampled_from([None, 1, "text", []]),
)
VERSIONS = st.integers(-3, 5) | st.sampled_from([None, 2**70, "1", 1.5, True])
MESSAGES = st.lists(st.tuples(VERSIONS, st.lists(CHANGES, max_size=3)), min_size=1, max_size=6)
ENCODINGS = ["utf-8", "utf-16", "utf-32"]


class Model:
    """The text as one string, changed by the words of the specification."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._encoding = encoding

    def apply(self, change: Any) -> None:
        if not isinstance(change, dict) or not isinstance(change.get("text"), str):
            return
        where = change.get("range")
        if where is None:
            self.text = change["text"]
            return
        places = [self._place(where.get(name)) for name in ("start", "end")] if isinstance(where, dict) else [None]
        if None in places:
            return
        first, last = sorted(place for place in places if place is not None)
        self.text = self.text[: self._offset(*first)] + change["text"] + self.text[self._offset(*last) :]

    @staticmethod
    def _place(place: Any) -> tuple[int, int] | None:
        numbers = [place.get(name) for name in ("line", "character")] if isinstance(place, dict) else [None]
        if any(not isinstance(number, int | float) for number in numbers):
            return None
        if any(number != number or abs(number) == float("inf") for number in numbers):
            return None
        return int(numbers[0]), int(numbers[1])

    def _offset(self, line: int, column: int) -> int:
        """A column past its line's end is that end, one inside a character is before it, a line past the last is the
        end of the text; what is below zero is zero."""
        starts = [0, *(found.end() for found in re.finditer(r"\r\n|\n|\r", self.text))]
        if line < 0:
            return 0
        if line >= len(starts):
            return len(self.text)
        at, taken = starts[line], 0
        while at < len(self.text) and self.text[at] not in "\r\n":
            taken += self._width(self.text[at])
            if taken > column:
                break
            at += 1
        return at

    def _width(self, sign: str) -> int:
        if self._encoding == "utf-32":
            return 1
        if self._encoding == "utf-8":
            return len(sign.encode("utf-8", "surrogatepass"))
        return len(sign.encode("utf-16-le", "surrogatepass")) // 2

    @property
    def shown(self) -> str:
        """As the engine sees it: pairs joined, halves of pairs replaced."""
        return self.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@pytest.mark.parametrize("encoding", ENCODINGS)
@lengths(40)
def test_the_text_is_that_of_the_model(
    length: Length, encoding: str, root: Path, process_client: Callable[..., ProcessClient]
) -> None:
    """Ranges in either order, below zero, beyond every end, inside characters, malformed; lone surrogates; line ends of
    all kinds; versions that jump, repeat or are none."""
    uri = (root / "gov.py").as_uri()
    client = process_client()
    client.start(root, {"general": {"positionEncodings": [encoding]}})

    def check(example: tuple[str, list[tuple[Any, list[Any]]]]) -> None:
        text, messages = example
        model = Model(text, encoding)
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": item})
        for version, changes in messages:
            document = {"uri": uri, "version": version}
            client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
            for change in changes:
                model.apply(change)
        answer = client.request("neuralmind/search", {"query": "text gov.py"}, PATIENCE_S)
        assert answer["hits"][0]["text"] == model.shown
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    length.attack(st.tuples(TEXTS, MESSAGES), check)
    assert client.stop() == 0
    assert client.unframed == b""
    assert b"Traceback" not in client.errors, client.errors.decode()
