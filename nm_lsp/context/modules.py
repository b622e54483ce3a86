"""L2: what the hits belong to: their communities, the classes around them with their hierarchy, and who uses whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.context.budget import LayerText, Page, finish
from nm_lsp.context.quoting import CODE, inline
from nm_lsp.graph.model import EdgeKind, Node, NodeKind
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.embedding_text import first_sentences
from nm_lsp.search.ranking import Candidate
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.token_count import TokenCount

NAME, TITLE = "L2", "Where it belongs"
MAX_HITS: Final = 8
MAX_TOPICS: Final = 4
MAX_FILES: Final = 3
MAX_NAMES: Final = 4
MAX_CLASSES: Final = 5
MAX_RELATED: Final = 3
"""Hits whose callers and callees are looked up: each costs a walk over the uses of its name."""
MAX_USES: Final = 80
MAX_DOC: Final = 120
MAX_SIGNATURE: Final = 160

_USES: Final = (EdgeKind.CALLS, EdgeKind.INSTANTIATES)


@dataclass(frozen=True, slots=True)
class Modules:
    """The layer, the titles of the communities it chose, and the docs whose signature and documentation it gave."""

    layer: LayerText
    communities: tuple[str, ...]
    said: frozenset[int]


def modules(
    corpus: Corpus, hits: Sequence[Candidate], budget: int, count: TokenCount, cancel: Cancellation | None = None
) -> Modules:
    """The layer for the best of `hits`, at most `budget` tokens. Raises `Cancelled`."""
    page = Page(budget, count)
    if not hits or not page.add(f"## {TITLE}"):
        return Modules(
            LayerText(NAME, TITLE, "", 0, budget, ("no hits",) if not hits else ("no room",)), (), frozenset()
        )
    hits = hits[:MAX_HITS]
    titles = _topics(corpus, hits, page)
    for hit in [hit for hit in hits if hit.node.kind in (NodeKind.FUNCTION, NodeKind.METHOD)][:MAX_RELATED]:
        if cancel is not None:
            cancel.check()
        line = _related_line(corpus, hit)
        if line:
            page.add(line)
    said = set()
    for node, doc in _classes(corpus, hits)[:MAX_CLASSES]:
        if cancel is not None:
            cancel.check()
        if page.add(*_class_lines(corpus, node, doc)):
            said.add(doc)
    layer = finish(NAME, TITLE, page, budget, count, (f"communities: {len(titles)}", f"classes: {len(said)}"))
    return Modules(layer, tuple(titles) if layer.text else (), frozenset(said) if layer.text else frozenset())


def topic_titles(corpus: Corpus, hits: Sequence[Candidate]) -> dict[int, str]:
    """Doc of each hit to the title of its community, where it has one."""
    titles = {}
    for hit in hits:
        row = corpus.topic_of_file.get(int(corpus.file[hit.doc]))
        if row is not None:
            titles[hit.doc] = corpus.topics[row].title
    return titles


def _topics(corpus: Corpus, hits: Sequence[Candidate], page: Page) -> list[str]:
    titles = topic_titles(corpus, hits)
    weights: dict[str, float] = {}
    files: dict[str, list[str]] = {}
    for hit in hits:
        title = titles.get(hit.doc)
        if title is not None:
            weights[title] = weights.get(title, 0.0) + hit.score
            files.setdefault(title, []).append(hit.node.path)
    shown = []
    for title in sorted(weights, key=lambda title: (-weights[title], title))[:MAX_TOPICS]:
        paths = list(dict.fromkeys(files[title]))
        more = f" and {len(paths) - MAX_FILES} more" if len(paths) > MAX_FILES else ""
        if page.add(f"- {inline(title)}: {', '.join(inline(path) for path in paths[:MAX_FILES])}{more}"):
            shown.append(title)
    return shown


def _classes(corpus: Corpus, hits: Sequence[Candidate]) -> list[tuple[Node, int]]:
    """The classes among the hits and those around them, in the order of the hits."""
    found: dict[int, Node] = {}
    for hit in hits:
        if hit.node.kind is NodeKind.CLASS:
            found.setdefault(hit.doc, hit.node)
            continue
        parent = int(corpus.parent[hit.doc])
        if parent >= 0 and parent not in found and hit.node.kind is NodeKind.METHOD:
            node = corpus.node(parent)
            if node.kind is NodeKind.CLASS:
                found[parent] = node
    return [(node, doc) for doc, node in found.items()]


def _class_lines(corpus: Corpus, node: Node, doc: int) -> list[str]:
    lines = [f"{CODE}{inline(node.signature or node.name)[:MAX_SIGNATURE]}  {inline(node.path)}"]
    about = first_sentences(node.doc, MAX_DOC)
    if about:
        lines.append(f"{CODE}  {inline(about)}")
    bases = _names(corpus, _bases(corpus, doc), with_path=True)
    if bases:
        lines.append(f"{CODE}  based on {bases}")
    subclasses = _names(corpus, _subclasses(corpus, doc), with_path=False)
    if subclasses:
        lines.append(f"{CODE}  base of {subclasses}")
    return lines


def _bases(corpus: Corpus, doc: int) -> list[int]:
    found: list[int] = []
    for reference, targets in corpus.references_from(doc):
        if reference.kind is EdgeKind.INHERITS:
            found.extend(target.doc for target in targets[:1])
    return list(dict.fromkeys(found))


def _subclasses(corpus: Corpus, doc: int) -> list[int]:
    return [source for source, target in corpus.references_to(doc, MAX_USES) if target.kind is EdgeKind.INHERITS]


def _related_line(corpus: Corpus, hit: Candidate) -> str:
    callers = [source for source, target in corpus.references_to(hit.doc, MAX_USES) if target.kind in _USES]
    callees = [
        target.doc
        for reference, targets in corpus.references_from(hit.doc)
        if reference.kind in _USES and len(targets) == 1
        for target in targets
    ]
    parts = []
    # Those in the sources say more about its purpose than its tests do.
    callers.sort(key=lambda doc: role_of(corpus.path(doc)) is not Role.SOURCE)
    used_by = _names(corpus, [doc for doc in callers if doc != hit.doc], with_path=False)
    uses = _names(corpus, [doc for doc in callees if doc != hit.doc], with_path=False)
    if used_by:
        parts.append(f"called by {used_by}")
    if uses:
        parts.append(f"calls {uses}")
    return f"- {inline(hit.node.qualified_name)}: {'; '.join(parts)}" if parts else ""


def _names(corpus: Corpus, docs: Sequence[int], *, with_path: bool) -> str:
    distinct = list(dict.fromkeys(docs))
    shown = []
    for doc in distinct[:MAX_NAMES]:
        name = inline(corpus.qualified_name(doc) or corpus.path(doc))
        shown.append(f"{name} ({inline(corpus.path(doc))})" if with_path else name)
    more = f" and {len(distinct) - MAX_NAMES} more" if len(distinct) > MAX_NAMES else ""
    return ", ".join(shown) + more if shown else ""
