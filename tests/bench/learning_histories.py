"""Histories to replay: those of real repositories, and generated ones where no repository is at hand.

A generated history edits a real project by a plan that is written here and nowhere else: topics of 2 to 5 files, each
file joined because it imports or is imported by a member (40 %), lies beside one (25 %), or for no reason that the code
shows (35 %). Topics are chosen by a Zipf law, live for a part of the history, and commits leave out members (25 % each)
and take in strangers (one in five). Three commits in ten touch one file. Everything comes from one seed.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval_corpus import MAX_BYTES

from nm_lsp.graph.extract import parse_file
from nm_lsp.graph.model import NodeKind
from nm_lsp.graph.syntax import Unparsable
from nm_lsp.search.corpus import Corpus

MAX_FILES = 20
_EDITABLE = frozenset({NodeKind.FUNCTION, NodeKind.METHOD})


@dataclass(frozen=True)
class Change:
    """One commit: path → its text afterwards, None where it is removed; in the order the files were edited."""

    files: Mapping[str, str | None]


@dataclass(frozen=True)
class History:
    name: str
    start: Mapping[str, str]
    changes: Sequence[Change]


def of_repository(folder: Path, name: str, *, limit: int = 1_000) -> History:
    """The latest `limit` commits without merges, oldest first, with their text files; the first is where it starts."""

    def git(*arguments: str, stdin: bytes | None = None) -> bytes:
        done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, input=stdin)
        return done.stdout

    commits = git("rev-list", "--no-merges", "--reverse", "HEAD").decode().split()[-limit:]
    empty = git("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
    pairs = [(empty, commits[0]), *((f"{commit}~1", commit) for commit in commits[1:])]
    # path → blob after each commit, None where it was removed; links and submodules are no texts.
    blobs: list[dict[str, str | None]] = []
    for old, new in pairs:
        fields = git("diff-tree", "-r", "-z", "--no-renames", old, new).decode("utf-8", "replace").split("\0")
        rows = [(row.split(), path) for row, path in zip(fields[::2], fields[1::2], strict=False)]
        blobs.append({path: row[3] if row[4] != "D" else None for row, path in rows if row[1][:3] in ("100", "000")})
    texts = _texts(
        git("cat-file", "--batch", stdin="\n".join({b for row in blobs for b in row.values() if b}).encode())
    )
    states = [
        {
            path: texts.get(blob) if blob is not None else None
            for path, blob in row.items()
            if blob is None or blob in texts
        }
        for row in blobs
    ]
    start = {path: text for path, text in states[0].items() if text is not None}
    return History(name, start, [Change(files) for files in states[1:] if files])


def _texts(batch: bytes) -> dict[str, str]:
    """Blob → text, of what `git cat-file --batch` printed; without what is huge or no text."""
    texts, at = {}, 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        blob, _, size = batch[at:end].decode("ascii").split()
        data = batch[end + 1 : end + 1 + int(size)]
        at = end + int(size) + 2
        if len(data) <= MAX_BYTES and b"\0" not in data[:4096]:
            texts[blob] = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return texts


def generated(name: str, texts: Mapping[str, str], corpus: Corpus, *, n_commits: int, seed: int) -> History:
    """A made history over the sources `texts`, whose index is `corpus`."""
    chance = random.Random(seed)
    spots = {path: found for path, text in sorted(texts.items()) if (found := _editable(path, text))}
    topics = _topics(sorted(spots), corpus, chance)
    state = dict(texts)
    changes = []
    for n in range(n_commits):
        alive = [topic for topic in topics if topic.first <= n / n_commits <= topic.last] or topics
        weights = [1 / (1 + topic.rank) for topic in alive]
        topic = chance.choices(alive, weights)[0]
        files = [path for path in topic.files if chance.random() < 0.75]
        if chance.random() < 0.3:
            files = [chance.choice(topic.files)]
        elif chance.random() < 0.2:
            files.append(chance.choice(sorted(spots)))
        chance.shuffle(files)
        edited = {}
        for path in dict.fromkeys(files):
            favourite = topic.symbols[path] if path in topic.symbols else chance.choice(spots[path])
            symbol = favourite if chance.random() < 0.7 else chance.choice(spots[path])
            state[path] = _edit(state[path], symbol, n)
            edited[path] = state[path]
        if edited:
            changes.append(Change(edited))
    return History(name, dict(texts), changes)


@dataclass(frozen=True)
class _Topic:
    rank: int
    files: tuple[str, ...]
    symbols: Mapping[str, str]
    first: float
    last: float


def _topics(paths: Sequence[str], corpus: Corpus, chance: random.Random) -> list[_Topic]:
    imports: dict[str, set[str]] = {path: set() for path in paths}
    for path in paths:
        for other in corpus.resolver.imported_files(corpus.file_numbers[path]):
            target = corpus.file_path(other)
            if target in imports:
                imports[path].add(target)
                imports[target].add(path)
    topics = []
    for rank in range(max(12, len(paths) // 2)):
        files = [chance.choice(paths)]
        for _ in range(chance.randint(1, 4)):
            member, kind = chance.choice(files), chance.random()
            beside = [path for path in paths if path.rpartition("/")[0] == member.rpartition("/")[0]]
            choices = sorted(imports[member]) if kind < 0.4 else beside if kind < 0.65 else list(paths)
            files.append(chance.choice(choices or list(paths)))
        distinct = tuple(dict.fromkeys(files))
        first = chance.uniform(-0.3, 0.6)
        symbols = {path: chance.choice(_symbols_of(corpus, path)) for path in distinct}
        topics.append(_Topic(rank, distinct, symbols, first, first + chance.uniform(0.4, 1.2)))
    return topics


def _symbols_of(corpus: Corpus, path: str) -> list[str]:
    docs = corpus.file_docs(corpus.file_numbers[path])
    return [node.name for node in map(corpus.node, docs) if node.kind in _EDITABLE] or [""]


def _editable(path: str, text: str) -> list[str]:
    if not path.endswith(".py"):
        return []
    try:
        return [node.name for node in parse_file(path, text).nodes if node.kind in _EDITABLE]
    except Unparsable:
        return []


def _edit(text: str, symbol: str, n: int) -> str:
    """One more statement in the body of a function, at the line after its signature ends."""
    lines = text.splitlines(keepends=True)
    at = next((row for row, line in enumerate(lines) if f"def {symbol}(" in line), None)
    if at is None:
        return text + f"CHANGE_{n} = {n}\n"
    indent = len(lines[at]) - len(lines[at].lstrip()) + 4
    while at < len(lines) and not lines[at].rstrip().endswith(":"):
        at += 1
    return "".join([*lines[: at + 1], f"{' ' * indent}change_{n} = {n}\n", *lines[at + 1 :]])


def split(history: History, share: float = 0.7) -> tuple[Sequence[Change], Sequence[Change]]:
    """The first part to learn from, the rest to ask about."""
    at = int(len(history.changes) * share)
    return history.changes[:at], history.changes[at:]


def questions(test: Sequence[Change], known: frozenset[str]) -> Iterator[tuple[str, Change, frozenset[str]]]:
    """(given file, its commit, the other files of the commit), all of files that were there when learning ended.

    Commits of more than `MAX_FILES` ask nothing: a file of them goes with everything.
    """
    for change in (change for change in test if len(change.files) <= MAX_FILES):
        files = [path for path in change.files if path in known]
        for path in files:
            others = frozenset(files) - {path}
            if others:
                yield path, change, others
