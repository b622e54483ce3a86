"""Which weights are found, trusted and remembered."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from nm_lsp.base.errors import ModelProblem
from nm_lsp.models import weights as weights_module
from nm_lsp.models.weights import (
    CHECKSUMS_FILE,
    PINNED_MODEL_ID,
    TOKENIZER,
    WEIGHTS,
    Checksums,
    file_sha256,
    install_folder,
    model_status,
    models_folder,
    require_model,
)


def staged(folder) -> dict[str, str]:
    return {"NEURALMIND_ONNX_MODEL_DIR": str(folder)}


def test_nothing_installed_names_the_command_that_helps(tmp_path):
    status = model_status(home=tmp_path, environment={})
    assert (status.present, status.verified, status.pinned, status.size) == (False, False, False, 0)
    assert status.folder == install_folder(tmp_path)
    with pytest.raises(ModelProblem, match=r"model.safetensors and tokenizer.json missing .* `nm-lsp model install`"):
        require_model(home=tmp_path, environment={})


def test_looking_writes_nothing(tmp_path):
    model_status(home=tmp_path, environment={})
    assert list(tmp_path.iterdir()) == []


def test_the_pinned_model_is_verified_and_the_checksum_remembered(model_files, tmp_path, monkeypatch):
    environment = staged(model_files.weights.parent)
    status = model_status(home=tmp_path, environment=environment)
    assert (status.present, status.verified, status.pinned, status.problem) == (True, True, True, None)
    assert status.from_environment
    assert status.size == WEIGHTS.size + TOKENIZER.size
    assert status.files is not None
    assert status.files.model_id == PINNED_MODEL_ID

    def hash_again(path):
        raise AssertionError(f"{path} was hashed again")

    monkeypatch.setattr(weights_module, "file_sha256", hash_again)
    assert model_status(home=tmp_path, environment=environment) == status


def test_the_environment_names_the_only_folder_looked_at(model_files, tmp_path):
    status = model_status(home=None, environment=staged(tmp_path / "absent"))
    assert status.files is None
    assert status.folder == tmp_path / "absent"
    assert "NEURALMIND_ONNX_MODEL_DIR" in (status.hint or "")


def test_an_empty_variable_is_no_folder(tmp_path):
    assert model_status(home=tmp_path, environment={"NEURALMIND_ONNX_MODEL_DIR": " "}).folder == install_folder(
        tmp_path
    )


def test_one_file_of_two_is_not_a_model(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    status = model_status(home=tmp_path, environment=staged(tmp_path))
    assert not status.present
    assert "model.safetensors missing" in (status.problem or "")


def test_wrong_content_is_refused_with_both_checksums(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    (tmp_path / "tokenizer.json").write_text("{}")
    status = model_status(home=tmp_path, environment=staged(tmp_path))
    assert (status.present, status.verified, status.files) == (True, False, None)
    assert WEIGHTS.sha256 in (status.problem or "")
    assert file_sha256(tmp_path / "model.safetensors") in (status.problem or "")


def test_a_staged_graph_is_usable_and_unpinned(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"graph")
    (tmp_path / "tokenizer.json").write_text("{}")
    first = require_model(home=tmp_path, environment=staged(tmp_path))
    assert not first.pinned
    (tmp_path / "tokenizer.json").write_text('{"other": 1}')
    second = require_model(home=tmp_path, environment=staged(tmp_path))
    assert first.model_id != second.model_id, "vectors of different models must not share a cache"


def test_a_changed_file_is_hashed_again(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    checksums = Checksums(tmp_path / "sums.json")
    before = checksums.sha256(file)
    file.write_bytes(b"two!")
    assert checksums.sha256(file) == file_sha256(file) != before


def test_known_limit_a_change_that_keeps_size_time_and_inode_is_not_seen(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    checksums = Checksums(tmp_path / "sums.json")
    before, stat = checksums.sha256(file), file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert checksums.sha256(file) == before


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}', "\x00"])
def test_a_damaged_memory_of_checksums_costs_time_only(tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    memory = tmp_path / "sums.json"
    memory.write_text(content)
    assert Checksums(memory).sha256(file) == file_sha256(file)
    assert str(file.resolve()) in json.loads(memory.read_text())


def test_a_cache_that_cannot_be_written_costs_time_only(model_files, tmp_path):
    models_folder(tmp_path).parent.mkdir(parents=True)
    models_folder(tmp_path).write_text("a file where the folder should be")
    assert model_status(home=tmp_path, environment=staged(model_files.weights.parent)).verified


def test_the_memory_lies_in_the_cache_and_not_in_a_staged_folder(model_files, tmp_path):
    folder = tmp_path / "staged"
    folder.mkdir()
    (folder / WEIGHTS.name).symlink_to(model_files.weights)
    shutil.copy(model_files.tokenizer, folder)
    assert model_status(home=tmp_path, environment=staged(folder)).verified
    assert sorted(path.name for path in folder.iterdir()) == [WEIGHTS.name, TOKENIZER.name]
    assert (models_folder(tmp_path) / CHECKSUMS_FILE).is_file()
