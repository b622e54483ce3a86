"""What a user can set: one tree of dataclasses, from which the JSON schema, the documentation and the editors' settings
are generated.

Sources, strongest first: the client, `.neuralmind/lsp/config.toml` of the folder, the defaults here. A setting that is
unknown or wrong is a `SettingProblem` with its name and costs only itself. Names are camelCase; snake_case is read too.
The three variables kept from NeuralMind and `NM_LSP_LOG` are all that is read from the environment.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nm_lsp.base.naming import camel_case

CONFIG_FILE = Path(".neuralmind", "lsp", "config.toml")
"""Relative to the workspace folder."""

_FOLDER_SOURCE = CONFIG_FILE.as_posix()
"""How problems call the folder's own file."""

SECTION = "nmLsp"
"""The section of the client's configuration that is asked for."""

_CLIENT_KEYS = frozenset({"trace", "server"})
"""Parts of the section that belong to the client alone (how to start the server, how to trace it)."""

_MAX_CONFIG_BYTES = 1_000_000


def _setting(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    client_alone: bool = False,
) -> Any:
    """`client_alone`: not read from a folder's file, which a repository may bring along."""
    meta = {"doc": doc, "low": low, "high": high, "choices": choices, "client_alone": client_alone}
    return field(default=default, metadata=meta)


