"""Abbreviations that programmers write for words that people say, both ways.

Only abbreviations: words of like meaning are the vector leg's business. Each line is one word and its short forms.
"""

from __future__ import annotations

from typing import Final

from nm_lsp.search.stemming import stem

_TABLE: Final = """
address addr
administrator admin administration
application app
argument arg
array arr
asynchronous async
attribute attr
authentication auth
authorization auth
average avg
buffer buf
button btn
calculate calc
callback cb
certificate cert
character char
column col
command cmd
configuration config conf cfg configure
connection conn
context ctx
control ctrl
coordinate coord
count cnt
credential cred auth
current cur curr
database db
declaration decl
default dflt
definition def
delete del
dependency dep
description desc
destination dst dest
development dev
device dev
dictionary dict
difference diff
directory dir
document doc
documentation doc
element elem
environment env environ
error err
event evt
exception exc
execute exec
expression expr
extension ext
file fp
format fmt
frequency freq
function func fn
generate gen
identifier id ident
image img
implementation impl
increment incr inc
index idx
information info
initialize init
initial init
instance inst
integer int
iterate iter
language lang
length len
level lvl
library lib
manager mgr
maximum max
memory mem
message msg
middleware mw
minimum min
module mod
multiple multi
navigation nav
number num
object obj
operation op
option opt
organization org
package pkg
parameter param
password pwd passwd
performance perf
permission perm
pointer ptr
position pos
previous prev
process proc
production prod
property prop
quantity qty
query q
random rand rng
reference ref
register reg
regular regex
remove rm
repository repo
request req
response resp res
result res
return ret
sequence seq
separator sep
service svc
session sess
signature sig
source src
specification spec
standard std
statement stmt
statistics stats
string str
structure struct
synchronize sync
system sys
table tbl
template tmpl tpl
temporary temp tmp
text txt
transaction tx txn
user usr
utility util
value val
variable var
vector vec
version ver
window win
"""


def _alternatives() -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for line in _TABLE.split("\n"):
        stems = [stem(word) for word in line.split()]
        for short in stems[1:]:
            if short != stems[0]:
                found.setdefault(stems[0], set()).add(short)
                found.setdefault(short, set()).add(stems[0])
    return {word: tuple(sorted(others)) for word, others in found.items()}


ALTERNATIVES: Final[dict[str, tuple[str, ...]]] = _alternatives()
"""Stem to the stems that may stand for it."""
