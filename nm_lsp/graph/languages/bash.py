"""Shell: functions, variables set at the top, sourced files; commands by a plain name are calls."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Query

from nm_lsp.graph.languages.spec import CodeLanguage, text_of
from nm_lsp.graph.model import Import

_QUERY = """
(function_definition) @function
(program (variable_assignment name: (variable_name)) @constant)
(program (declaration_command (variable_assignment name: (variable_name)) @constant))
(program (declaration_command) @wrapper)
(command name: (command_name . (word) @call .))
(command) @import
(comment) @comment
"""
_BUILTINS = frozenset(
    """
    alias awk basename bg bind break builtin cat cd chmod chown command compgen complete continue cp curl cut date
    declare dirname disown echo enable env eval exec exit export false fg find getopts git grep hash head help jobs
    kill let local ln logout ls mkdir mktemp mv popd printf pushd pwd python python3 read readonly return rm rmdir
    sed set shift shopt sleep sort source sudo tail tar tee test touch tr trap true type ulimit umask unalias uniq
    unset wait wc which xargs
    """.split()  # noqa: SIM905
)


def _imports(node: Node, data: bytes, line: int) -> Iterator[Import]:
    name = node.child_by_field_name("name")
    if name is None or data[name.start_byte : name.end_byte] not in (b"source", b"."):
        return
    path = node.child_by_field_name("argument")
    if path is not None:
        yield Import("*", text_of(path, data).strip("\"'"), "*", line)


def _language() -> CodeLanguage:
    grammar = Language(tree_sitter_bash.language())
    return CodeLanguage("bash", grammar, Query(grammar, _QUERY), imports=_imports, builtins=_BUILTINS, plain_names=True)


LANGUAGES = {"bash": _language()}
