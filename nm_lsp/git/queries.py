"""What a repository holds and has done: history, differences, trees, blobs, the work tree's bytes.

Guarantees: nothing is written; ids are full; an answer is what git says about this clone, with grafts of a shallow
clone and without replacement objects. `GitUnavailable` (or `ObjectMissing`) whenever git does not answer.

Must not know: decisions, beyond the plain data of differences.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.base.folders import RealFolders
from nm_lsp.decisions.changes import Change
from nm_lsp.decisions.model import Content
from nm_lsp.git import parse
from nm_lsp.git.blobs import BlobReader, present
from nm_lsp.git.filters import FilterNotRun, filters_of, untrusted
from nm_lsp.git.place import Head, Place, read_head
from nm_lsp.git.process import Git

# Long walks of a big history are bounded by a time of their own.
_HISTORY_TIMEOUT_S: Final = 300.0
_MAX_ARGUMENTS: Final = 400


def _can_be_argument(text: str) -> bool:
    """Whether the system can hand `text` to a program."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """For messages: author, time in seconds since 1970 (UTC) and subject line of a commit."""

    commit: str
    author: str
    email: str
    time_s: int
    subject: str


@dataclass(frozen=True, slots=True)
class WorkTree:
    path: Path
    commit: str | None
    branch: str | None
    bare: bool


class Repository:
    """One work tree (or bare repository). A context manager: `close` ends its long-lived child."""

    def __init__(self, place: Place, *, executable: str = "git", timeout_s: float = 30.0) -> None:
        self.place = place
        self.git = Git(place.work_tree or place.git_dir, executable=executable, timeout_s=timeout_s, is_root=True)
        self.blobs = BlobReader(self.git)

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.blobs.close()

    # History

    def head(self) -> Head:
        return read_head(self.git)

    def commits(self, tips: Iterable[str], known: Iterable[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        """(commit, parents) of all commits reachable from `tips` but not from `known`, children before parents."""
        asked = [*tips, *("^" + commit for commit in known)]
        if not asked:
            return []
        output = self.git.run(
            "rev-list",
            "--topo-order",
            "--parents",
            "--stdin",
            stdin="".join(line + "\n" for line in asked).encode("ascii"),
            timeout_s=_HISTORY_TIMEOUT_S,
        )
        return parse.commit_parents(output)

    def first_parents(self, commit: str, count: int) -> tuple[str, ...]:
        """The last `count` first-parent ancestors of `commit`, nearest first, without itself."""
        output = self.git.run("rev-list", "--first-parent", f"--max-count={count + 1}", commit, "--")
        return tuple(output.decode("ascii").split()[1:])

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        """Whether `ancestor` is `commit` or in its history; False if the repository does not hold it."""
        if ancestor not in self.present([ancestor]):
            return False
        return self.git.run("rev-list", "--max-count=1", ancestor, f"^{commit}", "--") == b""

    def resolve(self, revision: str) -> str | None:
        """The full id of the commit that `revision` (a branch, tag or id) names, None if it names none here."""
        if not revision or revision.startswith("-") or not _can_be_argument(revision):
            return None
        output = self.git.run("rev-parse", "-q", "--verify", "--end-of-options", revision + "^{commit}", ok=(0, 1, 128))
        lines = output.decode("ascii", "replace").split()
        return lines[-1] if lines and len(lines[-1]) == self.place.id_length else None

    def commit_at(self, time: str, head: str) -> str | None:
        """The newest commit of HEAD's first-parent history at `time` (ISO 8601)."""
        output = self.git.run("rev-list", "--first-parent", "--max-count=1", f"--before={time}", head, "--")
        return output.decode("ascii").strip() or None

    def describe(self, commits: Iterable[str]) -> dict[str, CommitInfo]:
        """Author, time and subject of those of `commits` that are here."""
        asked = sorted(self.present(list(dict.fromkeys(commits))))
        if not asked:
            return {}
        output = self.git.run(
            "log",
            "--no-walk=unsorted",
            "--stdin",
            "-z",
            "--format=%H%n%an%n%ae%n%at%n%s",
            stdin="".join(commit + "\n" for commit in asked).encode("ascii"),
        )
        found = {}
        for row in output.split(b"\0"):
            fields = row.decode("utf-8", "replace").split("\n", 4)
            if len(fields) == 5:
                time_s = int(fields[3]) if fields[3].isdigit() else 0
                found[fields[0]] = CommitInfo(fields[0], fields[1], fields[2], time_s, fields[4].strip())
        return found

    # Trees and blobs

    def differences(
        self, pairs: Sequence[tuple[str | None, str]], paths: Sequence[str] = ()
    ) -> list[tuple[Change, ...]]:
        """Per (older commit or None for the empty tree, newer commit) what changed, without rename detection.

        With `paths`, files or folders, only what changed there, at a fraction of the cost.

        None is meant for commits without parents. The cost is one process and the changed paths.
        """
        if not pairs:
            return []
        lines = "".join(f"{new} {old}\n" if old else f"{new}\n" for old, new in pairs)
        output = self.git.run(
            "--literal-pathspecs",
            "diff-tree",
            "--stdin",
            "--root",
            "-r",
            "--raw",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "--always",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=none",
            "--",
            *paths,
            stdin=lines.encode("ascii"),
            timeout_s=_HISTORY_TIMEOUT_S,
        )
        return list(parse.raw_differences(output, len(pairs)))

    def similar(self, old: str, new: str, path: str) -> str | None:
        """Where git's rename detection at 50 % finds the file that `path` was, between two commits."""
        output = self.git.run(
            "diff-tree",
            "-r",
            "-z",
            "--no-commit-id",
            "-M50%",
            "-l2000",
            "--diff-filter=R",
            "--name-status",
            old,
            new,
            "--",
        )
        fields = output.decode("utf-8", "surrogateescape").split("\0")
        for at in range(0, len(fields) - 2, 3):
            if fields[at + 1] == path:
                return fields[at + 2]
        return None

    def additions(self, commit: str, paths: Sequence[str]) -> list[tuple[str, str]]:
        """(parent, commit) of the differences in the history of `commit` that may have added one of `paths`."""
        output = self.git.run(
            "--literal-pathspecs",
            "log",
            "--full-history",
            "--no-follow",
            "-m",
            "--diff-filter=A",
            "--no-renames",
            "--no-notes",
            "--name-only",
            "--format=tformat:commit %H %P",
            commit,
            "--",
            *paths,
            timeout_s=_HISTORY_TIMEOUT_S,
        )
        rows = (line.split() for line in output.decode("utf-8", "replace").splitlines() if line.startswith("commit "))
        whole = (row for row in rows if all(len(word) == self.place.id_length for word in row[1:]))
        return list(dict.fromkeys((parent, row[1]) for row in whole for parent in row[2:]))

    def names(self, commit: str) -> set[str]:
        """The paths of all files of `commit`."""
        output = self.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        return set(output.decode("utf-8", "surrogateescape").split("\0")) - {""}

    def files(self, commit: str, under: str = "") -> dict[str, Content]:
        """Path → content of all files of `commit`, or of those in the folder `under` (`src/auth/`)."""
        arguments = ["--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit]
        output = self.git.run(*arguments, "--", under) if under else self.git.run(*arguments)
        return parse.tree_entries(output)

    def contents(self, commit: str, paths: Iterable[str]) -> dict[str, Content]:
        """Path → content at `commit` of those of `paths` that are files there."""
        asked = list(dict.fromkeys(path for path in paths if path))
        if len(asked) > _MAX_ARGUMENTS:
            every = self.files(commit)
            return {path: every[path] for path in asked if path in every}
        if not asked:
            return {}
        return parse.tree_entries(
            self.git.run("--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", *asked)
        )

    def present(self, objects: Sequence[str]) -> set[str]:
        """Those of `objects` (full ids) that the repository holds. Nothing is fetched."""
        return present(self.git, objects)

    def blob(self, content: Content) -> bytes | None:
        """The bytes of a file or the target of a link; None where they are not here, and for a submodule."""
        return self.blobs.read(content.removeprefix("link:"))

    # The work tree

    def listing(self) -> list[str]:
        """Tracked files and untracked ones that are not ignored, each once, in byte order; for the index.

        Tracked files that were deleted from the disk are among them.
        """
        output = self.git.run("ls-files", "-z", "-c", "-o", "--exclude-standard", timeout_s=_HISTORY_TIMEOUT_S)
        return [parse.name(raw) for raw in dict.fromkeys(output.split(b"\0")) if raw]

    def uncommitted(self, head: Head) -> set[str]:
        """Paths whose work-tree bytes may differ from HEAD (tracked ones only; a touched file can be among them)."""
        if head.commit is None:
            return set(self.listing())
        output = self.git.run(
            "diff-index", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty", head.commit
        )
        return {parse.name(raw) for raw in output.split(b"\0") if raw}

    def working_contents(self, paths: Iterable[str]) -> dict[str, Content | None]:
        """Path → what `git add` would store of each of `paths` now, filters applied; None where nothing is.

        A file that a sparse checkout leaves out has the content of the index. None is also a folder that is no
        submodule, and what lies behind a link. Raises `FilterNotRun` where only the repository's program could tell.
        """
        root = self._root()
        found: dict[str, Content | None] = {}
        regular: list[str] = []
        folders = RealFolders(root)
        for path in dict.fromkeys(paths):
            found[path] = None
            try:
                mode = os.lstat(root / path).st_mode
                if not folders.is_inside(path):
                    continue
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(mode):
                regular.append(path)
            elif stat.S_ISLNK(mode):
                target = os.fsencode(os.readlink(root / path))  # noqa: PTH115 (the bytes matter, not the path)
                found[path] = "link:" + self._hashed("hash-object", "--stdin", "--no-filters", stdin=target)
            elif stat.S_ISDIR(mode) and (root / path / ".git").exists():
                commit = read_head(self.git.at(root / path)).commit
                found[path] = "commit:" + commit if commit else None
        self._refuse_filters(regular)
        found.update(self._hashed_files(regular))
        absent = [path for path, value in found.items() if value is None]
        if absent and self.setting("core.sparseCheckout", "--type=bool") == "true":
            found.update(self._left_out(absent))
        return found

    def hash_text(self, path: str, text: bytes) -> Content:
        """The blob id that `git add` would give `path` if it held `text`. Raises `FilterNotRun`."""
        self._refuse_filters([path])
        return self._hashed("hash-object", "--stdin", "--path", path, stdin=text)

    def as_stored(self, path: str, text: bytes) -> bytes:
        """What `git add` would store of `path` if it held `text`, filters applied. Raises `FilterNotRun`.

        git tells it of objects alone, so it makes one in a temporary folder.
        """
        self._refuse_filters([path])
        try:
            with tempfile.TemporaryDirectory(prefix="nm-lsp-") as folder:
                objects = Path(folder)
                blob = self.git.run("hash-object", "-w", "--stdin", "--path", path, stdin=text, objects=objects)
                return self.git.run("cat-file", "blob", blob.decode("ascii").strip(), objects=objects)
        except OSError as error:
            raise GitUnavailable(f"There is no temporary folder to work in: {error.strerror}.") from error

    def ignored(self, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that git ignores; tracked files are not."""
        asked = [path for path in dict.fromkeys(paths) if path]
        if not asked:
            return set()
        # A leading "./" keeps a name that begins with a colon from being read as pathspec magic.
        sent = b"".join(b"./" + os.fsencode(path) + b"\0" for path in asked)
        output = self.git.run("check-ignore", "-z", "--stdin", stdin=sent, ok=(0, 1))
        return {parse.name(raw).removeprefix("./") for raw in output.split(b"\0") if raw}

    def tracked(self, paths: Iterable[str]) -> dict[str, Content]:
        """Path → content in the index of those of `paths` that are tracked."""
        rows = self._index(list(paths))
        return {path: content for _, path, content in rows}

    def submodules(self) -> set[str]:
        """The paths of all submodules in the index."""
        return {path for _, path, content in self._index([]) if content.startswith("commit:")}

    # The repository

    def work_trees(self) -> list[WorkTree]:
        """All work trees, the main one first."""
        found: list[WorkTree] = []
        for block in self.git.run("worktree", "list", "--porcelain").split(b"\n\n"):
            facts = dict(_fact(line) for line in block.decode("utf-8", "surrogateescape").split("\n") if line)
            if "worktree" in facts:
                branch = facts.get("branch")
                commit = facts.get("HEAD", "")
                found.append(
                    WorkTree(
                        Path(facts["worktree"]),
                        commit if commit.strip("0") else None,
                        branch.removeprefix("refs/heads/") if branch else None,
                        "bare" in facts,
                    )
                )
        return found

    def root_commits(self, head: str) -> list[str]:
        """The commits without parents in the history of `head`, sorted."""
        output = self.git.run("rev-list", "--max-parents=0", head, "--", timeout_s=_HISTORY_TIMEOUT_S)
        return sorted(output.decode("ascii").split())

    def default_branch(self) -> str | None:
        """`origin/HEAD`, else `init.defaultBranch`, else main, master: the first of them that exists here."""
        output = self.git.run("symbolic-ref", "-q", "refs/remotes/origin/HEAD", ok=(0, 1, 128))
        remote = output.decode("utf-8", "surrogateescape").strip().removeprefix("refs/remotes/origin/")
        if remote:
            return remote
        names = [self.setting("init.defaultBranch"), "main", "master"]
        output = self.git.run("for-each-ref", "--format=%(refname:short)", "refs/heads/")
        branches = set(output.decode("utf-8", "surrogateescape").splitlines())
        return next((name for name in names if name in branches), None)

    def setting(self, key: str, *options: str) -> str | None:
        output = self.git.run("config", "-z", *options, "--get", key, ok=(0, 1), quick=True)
        return output.decode("utf-8", "replace").removesuffix("\0") or None

    def user(self) -> str | None:
        """`user.name <user.email>` as configured, None if there is no name."""
        user, email = self.setting("user.name"), self.setting("user.email")
        if user is None:
            return None
        return f"{user} <{email}>" if email else user

    def hooks_folder(self) -> Path:
        """Where git looks for hooks here (`core.hooksPath`, linked work trees and submodules considered)."""
        output = self.git.run("rev-parse", "--git-path", "hooks", own_hooks=True)
        return self.git.folder / Path(parse.name(output).removesuffix("\n"))

    def _root(self) -> Path:
        if self.place.work_tree is None:
            raise GitUnavailable("A bare repository has no files on disk.", hint="Open one of its work trees.")
        return self.place.work_tree

    def _hashed(self, *arguments: str, stdin: bytes) -> Content:
        return self.git.run(*arguments, stdin=stdin).decode("ascii").strip()

    def unknowable(self, paths: Iterable[str]) -> dict[str, str]:
        """Those of `paths` whose content only a program of the repository's own configuration could tell, with the name
        of that filter. One process where there is no such program."""
        names = untrusted(self.git, self._root())
        asked = list(paths)
        if not names or not asked:
            return {}
        return {path: name for path, name in filters_of(self.git, asked).items() if name in names}

    def _refuse_filters(self, paths: Sequence[str]) -> None:
        for path, name in self.unknowable(paths).items() if paths else ():
            raise FilterNotRun(path, name, self._root())

    def _hashed_files(self, paths: Sequence[str]) -> Iterator[tuple[str, Content | None]]:
        listed = [path for path in paths if "\n" not in path and not path.startswith('"')]
        try:
            sent = b"".join(os.fsencode(path) + b"\n" for path in listed)
            ids = self.git.run("hash-object", "--stdin-paths", stdin=sent).decode("ascii").split() if listed else []
            yield from zip(listed, ids, strict=True)
        except GitUnavailable:
            # One file that went away or cannot be read fails the whole list: ask one by one.
            for path in listed:
                yield path, self._hashed_file(path)
        for path in paths:
            if path not in listed:
                yield path, self._hashed_file(path)

    def _hashed_file(self, path: str) -> Content | None:
        if not (self._root() / path).is_file():
            return None
        return self.git.run("hash-object", "--", path).decode("ascii").strip()

    def _left_out(self, paths: Sequence[str]) -> dict[str, Content]:
        if not paths:
            return {}
        return {path: content for tag, path, content in self._index(paths) if tag == "S"}

    def _index(self, paths: Sequence[str]) -> list[tuple[str, str, Content]]:
        """(tag of `ls-files -t`, path, content) of the index, all of it if `paths` is empty or long."""
        few = list(paths) if len(paths) <= _MAX_ARGUMENTS else []
        output = self.git.run("--literal-pathspecs", "ls-files", "-z", "-t", "--stage", "--full-name", "--", *few)
        wanted = set(paths)
        rows = []
        for row in output.split(b"\0"):
            facts, _, raw = row.partition(b"\t")
            parts = facts.split(b" ")
            if len(parts) == 4:
                path, content = parse.name(raw), parse.content(parts[1], parts[2])
                if content is not None and (not wanted or path in wanted):
                    rows.append((parts[0].decode("ascii"), path, content))
        return rows


def _fact(line: str) -> tuple[str, str]:
    key, _, value = line.partition(" ")
    return key, value
