"""Resolving names to definitions: imports first, then the same file, then the whole workspace.

Edges are stored by name, so that editing one file rewrites one file's rows; this module turns a stored use into its
targets when somebody asks. It is a heuristic without type inference, and says how sure it is (`Confidence`).
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nm_lsp.graph.model import Confidence, EdgeKind, Import, NodeKind, Reference

MAX_AMBIGUOUS = 5
"""A use whose name has more definitions than this says nothing about any of them."""

MAX_LOOKED_AT = 60
"""A name with more definitions than this is not even looked into."""

_SELF_NAMES = frozenset({"self", "this", "cls", "super", "Self", "static", "parent"})
_IMPLICIT_THIS = frozenset({"java", "csharp", "cpp", "ruby"})
"""Languages in which a bare name can mean a member of the class around it."""
_CALLABLE = frozenset({NodeKind.FUNCTION, NodeKind.METHOD, NodeKind.CLASS})


class DefinitionIndex(Protocol):
    """What resolution asks of an index. Docs and files are numbers; `parent_of` is -1 at the top of a file."""

    def defined(self, name: str) -> Sequence[int]: ...
    def file_of(self, doc: int) -> int: ...
    def parent_of(self, doc: int) -> int: ...
    def kind_of(self, doc: int) -> NodeKind: ...
    def name_of(self, doc: int) -> str: ...
    def module_of(self, file: int) -> int: ...
    def imports_of(self, file: int) -> Sequence[Import]: ...
    def language_of(self, file: int) -> str: ...
    def path_of(self, file: int) -> str: ...
    def references_of(self, doc: int) -> Sequence[Reference]: ...


@dataclass(frozen=True, slots=True)
class Target:
    doc: int
    kind: EdgeKind
    confidence: Confidence


_FOLDER_MODULES = frozenset({"__init__", "index", "mod"})
"""Files that are what their folder is called."""


class ModuleIndex:
    """Which files a module name or path may mean, by the end of their paths.

    Roots of source trees (`src/`, `lib/`) need not be known: `a.b` is any file that ends in `a/b.py`, the one nearest
    to the importing file first.
    """

    def __init__(self, paths: Iterable[tuple[int, str]]) -> None:
        self._modules, self._folders = _PathEnds(), _PathEnds()
        for file, path in paths:
            folder, slash, name = path.rpartition("/")
            stem = name.partition(".")[0]
            module = folder if folder and stem in _FOLDER_MODULES else f"{folder}{slash}{stem}"
            self._modules.add(module, file)
            self._modules.add(path, file)
            self._folders.add(folder, file)

    def files(self, origin: str, module: str, language: str) -> list[int]:
        """Files that `module`, written in the file `origin`, may mean; [] for what lies outside the workspace."""
        wanted, anchored = _as_path(origin, module, language)
        if not wanted:
            return []
        if language == "go":
            return self._go_package(wanted)
        found = self._modules.exactly(wanted) if anchored else self._modules.nearest(wanted, origin)
        if not found and language in {"java", "csharp", "php", "cpp", "c"}:
            found = self._folders.exactly(wanted) if anchored else self._folders.ending_in(wanted)
        return list(found)

    def _go_package(self, wanted: str) -> list[int]:
        """The files of the folder that an import path ends in. A path without a host is of the standard library."""
        parts = wanted.split("/")
        if "." not in parts[0]:
            return []
        for start in range(1, len(parts)):
            if found := self._folders.ending_in("/".join(parts[start:])):
                return found
        return []


class _PathEnds:
    """Files by what their paths end in. A large workspace asks for the same few names from thousands of files, and may
    hold thousands of files of that name, so what ends in a name is kept, sorted by folder."""

    def __init__(self) -> None:
        self._exact: dict[str, list[int]] = {}
        self._by_name: dict[str, list[tuple[str, int]]] = {}
        self._sorted: dict[str, tuple[list[tuple[str, ...]], list[int]]] = {}

    def add(self, path: str, file: int) -> None:
        self._exact.setdefault(path, []).append(file)
        self._by_name.setdefault(path.rpartition("/")[2], []).append((path, file))

    def exactly(self, path: str) -> Sequence[int]:
        return self._exact.get(path, ())

    def ending_in(self, wanted: str) -> list[int]:
        """All files whose path is `wanted` or ends in "/" and `wanted`, in order of their numbers."""
        return sorted(self._ending_in(wanted)[1])

    def nearest(self, wanted: str, origin: str) -> Sequence[int]:
        """Those of `ending_in` that share most leading folders with the path `origin`."""
        paths, files = self._ending_in(wanted)
        if len(files) < 2:
            return files
        parts = tuple(origin.split("/"))
        at = bisect_left(paths, parts)
        # Among sorted paths, one that shares most is next to where `origin` itself would stand.
        n_shared = max(_shared_prefix(path, parts) for path in paths[max(at - 1, 0) : at + 1])
        prefix = parts[:n_shared]
        return sorted(files[bisect_left(paths, prefix) : bisect_left(paths, (*prefix, _LAST))])

    def _ending_in(self, wanted: str) -> tuple[list[tuple[str, ...]], list[int]]:
        found = self._sorted.get(wanted)
        if found is None:
            named = self._by_name.get(posixpath.basename(wanted), ())
            rows = [(path, file) for path, file in named if path == wanted or path.endswith("/" + wanted)]
            ordered = sorted((tuple(path.split("/")), file) for path, file in rows)
            found = self._sorted[wanted] = [path for path, _ in ordered], [file for _, file in ordered]
        return found


_LAST = "\U0010ffff"
"""Not before any name of a file or folder."""


def _as_path(origin: str, module: str, language: str) -> tuple[str, bool]:
    """The module as a slashed path without suffix, and whether it is a whole path (relative imports are)."""
    folder = posixpath.dirname(origin)
    if language == "python":
        bare = module.lstrip(".")
        dots = len(module) - len(bare)
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        path = bare.replace(".", "/")
        return (posixpath.join(folder, path) if path else folder, True) if dots else (path, False)
    if module.startswith("."):
        path = posixpath.normpath(posixpath.join(folder, module))
        if path.startswith(".."):
            return "", True
        head, name = posixpath.split(path)
        stem, suffix = posixpath.splitext(name)
        return posixpath.join(head, stem if suffix in _SCRIPT_SUFFIXES else name), True
    path = module.replace("::", "/").replace("\\", "/")
    if language in {"java", "csharp"}:
        path = path.replace(".", "/")
    parts = [part for part in path.split("/") if part not in {"", "crate", "self", "super", "@"}]
    return "/".join(parts), False


_SCRIPT_SUFFIXES = frozenset({".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts"})


def _shared_prefix(path: Sequence[str], origin: Sequence[str]) -> int:
    n = 0
    for a, b in zip(path, origin, strict=False):
        if a != b:
            break
        n += 1
    return n


class Resolver:
    """Answers "what does this use mean" over one immutable index. Results are cached by (file, target)."""

    def __init__(self, index: DefinitionIndex, modules: ModuleIndex) -> None:
        self._index = index
        self._modules = modules
        self._imports: dict[int, dict[str, list[Import]]] = {}
        self._imported: dict[tuple[int, str], list[int] | None] = {}
        self._folders: dict[int, str] = {}
        self._files: dict[int, tuple[int, ...]] = {}

    def imported_files(self, file: int) -> tuple[int, ...]:
        """Files of the workspace that `file` imports, each once, in order of first import."""
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = tuple(self._import_targets(file))
        return known

    def _import_targets(self, file: int) -> dict[int, None]:
        index = self._index
        found: dict[int, None] = {}
        path, language = index.path_of(file), index.language_of(file)
        for item in index.imports_of(file):
            targets = self._modules.files(path, item.module, language)
            if item.symbol and language == "python":
                joiner = "" if item.module.endswith(".") else "."
                targets = targets + self._modules.files(path, f"{item.module}{joiner}{item.symbol}", language)
            elif not targets and item.symbol:
                targets = self._modules.files(path, f"{item.module}.{item.symbol}", language)
            found.update(dict.fromkeys(target for target in targets if target != file))
        return found

    def resolve(self, source: int, reference: Reference) -> list[Target]:
        """Targets of `reference`, used inside the node `source`; [] where nothing in the workspace is meant."""
        parts = [part for part in reference.target.split(".") if part]
        if not parts:
            return []
        file = self._index.file_of(source)
        if parts[0] in _SELF_NAMES and len(parts) > 1:
            own = self._in_class_of(source, parts[-1])
            if own:
                return self._targets(own[:1], reference, Confidence.RESOLVED)
            if len(parts) == 2 and parts[0] != "super":
                return self._anywhere(parts[-1], file, reference, methods_only=True)
        key = (file, reference.target)
        if key not in self._imported:
            self._imported[key] = self._through_imports(file, parts)
        imported = self._imported[key]
        if imported is not None:
            return self._targets(imported, reference, Confidence.RESOLVED)
        candidates = [int(doc) for doc in self._index.defined(parts[-1])]
        here = [doc for doc in candidates if self._index.file_of(doc) == file and doc != source]
        if len(parts) == 1 and self._index.language_of(file) not in _IMPLICIT_THIS:
            here = [doc for doc in here if self._index.kind_of(doc) is not NodeKind.METHOD]
        if here and (len(parts) == 1 or self._qualifies(here, parts)):
            return self._targets(self._nearest(here, source)[:1], reference, Confidence.RESOLVED)
        return self._anywhere(parts[-1], file, reference, methods_only=len(parts) > 1)

    def _qualifies(self, docs: Sequence[int], parts: Sequence[str]) -> bool:
        index = self._index
        return any(index.parent_of(doc) >= 0 and index.name_of(index.parent_of(doc)) == parts[-2] for doc in docs)

    def _nearest(self, docs: Sequence[int], source: int) -> list[int]:
        """Definitions of one file: in the same scope first, then outward."""
        scopes = []
        scope = source
        while scope >= 0:
            scopes.append(scope)
            scope = self._index.parent_of(scope)
        rank = {scope: distance for distance, scope in enumerate(scopes)}
        return sorted(docs, key=lambda doc: (rank.get(self._index.parent_of(doc), len(scopes)), doc))

    def _in_class_of(self, source: int, name: str, depth: int = 3) -> list[int]:
        """Members called `name` of the class around `source`, or of its bases up to `depth` levels above."""
        index, scope = self._index, source
        while scope >= 0 and index.kind_of(scope) is not NodeKind.CLASS:
            scope = index.parent_of(scope)
        return self._member(scope, name, depth) if scope >= 0 else []

    def _member(self, owner: int, name: str, depth: int) -> list[int]:
        index = self._index
        own = [int(doc) for doc in index.defined(name) if index.parent_of(int(doc)) == owner]
        if own or depth == 0:
            return own
        for reference in index.references_of(owner):
            # A base written `self.Base` would be looked up in the bases again.
            if reference.kind is EdgeKind.INHERITS and reference.target.partition(".")[0] not in _SELF_NAMES:
                for base in self.resolve(owner, reference)[:1]:
                    if base.doc != owner and (found := self._member(base.doc, name, depth - 1)):
                        return found
        return []

    def _through_imports(self, file: int, parts: Sequence[str]) -> list[int] | None:
        """Definitions reached through an import of `file`; None where no import binds the first name."""
        table = self._imports.get(file)
        if table is None:
            table = self._imports[file] = {}
            for item in self._index.imports_of(file):
                table.setdefault(item.alias, []).append(item)
        bound = table.get(parts[0])
        path, language = self._index.path_of(file), self._index.language_of(file)
        if bound:
            found: list[int] = []
            for item in bound:
                found += self._behind(path, language, item, parts)
            return list(dict.fromkeys(found))
        for item in table.get("*", ()):
            files = set(self._modules.files(path, item.module, language))
            if found := [int(d) for d in self._index.defined(parts[-1]) if self._index.file_of(int(d)) in files]:
                return found[:1]
        return None

    def _behind(self, path: str, language: str, item: Import, parts: Sequence[str]) -> list[int]:
        index = self._index
        joiner = "" if item.module.endswith(".") else "."
        modules = self._modules.files(path, item.module, language)
        submodules = self._modules.files(path, f"{item.module}{joiner}{item.symbol}", language) if item.symbol else []
        name = parts[-1] if len(parts) > 1 else item.symbol
        if not name or name == "default":
            return [index.module_of(file) for file in modules]
        files = set(modules) | set(submodules)
        found = [int(doc) for doc in index.defined(name) if index.file_of(int(doc)) in files]
        if not found and modules and item.symbol:
            # Re-exported: the package imports the name from one of its own modules.
            folders = {posixpath.dirname(index.path_of(file)) for file in modules}
            found = [d for d in map(int, index.defined(name)) if self._folder_of(d) in folders]
        if not found and len(parts) == 1 and submodules:
            return [index.module_of(file) for file in submodules]
        return found

    def _folder_of(self, doc: int) -> str:
        file = self._index.file_of(doc)
        folder = self._folders.get(file)
        if folder is None:
            folder = self._folders[file] = posixpath.dirname(self._index.path_of(file))
        return folder

    def _anywhere(self, name: str, file: int, reference: Reference, *, methods_only: bool) -> list[Target]:
        index = self._index
        defined = index.defined(name)
        if len(defined) > MAX_LOOKED_AT:
            return []
        language = index.language_of(file)
        candidates = [
            doc
            for doc in map(int, defined)
            if (index.kind_of(doc) in _CALLABLE or reference.kind is not EdgeKind.CALLS)
            and (_family(index.language_of(index.file_of(doc))) == _family(language) or _is_prose(language))
            and not (methods_only and index.kind_of(doc) is NodeKind.FUNCTION and index.parent_of(doc) < 0)
        ]
        if len(candidates) == 1:
            return self._targets(candidates, reference, Confidence.UNIQUE)
        if len(candidates) <= MAX_AMBIGUOUS:
            return self._targets(candidates, reference, Confidence.AMBIGUOUS)
        return []

    def _targets(self, docs: Sequence[int], reference: Reference, confidence: Confidence) -> list[Target]:
        rows = []
        for doc in docs:
            kind = reference.kind
            if kind is EdgeKind.CALLS and self._index.kind_of(doc) is NodeKind.CLASS:
                kind = EdgeKind.INSTANTIATES
            rows.append(Target(doc, kind, confidence))
        return rows


def _is_prose(language: str) -> bool:
    return language in {"markdown", "rst"}


def _family(language: str) -> str:
    """Languages that call each other."""
    return {"typescript": "javascript", "tsx": "javascript", "c": "cpp"}.get(language, language)
