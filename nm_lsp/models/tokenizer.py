"""WordPiece tokens of the model: ids for the embedder, counts for token budgets.

Needs `tokenizer.json` and the `tokenizers` package alone; never imports onnxruntime. Works on the calling thread: the
library's own thread pool, which would take every core, is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tokenizers import Encoding, Tokenizer

from nm_lsp.base.errors import ModelProblem

MAX_TOKENS: Final = 256
"""Of a text, [CLS] and [SEP] included; the rest is cut off."""

MAX_CHARACTERS: Final = 8_192
"""Only so much of a text is looked at for its vector. A text whose first 256 tokens take more than that is nearly all
blanks, and tokenising megabytes to keep 256 tokens would be waste."""


class WordPieces:
    """The model's tokenizer. Thread-safe: nothing changes after construction."""

    __slots__ = ("_tokenizer",)

    def __init__(self, path: Path) -> None:
        """Load `tokenizer.json`, in some 15 ms. Raises `ModelProblem` if it is not one."""
        try:
            # The library raises a bare Exception for every kind of bad file.
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise ModelProblem(
                f"{path} is not a tokenizer: {error}.", hint="Run `nm-lsp model install` to fetch it again."
            ) from error
        # The file has truncation and padding to 128 baked in.
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids per text with [CLS] and [SEP], at most `MAX_TOKENS` each, not padded."""
        rows: list[list[int]] = []
        for text in texts:
            ids = self._encoded(text[:MAX_CHARACTERS], special=True).ids
            # Truncation here and not in the library spares a second tokenizer for the counts.
            rows.append(ids if len(ids) <= MAX_TOKENS else [*ids[: MAX_TOKENS - 1], ids[-1]])
        return rows

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """WordPieces of each whole text, without [CLS] and [SEP]."""
        return [len(self._encoded(text, special=False)) for text in texts]

    def count(self, text: str) -> int:
        return self.count_tokens((text,))[0]

    def _encoded(self, text: str, *, special: bool) -> Encoding:
        try:
            return self._tokenizer.encode(text, add_special_tokens=special)
        except TypeError:
            # The library refuses lone surrogates, which undecodable bytes and broken clients put into texts.
            return self._tokenizer.encode(_without_lone_surrogates(text), add_special_tokens=special)


def _without_lone_surrogates(text: str) -> str:
    """Pairs become the characters they mean, the rest U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
