"""The short text a node's vector is made of, and which nodes get one.

Short and dense on purpose: a sentence-like question is matched by a definition's name, first sentence, signature and
place; whole bodies cost a hundred times the time and are the keyword leg's business. The text is the key of the vector
cache, so it must be a pure function of the node: `EMBEDDING_TEXT_VERSION` changes whenever the text would.
"""

from __future__ import annotations

import re
from typing import Final

from nm_lsp.graph.model import Node, NodeKind
from nm_lsp.search.roles import Role, role_of
from nm_lsp.search.tokens import parts_of

EMBEDDING_TEXT_VERSION: Final = 1

MAX_DOC: Final = 140
"""Characters of documentation: about 28 word pieces."""
MAX_SIGNATURE: Final = 60
MAX_NAME: Final = 80
MAX_PATH_WORDS: Final = 3

_DEFINITIONS: Final = frozenset({NodeKind.CLASS, NodeKind.FUNCTION, NodeKind.METHOD})
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])")
_PARAGRAPH_END = re.compile(
    r"\n\s*\n|\n\s*(?=[:@\\]\w|[-*]\s|#|```|<p>|Args?:|Arguments:|Parameters|Returns:|Example|>>>)"
)
_SPACE = re.compile(r"\s+")
_PARAMETERS = re.compile(r"\((.*)\)", re.DOTALL)
_MARKUP = re.compile(r":[a-z:+.-]+:`~?([^`<]+?)(?:\s*<[^>]*>)?`|[`*]+|\{@\w+\s+([^}]*)\}|</?[a-z]+[^>]*>")


def embedding_text(node: Node) -> str | None:
    """At most about 40 word pieces, or None where no vector is made.

    Vectors are made of every function, method and class outside tests, of documented ones in tests, and of sections and
    modules that have documentation; never of generated code.
    """
    doc = first_sentences(node.doc, MAX_DOC)
    role = role_of(node.path)
    if node.kind in _DEFINITIONS:
        if role is Role.GENERATED or (role is Role.TEST and not doc):
            return None
    elif node.kind in (NodeKind.MODULE, NodeKind.SECTION):
        if not doc:
            return None
    else:
        return None
    return _compose(node, doc)


def first_sentences(doc: str, limit: int) -> str:
    """The whole sentences of the first paragraph that fit in `limit`; a longer first one is cut at a word."""
    if not doc:
        return ""
    kept = ""
    paragraph = _PARAGRAPH_END.split(doc.strip()[: limit * 8], maxsplit=1)[0]
    for sentence in _SENTENCE_END.split(paragraph):
        text = plain(sentence)
        if not text:
            continue
        if not kept and len(text) > limit:
            return text[:limit].rsplit(" ", 1)[0]
        if kept and len(kept) + len(text) + 1 > limit:
            break
        kept = f"{kept} {text}" if kept else text
    return kept


def plain(text: str) -> str:
    """Documentation without the marks of reStructuredText, Markdown, JavaDoc and HTML, on one line."""
    return _SPACE.sub(" ", _MARKUP.sub(lambda match: match.group(1) or match.group(2) or "", text)).strip()


def _compose(node: Node, doc: str) -> str:
    name = " ".join(parts_of(node.name))[:MAX_NAME] or node.name[:MAX_NAME]
    if node.kind is NodeKind.SECTION:
        return f"{plain(node.name)[:MAX_NAME]}. {doc}"
    pieces = [f"{name}: {doc}" if doc else name]
    owner = node.qualified_name.rpartition(".")[0] if node.kind is NodeKind.METHOD else ""
    if owner:
        pieces.append("of " + " ".join(parts_of(owner))[:MAX_NAME])
    if node.kind is NodeKind.CLASS:
        pieces.append("class")
    parameters = _PARAMETERS.search(node.signature)
    if parameters and parameters.group(1).strip(" ,") not in ("", "self", "cls"):
        pieces.append("(" + _SPACE.sub(" ", parameters.group(1))[:MAX_SIGNATURE] + ")")
    place = [part for part in parts_of(node.path.rsplit(".", 1)[0]) if part not in ("src", "lib", "init", "index")]
    if place:
        pieces.append("in " + " ".join(place[-MAX_PATH_WORDS:]))
    return " ".join(pieces)
