"""Which language a file is written in, and what the graph wants to know of each.

A language's module, and with it its grammar, is imported at first use only: opening a Python project never loads the
C++ grammar. May import what `graph` may; must not read files (the head of a text is an argument).
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from nm_lsp.graph.languages.spec import CodeLanguage

_BY_SUFFIX = {
    ".py": "python", ".pyi": "python", ".pyw": "python",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".c": "c", ".h": "c",
    ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".c++": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
    ".ipp": "cpp", ".inl": "cpp",
    ".cs": "csharp",
    ".rb": "ruby", ".rake": "ruby", ".gemspec": "ruby",
    ".php": "php", ".phtml": "php",
    ".sh": "bash", ".bash": "bash", ".bats": "bash",
    ".md": "markdown", ".markdown": "markdown", ".mdx": "markdown",
    ".rst": "rst",
    ".toml": "toml",
    ".yaml": "yaml", ".yml": "yaml",
    ".json": "json",
    ".cfg": "ini", ".ini": "ini",
    ".mk": "make",
}  # fmt: skip
_BY_NAME = {
    "Rakefile": "ruby", "Gemfile": "ruby", "SConstruct": "python", "SConscript": "python",
    "Makefile": "make", "makefile": "make", "GNUmakefile": "make",
}  # fmt: skip
_SHEBANG = re.compile(
    r"#!\s*\S*?(?:env\s+(?:-\S+\s+|\w+=\S+\s+)*)?(python|pypy|node|deno|bun|ruby|php|bash|sh|dash|ksh|zsh)[\d.]*(?:\s|$)"
)
_BY_INTERPRETER = {
    "python": "python", "pypy": "python", "node": "javascript", "deno": "typescript", "bun": "typescript",
    "ruby": "ruby", "php": "php", "bash": "bash", "sh": "bash", "dash": "bash", "ksh": "bash", "zsh": "bash",
}  # fmt: skip
_CPP_HEADER = re.compile(
    r"^\s*(?:class\s+\w|namespace\b|template\s*<|using\s|public:|private:)|std::|extern \"C\"", re.MULTILINE
)
_RST_ADORNMENT = re.compile(r"^(?P<title>\S.*)\n(?P<mark>[=\-~^\"'`#*+.:_])(?P=mark){2,}[ \t]*$", re.MULTILINE)

# Modules by language; the documents and whole files below them need no grammar.
_MODULES = {
    "python": "python", "javascript": "javascript", "typescript": "typescript", "tsx": "typescript", "java": "java",
    "go": "go", "rust": "rust", "c": "c", "cpp": "cpp", "csharp": "csharp", "ruby": "ruby", "php": "php",
    "bash": "bash",
}  # fmt: skip
CODE_LANGUAGES = frozenset(_MODULES)
DOCUMENT_LANGUAGES = frozenset({"markdown", "rst"})
FILE_LANGUAGES = frozenset({"toml", "yaml", "json", "ini"})


def language_of(path: str, head: str = "") -> str | None:
    """The language of a file, by its name and, where that says nothing or too little, by the first lines of its text.

    `head` may be one line (enough for a shebang) or about 2,000 characters (a `.txt` in reStructuredText and a C++
    header named `.h` are told by them). None means that the graph does not read such files. `make` is named only
    because its layout matters to `same_code`; the graph does not read it either.
    """
    # String methods rather than a path object: it is asked of every file of a workspace at each look.
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    language = _BY_NAME.get(name) or (_BY_SUFFIX.get(name[dot:].lower()) if dot > 0 else None)
    if language == "c" and name.endswith(".h") and _CPP_HEADER.search(head):
        return "cpp"
    if language is None and name.lower().endswith(".txt"):
        return "rst" if _looks_like_rst(head) else None
    if language is None and head.startswith("#!"):
        shebang = _SHEBANG.match(head)
        return _BY_INTERPRETER[shebang[1]] if shebang else None
    return language


@cache
def code_language(name: str) -> CodeLanguage:
    """What the graph knows of a language in `CODE_LANGUAGES`. The first call for each loads its grammar."""
    # Loaded by name so that each grammar (1 to 6 MB) is paid for only by the projects that use it.
    module = import_module(f"{__name__}.{_MODULES[name]}")
    language = module.LANGUAGES[name]
    assert isinstance(language, CodeLanguage)
    return language


def _looks_like_rst(head: str) -> bool:
    lines = head[:2000].replace("\r\n", "\n")
    for found in _RST_ADORNMENT.finditer(lines):
        underline = found[0].rsplit("\n", 1)[1].rstrip()
        # A title's underline is as long as the title; a rule under a paragraph is not.
        if len(underline) >= len(found["title"].rstrip()):
            return True
    return False
