"""L1: how the project is laid out: its communities, its main folders, and the habits that can be counted."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from nm_lsp.base.wording import counted
from nm_lsp.context.budget import LayerText, Page, finish
from nm_lsp.context.quoting import inline
from nm_lsp.graph.model import NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.segment import KINDS, split_node_id
from nm_lsp.search.token_count import TokenCount
from nm_lsp.search.topics import Topic

NAME, TITLE = "L1", "Overview"
MAX_TOPICS: Final = 10
MAX_SYMBOLS: Final = 4
MAX_FOLDERS: Final = 6
MAX_LANGUAGES: Final = 4
DOMINANT: Final = 0.8


def summary(corpus: Corpus, budget: int, count: TokenCount) -> LayerText:
    """The layer, at most `budget` tokens, most telling lines first. Costs a walk over all files: keep the result."""
    page = Page(budget, count)
    if not page.add(f"## {TITLE}"):
        return LayerText(NAME, TITLE, "", 0, budget, ("no room",))
    if not corpus.n_live_files:
        page.add("The index holds no files yet.")
        return finish(NAME, TITLE, page, budget, count)
    files = corpus.file_numbers
    roles = {path: role_of(path) for path in files}
    page.add(_size(corpus, files))
    folders = _folders(roles)
    if folders:
        page.add(f"Main folders: {folders}")
    habits = _habits(corpus, roles)
    topics = [topic for topic in corpus.topics if any(roles.get(path) is Role.SOURCE for path in topic.files)]
    n_shown = 0
    # The habits are one line and close the layer: their room is kept while communities are listed.
    reserve = count(f"{habits}\n") if habits else 0
    for topic in topics[:MAX_TOPICS]:
        line = _topic_line(topic)
        if page.left - reserve < count(f"{line}\n") or not page.add(line):
            break
        n_shown += 1
    if habits:
        page.add(habits)
    return finish(NAME, TITLE, page, budget, count, (f"{n_shown} of {len(topics)} communities",))


def _size(corpus: Corpus, files: dict[str, int]) -> str:
    languages = Counter(corpus.file_language(number) for number in files.values())
    kinds = Counter(corpus.kind[corpus.live].tolist())
    named = ", ".join(f"{name} {n:,}" for name, n in languages.most_common(MAX_LANGUAGES))
    n_classes, n_functions = kinds[KINDS.index(NodeKind.CLASS)], kinds[KINDS.index(NodeKind.FUNCTION)]
    n_methods = kinds[KINDS.index(NodeKind.METHOD)]
    return (
        f"{counted(len(files), 'file')} ({named}); {counted(n_classes, 'class', 'classes')}, "
        f"{counted(n_functions, 'function')}, {counted(n_methods, 'method')}"
    )


def _folders(roles: dict[str, Role]) -> str:
    """Where the sources are, with the number of files."""
    sources = [path.split("/")[:-1] for path, role in roles.items() if role is Role.SOURCE]
    depth = 0
    found: Counter[str] = Counter()
    while sources:
        found = Counter("/".join(parts[: depth + 1]) for parts in sources)
        (folder, n), *_ = found.most_common(1)
        inside = [parts for parts in sources if "/".join(parts[: depth + 1]) == folder and len(parts) > depth + 1]
        # One folder that holds nearly everything tells nothing: what is in it does.
        if n < DOMINANT * len(sources) or len(inside) * 2 < n:
            break
        sources = [parts for parts in sources if "/".join(parts[: depth + 1]) == folder]
        depth += 1
    return ", ".join(f"{inline(folder)}/ ({n})" for folder, n in found.most_common(MAX_FOLDERS) if folder)


def _topic_line(topic: Topic) -> str:
    names = []
    for symbol in topic.symbols:
        _, qualified, _ = split_node_id(symbol)
        # Titles are made of the strongest names: once is enough.
        if qualified and qualified not in names and qualified not in topic.title:
            names.append(qualified)
    shown = f": {', '.join(inline(name) for name in names[:MAX_SYMBOLS])}" if names else ""
    return f"- {inline(topic.title)} ({counted(len(topic.files), 'file')}){shown}"


def _habits(corpus: Corpus, roles: dict[str, Role]) -> str:
    habits = []
    tests = [path for path, role in roles.items() if role is Role.TEST]
    if tests:
        homes = Counter(path.split("/")[0] + "/" if "/" in path else path for path in tests)
        habits.append(f"tests in {inline(homes.most_common(1)[0][0])} ({counted(len(tests), 'file')})")
    docs = Counter(path.split("/")[0] + "/" for path, role in roles.items() if role is Role.DOCS and "/" in path)
    if docs:
        home, n = docs.most_common(1)[0]
        habits.append(f"documentation in {inline(home)} ({counted(n, 'file')})")
    source_files = [number for path, number in corpus.file_numbers.items() if roles[path] is Role.SOURCE]
    style = _naming(corpus, source_files)
    if style:
        habits.append(style)
    return f"Conventions: {'; '.join(habits)}" if habits else ""


def _naming(corpus: Corpus, files: list[int]) -> str:
    """How functions are called, by a look at a few hundred of them."""
    kinds = [KINDS.index(NodeKind.FUNCTION), KINDS.index(NodeKind.METHOD)]
    docs = np.flatnonzero(np.isin(corpus.kind, kinds) & np.isin(corpus.file, files))
    if len(docs) < 10:
        return ""
    names = [corpus.name(doc) for doc in docs[:: max(1, len(docs) // 300)].tolist()]
    compound = [name.strip("_") for name in names if "_" in name.strip("_") or not name.islower()]
    if not compound:
        return ""
    n_snake = sum(1 for name in compound if "_" in name)
    return f"functions named in {'snake_case' if n_snake * 2 > len(compound) else 'camelCase'}"
