"""Token ids for vectors, counts for budgets."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tokenizers import Tokenizer

from nm_lsp.base.errors import ModelProblem
from nm_lsp.models.tokenizer import MAX_CHARACTERS, MAX_TOKENS, WordPieces

CLS, SEP = 101, 102


@pytest.fixture(scope="module")
def words(model_files):
    return WordPieces(model_files.tokenizer)


def test_lengths_are_those_of_the_reference(words, reference_texts, reference):
    assert [len(ids) for ids in words.encode(reference_texts)] == reference["lengths"].tolist()


def test_cutting_is_that_of_the_library(words, model_files, reference_texts):
    library = Tokenizer.from_file(str(model_files.tokenizer))
    library.no_padding()
    library.enable_truncation(MAX_TOKENS)
    assert words.encode(reference_texts) == [library.encode(text).ids for text in reference_texts]


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("   ", 0), ("hello", 1), ("hello, world", 3), ("embeddings", 4), ("word " * 1000, 1000)],
)
def test_counts_are_of_the_whole_text_without_special_tokens(words, text, count):
    assert words.count_tokens([text, "hello"]) == [count, 1]
    assert words.count(text) == count


def test_an_endless_text_is_cut_before_it_is_tokenised(words):
    (ids,) = words.encode(["a " * 5_000_000])
    assert (len(ids), ids[0], ids[-1]) == (MAX_TOKENS, CLS, SEP)


def test_lone_surrogates_are_no_reason_to_fail(words):
    assert words.encode(["read \udce9 file", "\ud83d\ude80 launch"]) == words.encode(["read \ufffd file", "🚀 launch"])
    assert words.count("\ud800") == words.count("\ufffd")


def test_known_limit_text_behind_kilobytes_of_blanks_is_not_seen(words):
    assert words.encode([" " * MAX_CHARACTERS + "word"]) == [[CLS, SEP]]


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00\xff", b'{"version": "1.0"}'])
def test_a_bad_file_is_a_model_problem(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(ModelProblem, match="is not a tokenizer"):
        WordPieces(path)


def test_counting_needs_no_runtime():
    program = "import sys, nm_lsp.models.tokenizer, nm_lsp.models.weights; print('onnxruntime' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"
