"""What part a file plays in a project, told from its path alone: source, test, documentation, example, and so on.

Ranking lets all but source count less unless the question asks for them, and only source earns vectors unconditionally.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from nm_lsp.search.wordlists import word_set


class Role(Enum):
    SOURCE = "source"
    TEST = "test"
    DOCS = "docs"
    EXAMPLE = "example"
    CONFIG = "config"
    STUB = "stub"  # declarations without bodies: .pyi, .d.ts
    VENDORED = "vendored"  # someone else's code, kept in the tree
    GENERATED = "generated"  # written by a program: lock files, bundles, generated parsers


_TEST_FOLDERS: Final = word_set(
    "test tests testing_tests __tests__ spec specs testdata testsuite test_data fixtures e2e __mocks__ benches"
)
_EXAMPLE_FOLDERS: Final = word_set("example examples sample samples demo demos tutorial tutorials quickstart")
_DOC_FOLDERS: Final = word_set("doc docs documentation man website")
_VENDOR_FOLDERS: Final = word_set("vendor vendored _vendor third_party thirdparty 3rdparty node_modules extern")
_BUILT_FOLDERS: Final = word_set("dist build out generated gen __generated__")

_TEST_FILE = re.compile(
    r"(^tests?[_.-])|([_.-](test|tests|spec|e2e)\.[a-z]+$)|(^conftest\.py$)|(^tests?\.[a-z]+$)"
    r"|([a-z0-9](Test|Tests|TestCase|IT|Spec)\.(java|kt|cs|php|scala|groovy)$)"
)
_DOC_FILE = re.compile(r"\.(md|markdown|rst|mdx|adoc)$", re.IGNORECASE)
_CONFIG_FILE = re.compile(r"\.(toml|ya?ml|json|json5|ini|cfg)$", re.IGNORECASE)
_STUB_FILE = re.compile(r"(\.pyi|\.d\.[cm]?ts)$")
_GENERATED_FILE = re.compile(
    r"(\.min\.[a-z]+$)|([_.]pb2?(_grpc)?\.(py|go|cc|h|js|ts)$)|(\.pb\.[a-z.]+$)|(\.(g|generated|designer)\.[a-z]+$)"
    r"|(^(package-lock|npm-shrinkwrap)\.json$)|(^zz_generated)|(_generated\.[a-z]+$)|([.-]lock\.(json|ya?ml|toml)$)",
    re.IGNORECASE,
)


@lru_cache(maxsize=65_536)
def role_of(path: str) -> Role:
    """The role of a repository-relative path with `/` between its parts; the first rule that applies wins."""
    folder, _, name = path.rpartition("/")
    by_name, by_folder = _by_name(name), _by_folder(folder)
    return _RULES[min(by_name, by_folder)]


# The rules in order. Names and folders repeat in a workspace, so each is looked at by itself and once.
_RULES: Final = (
    Role.GENERATED,  # by name
    Role.VENDORED,
    Role.TEST,
    Role.EXAMPLE,
    Role.DOCS,  # by name
    Role.DOCS,  # by folder
    Role.STUB,
    Role.CONFIG,
    Role.GENERATED,  # by folder
    Role.SOURCE,
)
_NAMES: Final = ((0, _GENERATED_FILE), (2, _TEST_FILE), (4, _DOC_FILE), (6, _STUB_FILE), (7, _CONFIG_FILE))
_FOLDERS: Final = (
    (1, _VENDOR_FOLDERS, None),
    (2, _TEST_FOLDERS, None),
    (3, _EXAMPLE_FOLDERS, None),
    (5, _DOC_FOLDERS, 2),
    (8, _BUILT_FOLDERS, None),
)


@lru_cache(maxsize=16_384)
def _by_name(name: str) -> int:
    return next((rule for rule, pattern in _NAMES if pattern.search(name)), len(_RULES) - 1)


@lru_cache(maxsize=16_384)
def _by_folder(folder: str) -> int:
    parts = folder.lower().split("/")
    return next((rule for rule, names, depth in _FOLDERS if not names.isdisjoint(parts[:depth])), len(_RULES) - 1)
