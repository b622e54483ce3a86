"""A light English stemmer for words found in code and in questions about it.

It joins the forms that programmers mix freely (`parse`, `parses`, `parsed`, `parsing`, `parser`; `validate`,
`validator`, `validation`; `serialise`, `serialize`, `serializer`) and leaves the rest alone. Stems are keys of the
index and never shown, so they need not be words. A pure function of the word: an index stays valid as long as this
file does not change (see `tokens.TOKENS_VERSION`).
"""

from __future__ import annotations

from nm_lsp.search.wordlists import word_set

VOWELS = frozenset("aeiouy")
MIN_STEM = 4

# Words whose ending only looks like a suffix, where stripping it would join two different things of code.
UNSTEMMED = word_set(
    """header number folder exception string thing something nothing anything everything during processor does this
    alias bias canvas atlas always class series news lens pipe use family supply embed"""
)
EXCEPTIONS = {
    "headers": "header",
    "numbers": "number",
    "folders": "folder",
    "exceptions": "exception",
    "strings": "string",
    "things": "thing",
    "processors": "processor",
    "classes": "class",
    "pipes": "pipe",
    "embeds": "embed",
    "embedded": "embed",
    "embedding": "embed",
    "used": "use",
    "uses": "use",
    "using": "use",
    "indices": "index",
    "indexes": "index",
    "matrices": "matrix",
    "vertices": "vertex",
    "children": "child",
    "aliases": "alias",
    "families": "family",
    "supplies": "supply",
    "supplied": "supply",
    "found": "find",
    "built": "build",
    "written": "write",
    "wrote": "write",
    "sent": "send",
    "chosen": "choose",
    "hidden": "hide",
    "kept": "keep",
    "made": "make",
    "lost": "lose",
}


def stem(word: str) -> str:
    """The stem of a lower-case word. Words that are short or not plain letters are their own stem."""
    if len(word) < MIN_STEM or not word.isascii() or not word.isalpha():
        return word
    known = EXCEPTIONS.get(word)
    if known is not None:
        word = known
    if word in UNSTEMMED:
        return word
    word = _without_plural(word)
    word = _without_suffix(word)
    if len(word) >= MIN_STEM and word.endswith("e") and not word.endswith("ee"):
        word = word[:-1]
    if len(word) >= MIN_STEM and word.endswith("y") and word[-2] not in VOWELS:
        word = word[:-1] + "i"
    return word


def _without_plural(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > MIN_STEM:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


def _without_suffix(word: str) -> str:
    if word.endswith("ly") and len(word) >= MIN_STEM + 2:
        word = word[:-2]
        if word.endswith("i"):
            word = word[:-1] + "y"
    if word.endswith("ify") and len(word) >= MIN_STEM + 3:
        return word[:-3]
    if word.endswith("ied") and len(word) > MIN_STEM:
        return word[:-3] + "y"
    if word.endswith("ification"):
        return word[:-7] + "y"
    if word.endswith(("ing", "ed")) and not word.endswith("eed"):
        word = _without_participle(word)
    elif word.endswith("our") and len(word) >= MIN_STEM + 2:
        word = word[:-3] + "or"
    for ending in ("ation", "ator", "ate"):
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            return _american(word[: -len(ending)])
    if word.endswith("ion") and len(word) >= MIN_STEM + 3:
        return word[:-3]
    if word.endswith(("er", "or")) and len(word) >= MIN_STEM + 2:
        return _american(_undoubled(word[:-2]))
    if word.endswith("e") and len(word) > MIN_STEM:
        return _american(word[:-1])
    return _american(word)


def _without_participle(word: str) -> str:
    base = word[:-3] if word.endswith("ing") else word[:-2]
    if len(base) < 3 or VOWELS.isdisjoint(base):
        return word
    single = _undoubled(base)
    if single == base and len(base) >= MIN_STEM + 2 and base.endswith("at") and base[-3] not in "eo":
        return base[:-2]  # "validating" belongs to "validate", but "formatting" to "format" and "repeating" to "repeat"
    return single


def _undoubled(base: str) -> str:
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeioulsz":
        return base[:-1]
    return base


def _american(base: str) -> str:
    """`serialis` and `serializ` are one stem."""
    return base[:-1] + "z" if base.endswith("is") and len(base) > MIN_STEM + 2 else base
