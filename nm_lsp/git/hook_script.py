"""The text of our git hooks, and its place in a hook that is already there. Bytes in, bytes out.

Guarantees: `without_block` of what `with_block` made is the former text byte for byte, whatever was written around the
block since. The script is POSIX sh and uses builtins only: it appends a line to `<common git dir>/nm-lsp/hooks.log`
and starts nothing, not even git; it prints nothing, its status is 0, and where that folder is missing (another clone
that shares the hook, after `uninstall`) it does nothing.

A line has words separated by blanks: the format `1`, the time (Unix seconds, 0 where the shell does not know it),
the hook, the linked work tree's name in `.git/worktrees` (`-` for the main one), HEAD's commit and branch (`-` where a
builtin cannot read them), then the hook's arguments; of `post-rewrite` there is one line for each pair, which ends in
the old and the new commit. One line is one write, so that lines of several processes never mix.

The block stands at the head of a script, not at its end: a script may `exec`, `exit` or read all of its input, and only
there ours runs whatever follows. `post-rewrite` reads its input and hands it on.
"""

from __future__ import annotations

import re
from typing import Final

HOOKS: Final = ("post-commit", "post-merge", "post-rewrite", "post-checkout")
LOG_FOLDER: Final = "nm-lsp"
FORMER_FOLDER: Final = "nm-lsp-former"
"""Beside the hooks: where a hook is kept that cannot carry our block. It keeps its name there, which it may look at."""

HEADER: Final = b"#!/bin/sh\n"
_BEGIN: Final = "# >>> nm-lsp hook >>> made by `nm-lsp hooks install`, taken out by `nm-lsp hooks uninstall`"
_END: Final = "# <<< nm-lsp hook <<<"
_BLOCK: Final = re.compile(
    rb"^" + re.escape(_BEGIN.encode()) + rb"\n.*?^" + re.escape(_END.encode()) + rb"\n", re.MULTILINE | re.DOTALL
)

_SHEBANG: Final = re.compile(rb"#! *(?:/usr/bin/env +)?(?:/[\w./-]*/)?(?:sh|bash|dash|ash)(?: +-[eu]+)?\n")
_OWN_NAME: Final = re.compile(rb"\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE[^}]*\})")
# Lines that only ask for the script's name or folder; any other use of its path may read the file itself.
_NAME_ONLY: Final = re.compile(rb"\b(?:dirname|basename|readlink|realpath)\b")