SEVERITIES = ("off", "hint", "information", "warning")


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """What is read into the index."""

    enabled: bool = _setting(True, "Build an index of the opened folders.")
    excludes: tuple[str, ...] = _setting(
        (), "Patterns in the syntax of `.gitignore`, relative to the folder, for files to leave out of the index."
    )
    max_file_bytes: int = _setting(
        1_000_000, "Larger files are left out and listed in `status`.", low=1_000, high=50_000_000
    )
    max_files: int = _setting(
        100_000, "At most so many files are indexed; the rest is listed in `status`.", low=1, high=2_000_000
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How hits are found and ranked."""

    rrf_k: int = _setting(
        60, "k of the reciprocal rank fusion: the larger, the less the first ranks weigh.", low=1, high=10_000
    )
    cosine_floor: float = _setting(
        0.3, "Vector hits below this similarity are no hits, so that a question can match nothing.", low=0.0, high=1.0
    )
    tests_lower: bool = _setting(True, "Rank tests and generated code lower unless the question asks for them.")


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """How much context a question gets."""

    budget: int = _setting(1_100, "Tokens of an answer to `query` where the call names no budget.", low=100, high=1_500)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The sentence model."""

    enabled: bool = _setting(True, "Search by meaning too; without it keyword search and the graph answer.")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The process that builds the index."""

    threads: int = _setting(1, "Threads that compute vectors. One core is always left free.", low=1, high=64)


@dataclass(frozen=True, slots=True)
class GitSettings:
    """The git command."""

    path: str = _setting(
        "git",
        "The git command: a name to be found on PATH, or an absolute path. Taken from the client alone, since a "
        "folder's own file could name any program.",
        client_alone=True,
    )


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where memory may be kept."""

    require_encrypted: bool = _setting(
        False,
        "Keep decisions and what was learned only where the system reports encrypted storage (on Linux: dm-crypt, "
        "fscrypt and file systems that encrypt); elsewhere nothing is remembered and search goes on.",
    )


@dataclass(frozen=True, slots=True)
class SymbolSettings:
    """`workspace/symbol`."""

    code: bool = _setting(False, "Let `workspace/symbol` find symbols of the code; off where another server does.")


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """What is shown of decisions, and how loudly."""

    stale: str = _setting(
        "warning",
        "The loudest severity of a stale decision; where only comments or layout changed it is `information` at most.",
        choices=SEVERITIES,
    )
    at_risk: str = _setting(
        "hint",
        "The severity of a decision that committing the present text would make stale. VS Code's Problems panel hides "
        "hints.",
        choices=SEVERITIES,
    )
    invalidated: str = _setting("off", "The severity of an invalidated decision.", choices=SEVERITIES)
    quiet_ms: int = _setting(
        800, "How long nothing must change before decisions at risk are looked for, in ms.", low=50, high=60_000
    )
    max_files: int = _setting(200, "At most so many files show diagnostics, open ones first.", low=1, high=10_000)
    hover: bool = _setting(True, "Show the decisions that govern a file in its hovers.")
    code_lens: bool = _setting(True, "Count the decisions above a governed file and its governed symbols.")
    messages: bool = _setting(
        True, "Show one message where a commit leaves a decision without its file or makes many stale at once."
    )
    revival: str = _setting(
        "manual",
        "Whether a stale decision stays so until a person restores it (`manual`), or holds again once its files hold "
        "the recorded content again (`automatic`).",
        choices=("manual", "automatic"),
    )


@dataclass(frozen=True, slots=True)
class SynapseSettings:
    """What is learned from use."""

    enabled: bool = _setting(True, "Learn from edits, commits and used answers what belongs together, and recall it.")
    hover: bool = _setting(False, "Show in hovers what usually changes together with a symbol.")
    page: bool = _setting(True, "Keep what was learned readable in `.neuralmind/SYNAPSE_MEMORY.md`.")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their defaults."""

    index: IndexSettings = field(default_factory=IndexSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    git: GitSettings = field(default_factory=GitSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    symbols: SymbolSettings = field(default_factory=SymbolSettings)
    decisions: DecisionSettings = field(default_factory=DecisionSettings)
    synapses: SynapseSettings = field(default_factory=SynapseSettings)


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A setting that was not used. `name` is dotted camelCase, `source` says where it was written."""

    name: str
    message: str
    source: str

    def __str__(self) -> str:
        return f"Setting {self.name} in {self.source} was not used: {self.message}."


@dataclass(frozen=True, slots=True)
class Environment:
    """`bm25=False` leaves the vector leg alone; `model_dir` is a folder with staged weights."""

    bm25: bool
    event_log: bool
    model_dir: Path | None
    log_level: str


def read_environment(env: Mapping[str, str]) -> Environment:
    """Read the variables this product knows; there are no others."""
    model_dir = env.get("NEURALMIND_ONNX_MODEL_DIR")
    return Environment(
        bm25=env.get("NEURALMIND_BM25") != "0",
        event_log=env.get("NEURALMIND_EVENT_LOG") != "0",
        model_dir=Path(model_dir) if model_dir else None,
        log_level=env.get("NM_LSP_LOG", "warning").upper(),
    )


def resolve_settings(client: object, folder: Path | None) -> tuple[Settings, tuple[SettingProblem, ...]]:
    """The settings in force for `folder` (None without one), and every setting that could not be used.

    Reads the folder's configuration file; blocking. `client` is whatever JSON the client sent, None for nothing.
    """
    settings = Settings()
    problems: list[SettingProblem] = []
    if folder is not None:
        written, unreadable = _read_config(folder / CONFIG_FILE)
        settings, wrong = apply_settings(settings, written, _FOLDER_SOURCE)
        problems += [*unreadable, *wrong]
    settings, wrong = apply_settings(settings, client, "the client's settings")
    return settings, (*problems, *wrong)


def apply_settings(base: Settings, written: object, source: str) -> tuple[Settings, tuple[SettingProblem, ...]]:
    """`base` with what is usable of `written` laid over it, and the rest as problems."""
    problems: list[SettingProblem] = []
    if written is None:
        return base, ()
    if isinstance(written, Mapping):
        written = {name: value for name, value in written.items() if name not in _CLIENT_KEYS}
    settings = _overlay(base, written, "", source, problems)
    return settings, tuple(problems)


def settings_schema() -> dict[str, object]:
    """The JSON schema (draft 07) of the settings object."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "nm_lsp", **_schema_of(Settings())}


def settings_markdown() -> str:
    """The settings as a Markdown table, one row each."""
    rows = ["| setting | default | meaning |", "| --- | --- | --- |"]
    for name, default, meta in _leaves(Settings(), ""):
        bounds = f" ({meta['low']:,} to {meta['high']:,})" if meta["low"] is not None else ""
        if meta["choices"]:
            bounds = f" ({', '.join(f'`{choice}`' for choice in meta['choices'])})"
        rows.append(f"| `{name}` | `{_toml(default)}` | {meta['doc']}{bounds} |")
    return "\n".join(rows) + "\n"


def _read_config(path: Path) -> tuple[object, tuple[SettingProblem, ...]]:
    source = _FOLDER_SOURCE
    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(_MAX_CONFIG_BYTES).decode("utf-8-sig")), ()
    except (FileNotFoundError, NotADirectoryError):
        return None, ()
    except OSError as error:
        return None, (SettingProblem("(all)", f"the file cannot be read ({error.strerror})", source),)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, (SettingProblem("(all)", f"the file is not valid TOML ({error})", source),)


T = typing.TypeVar("T")


def _overlay(base: T, written: object, where: str, source: str, problems: list[SettingProblem]) -> T:
    if not isinstance(written, Mapping):
        problems.append(SettingProblem(where or "(all)", f"expected an object, got {_shown(written)}", source))
        return base
    fields = {camel_case(row.name): row for row in dataclasses.fields(typing.cast("Any", base))}
    changes: dict[str, object] = {}
    # Editors send dotted keys ("index.enabled") as well as nested objects.
    for key, value in _undotted(written).items():
        name = f"{where}.{camel_case(key)}" if where else camel_case(key)
        row = fields.get(camel_case(key))
        if row is None:
            problems.append(SettingProblem(name, f"there is no such setting; known are {', '.join(fields)}", source))
            continue
        current = getattr(base, row.name)
        if row.metadata.get("client_alone") and source == _FOLDER_SOURCE:
            problems.append(SettingProblem(name, "it is taken from the client alone", source))
        elif dataclasses.is_dataclass(current):
            changes[row.name] = _overlay(current, value, name, source, problems)
        elif value is not None:
            try:
                changes[row.name] = _checked(current, value, row.metadata)
            except ValueError as error:
                problems.append(SettingProblem(name, str(error), source))
    return typing.cast("T", dataclasses.replace(typing.cast("Any", base), **changes))


def _undotted(written: Mapping[Any, object]) -> dict[str, object]:
    nested: dict[str, object] = {}
    for key, value in written.items():
        head, _, rest = str(key).partition(".")
        if not rest:
            nested[head] = value
            continue
        inner = nested.get(head)
        nested[head] = {**(inner if isinstance(inner, dict) else {}), rest: value}
    return nested


def _checked(default: object, value: object, meta: Mapping[str, Any]) -> object:
    """`value` in the type of `default`; raises ValueError with what was expected."""
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        raise ValueError(f"expected true or false, got {_shown(value)}")
    if isinstance(default, int | float):
        whole = isinstance(default, int)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"expected a {'whole ' if whole else ''}number, got {_shown(value)}")
        if whole and int(value) != value:
            raise ValueError(f"expected a whole number, got {_shown(value)}")
        low, high = meta["low"], meta["high"]
        if not low <= value <= high:
            raise ValueError(f"{value} is not between {low:,} and {high:,}")
        return int(value) if whole else float(value)
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ValueError(f"expected a list of texts, got {_shown(value)}")
    choices = meta["choices"]
    if choices:
        if value in choices:
            return value
        raise ValueError(f"expected {' or '.join(choices)}, got {_shown(value)}")
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"expected a text, got {_shown(value)}")


def _schema_of(base: object) -> dict[str, object]:
    properties: dict[str, object] = {}
    for row in dataclasses.fields(typing.cast("Any", base)):
        value = getattr(base, row.name)
        if dataclasses.is_dataclass(value):
            properties[camel_case(row.name)] = {"description": type(value).__doc__, **_schema_of(value)}
            continue
        entry: dict[str, object] = {"description": row.metadata["doc"], **_schema_type(value)}
        if row.metadata["low"] is not None:
            entry.update(minimum=row.metadata["low"], maximum=row.metadata["high"])
        if row.metadata["choices"]:
            entry["enum"] = list(row.metadata["choices"])
        properties[camel_case(row.name)] = entry
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _schema_type(default: object) -> dict[str, object]:
    if isinstance(default, bool):
        return {"type": "boolean", "default": default}
    if isinstance(default, int):
        return {"type": "integer", "default": default}
    if isinstance(default, float):
        return {"type": "number", "default": default}
    if isinstance(default, tuple):
        return {"type": "array", "items": {"type": "string"}, "default": list(default)}
    return {"type": "string", "default": default}


def _leaves(base: object, where: str) -> typing.Iterator[tuple[str, object, Mapping[str, Any]]]:
    for row in dataclasses.fields(typing.cast("Any", base)):
        value = getattr(base, row.name)
        name = f"{where}.{camel_case(row.name)}" if where else camel_case(row.name)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, name)
        else:
            yield name, value, row.metadata


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return "[]" if value == () else str(value)


def _shown(value: object) -> str:
    text = "true" if value is True else "false" if value is False else "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
