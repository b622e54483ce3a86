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
    *folders, name = path.split("/")
    lower = [folder.lower() for folder in folders]
    if _GENERATED_FILE.search(name):
        return Role.GENERATED
    if any(folder in _VENDOR_FOLDERS for folder in lower):
        return Role.VENDORED
    if any(folder in _TEST_FOLDERS for folder in lower) or _TEST_FILE.search(name):
        return Role.TEST
    if any(folder in _EXAMPLE_FOLDERS for folder in lower):
        return Role.EXAMPLE
    if _DOC_FILE.search(name):
        return Role.DOCS
    if any(folder in _DOC_FOLDERS for folder in lower[:2]):
        return Role.DOCS
    if _STUB_FILE.search(name):
        return Role.STUB
    if _CONFIG_FILE.search(name):
        return Role.CONFIG
    if any(folder in _BUILT_FOLDERS for folder in lower):
        return Role.GENERATED
    return Role.SOURCE