_BODY: Final = """\
nm_lsp_hook() {
  nm_lsp_dir=${GIT_DIR:-.git}
  if [ -f "$nm_lsp_dir" ]; then
    IFS= read -r nm_lsp_dir <"$nm_lsp_dir" || :
    nm_lsp_dir=${nm_lsp_dir#gitdir: }
  fi
  nm_lsp_common=$nm_lsp_dir
  nm_lsp_tree=-
  if [ -f "$nm_lsp_dir/commondir" ]; then
    IFS= read -r nm_lsp_common <"$nm_lsp_dir/commondir" || :
    case $nm_lsp_common in
      /* | ?:*) ;;
      *) nm_lsp_common=$nm_lsp_dir/$nm_lsp_common ;;
    esac
    nm_lsp_tree=${nm_lsp_dir##*/}
    case $nm_lsp_tree in '' | *[!A-Za-z0-9._+-]*) nm_lsp_tree='?' ;; esac
  fi
  [ -d "$nm_lsp_common/nm-lsp" ] || return 0
  nm_lsp_head=-
  nm_lsp_ref=-
  IFS= read -r nm_lsp_head <"$nm_lsp_dir/HEAD" || :
  case $nm_lsp_head in
    'ref: '*)
      nm_lsp_ref=${nm_lsp_head#ref: }
      nm_lsp_head=-
      [ ! -f "$nm_lsp_common/$nm_lsp_ref" ] || IFS= read -r nm_lsp_head <"$nm_lsp_common/$nm_lsp_ref" || :
      ;;
  esac
  nm_lsp_log=$nm_lsp_common/nm-lsp/hooks.log
  nm_lsp_time=${EPOCHSECONDS:-0}
  case $nm_lsp_time in *[!0-9]*) nm_lsp_time=0 ;; esac
  nm_lsp_line="1 $nm_lsp_time $1 $nm_lsp_tree $nm_lsp_head $nm_lsp_ref"
"""
_APPEND: Final = """\
  echo "$nm_lsp_line ${2-} ${3-} ${4-}" >>"$nm_lsp_log" || :
}
"""
_APPEND_PAIRS: Final = """\
  nm_lsp_pairs=
  while IFS= read -r nm_lsp_pair || [ -n "$nm_lsp_pair" ]; do
    nm_lsp_pairs="$nm_lsp_pairs$nm_lsp_pair
"
    echo "$nm_lsp_line ${2-} $nm_lsp_pair" >>"$nm_lsp_log" || :
  done
  nm_lsp_read=yes
}
nm_lsp_read=
"""
_HAND_ON: Final = """\
if [ -n "$nm_lsp_read" ] && [ -n "$nm_lsp_pairs" ]; then
  nm_lsp_pairs=${nm_lsp_pairs%?}
  command exec <<NM_LSP_PAIRS || :
$nm_lsp_pairs
NM_LSP_PAIRS
elif [ -n "$nm_lsp_read" ]; then
  command exec </dev/null || :
fi
"""
_VARIABLES: Final = "dir common tree head ref log time line pairs pair read"
_CALL_FORMER: Final = f"""\
case $0 in
  */*) nm_lsp_former=${{0%/*}}/{FORMER_FOLDER}/@HOOK@ ;;
  *) nm_lsp_former=./{FORMER_FOLDER}/@HOOK@ ;;
esac
[ ! -x "$nm_lsp_former" ] || exec "$nm_lsp_former" "$@"
"""


def block(hook: str, *, former: bool = False) -> bytes:
    """Our lines for `hook`; with `former` they end by running the hook that was there."""
    pairs = hook == "post-rewrite"
    script = [
        _BODY,
        _APPEND_PAIRS if pairs else _APPEND,
        f'nm_lsp_hook {hook} "$@" 2>/dev/null || :\n',
        _HAND_ON if pairs else "",
        "unset -f nm_lsp_hook\n",
        "unset " + " ".join(f"nm_lsp_{name}" for name in _VARIABLES.split()) + "\n",
        _CALL_FORMER.replace("@HOOK@", hook) if former else "",
    ]
    return f"{_BEGIN}\n{''.join(script)}{_END}\n".encode("ascii")


def new_hook(hook: str, *, former: bool = False) -> bytes:
    """A hook of ours alone."""
    return HEADER + block(hook, former=former)


def is_shell_script(text: bytes, *, sourced: bool = False) -> bool:
    """Whether `text` can carry our block: a script for sh or bash that never reads its own file, and so may grow.

    `sourced`: it is run as `sh <file>`, so that it needs no first line that names its interpreter.
    """
    first, mark, _ = text.partition(b"\n")
    if not mark or b"\0" in text or b"\r" in first:
        return False
    if not _SHEBANG.fullmatch(first + mark) and (first.startswith(b"#!") or not sourced):
        return False
    return not any(_OWN_NAME.search(line) and not _NAME_ONLY.search(line) for line in text.split(b"\n"))


def with_block(text: bytes, hook: str) -> bytes:
    """`text`, for which `is_shell_script` holds, with our block behind its first line (or at its head without `#!`)."""
    if text.startswith(b"#!"):
        first, mark, rest = text.partition(b"\n")
        return first + mark + block(hook) + rest
    return block(hook) + text


def found_block(text: bytes) -> bytes | None:
    """Our block in `text`, as it stands there."""
    found = _BLOCK.search(text)
    return found.group() if found else None


def without_block(text: bytes) -> bytes:
    """`text` without our blocks."""
    return _BLOCK.sub(b"", text)
