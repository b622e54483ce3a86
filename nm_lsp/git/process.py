"""One call of git: its arguments, its environment, its end.

Guarantees: no shell, no terminal, no network, no inherited repository (`GIT_DIR`, `GIT_INDEX_FILE` and all others that
`git rev-parse --local-env-vars` names are left out), no optional locks, a time-out and a limit of output after which
git and what it started are ended. Nothing is written to the repository. git itself is never taken from the repository's
folder.

Must not know: what the answers mean.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from nm_lsp.base.errors import GitUnavailable
from nm_lsp.git.exchange import MAX_OUTPUT, TooMuch, exchange

DEFAULT_TIMEOUT_S: Final = 30.0
QUICK_TIMEOUT_S: Final = 3.0
"""For calls that read a few small files, and so for what an editor waits for."""
STALLED_S: Final = 30.0
"""After a quick call that was not answered, git is not asked again in that folder for so long."""

# Of git's own variables only those that say where git and its configuration are; whatever names a repository, an
# index, attributes, a pager, a diff program or a trace is left out.
_KEPT: Final = frozenset(
    {
        "GIT_ATTR_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
        "GIT_TEST_ASSUME_DIFFERENT_OWNER",
    }
)
_SET: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}
_OPTIONS: Final = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", "core.quotePath=false",
    "-c", "core.alternateRefsCommand=",
    "-c", "diff.external=",
    "-c", "log.showSignature=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
)  # fmt: skip
_NO_HOOKS: Final = ("-c", f"core.hooksPath={os.devnull}")
_OWNER: Final = re.compile(
    r"(?:dubious ownership in repository at|unsafe repository \()\s*'?([^'\n]*?)'?(?: is owned|\n|$)"
)
_INSTALL: Final = "Install git, or set `git.path` to it; `git --version` in a terminal shows whether it works."
_MISSING: Final = re.compile(
    r"bad object|missing (?:blob|tree|commit)|unable to read|not a valid object|could not fetch|promisor"
    r"|invalid object name|bad revision|unknown revision|not a tree object|needed a single revision",
    re.IGNORECASE,
)


class ObjectMissing(GitUnavailable):
    """The repository does not hold an object that was asked for (shallow, partial or damaged clone, or gc)."""


class NotARepository(GitUnavailable):
    """The folder is in no git repository."""


class Git:
    """Runs git in one folder. Safe to use from several threads.

    A git that hangs (a dead network drive, a broken installation) is waited for once, not by every call.
    """

    __slots__ = ("executable", "folder", "is_root", "timeout_s")
    _stalled: ClassVar[dict[tuple[str, Path], float]] = {}

    def __init__(
        self,
        folder: Path,
        *,
        executable: str = "git",
        timeout_s: float = DEFAULT_TIMEOUT_S,
        is_root: bool = False,
    ) -> None:
        """`is_root` says that the repository lies in `folder` itself: where it is gone, one around it is not asked."""
        self.folder = folder
        self.is_root = is_root
        self.executable = executable
        self.timeout_s = timeout_s

    def at(self, folder: Path) -> Git:
        """The same git in another folder."""
        return Git(folder, executable=self.executable, timeout_s=self.timeout_s, is_root=self.is_root)

    def run(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        ok: Sequence[int] = (0,),
        timeout_s: float | None = None,
        quick: bool = False,
        own_hooks: bool = False,
        objects: Path | None = None,
    ) -> bytes:
        """What `git <arguments>` prints. `own_hooks` leaves the configured path of the hooks as it is, to read it;
        `objects` is a folder that takes the place of the repository's objects.

        `quick` is for calls that take milliseconds: they are given up after `QUICK_TIMEOUT_S`, and all others with
        them for a while. Raises `NotARepository`, `ObjectMissing` or `GitUnavailable`.
        """
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        if quick:
            limit_s = min(limit_s, QUICK_TIMEOUT_S)
        place = (self.executable, self.folder)
        if time.monotonic() < self._stalled.get(place, 0.0):
            raise self._silent(arguments, "as it should a moment ago")
        child = self.start(
            *arguments, takes_input=stdin is not None, own_hooks=own_hooks, keep_stderr=True, objects=objects
        )
        with child:
            try:
                output, complaint = exchange(child, stdin, limit_s)
            except TooMuch:
                end(child)
                self._stalled[place] = time.monotonic() + STALLED_S
                raise self._endless(arguments) from None
            except subprocess.TimeoutExpired:
                end(child)
                if quick:
                    self._stalled[place] = time.monotonic() + STALLED_S
                raise self._silent(arguments, f"within {limit_s:g} seconds") from None
        if child.returncode not in ok:
            raise self._failure(arguments, child.returncode, complaint)
        return output

    def start(
        self,
        *arguments: str,
        takes_input: bool,
        own_hooks: bool = False,
        keep_stderr: bool = False,
        objects: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """A running git with pipes. The caller ends it (`end`)."""
        command = [self.executable, *_OPTIONS, *(() if own_hooks else _NO_HOOKS), *arguments]
        try:
            return subprocess.Popen(
                command,
                executable=program(self.executable),
                cwd=self.folder,
                env=self._environment(objects),
                stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if keep_stderr else subprocess.DEVNULL,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            if not self.folder.is_dir():
                raise GitUnavailable(f"{self.folder} is not a folder that can be read.") from error
            raise GitUnavailable(
                f"git cannot be started as {self.executable!r}: {error.strerror}.", hint=_INSTALL
            ) from error
        except OSError as error:
            raise GitUnavailable(f"git cannot be started: {error.strerror}.") from error

    def _environment(self, objects: Path | None) -> dict[str, str]:
        found = environment()
        if self.is_root:
            ceilings = found.get("GIT_CEILING_DIRECTORIES")
            above = str(self.folder.parent)
            found["GIT_CEILING_DIRECTORIES"] = f"{ceilings}{os.pathsep}{above}" if ceilings else above
        if objects is not None:
            found["GIT_OBJECT_DIRECTORY"] = str(objects)
        return found

    def _silent(self, arguments: Sequence[str], when: str) -> GitUnavailable:
        return GitUnavailable(
            f"git {arguments[0]} did not answer {when}.",
            hint=f"Run `git -C {quoted(self.folder)} status` to see what holds it up.",
        )

    def _endless(self, arguments: Sequence[str]) -> GitUnavailable:
        return GitUnavailable(
            f"git {arguments[0]} printed more than {MAX_OUTPUT >> 20} MB; {self.executable!r} may not be git.",
            hint=_INSTALL,
        )

    def _failure(self, arguments: Sequence[str], status: int, complaint: bytes) -> GitUnavailable:
        text = complaint.decode("utf-8", "replace").strip()
        owner = _OWNER.search(text)
        if owner:
            place = owner.group(1) or str(self.folder)
            return GitUnavailable(
                "git refuses to read this repository because another user owns it (dubious ownership).",
                hint=f"If you trust it, run: git config --global --add safe.directory {quoted(Path(place))}",
            )
        if not text:
            # git says what it refuses; a wrapper or a wrong program need not.
            raise GitUnavailable(
                f"{self.executable!r} failed without a word (exit status {status}); it may not be git.",
                hint=_INSTALL,
            )
        first = text.splitlines()[0]
        if "not a git repository" in text:
            return NotARepository(f"{self.folder} is in no git repository.")
        kind = ObjectMissing if _MISSING.search(text) else GitUnavailable
        shown = " ".join(argument for argument in arguments[:2] if len(argument) <= 60)
        return kind(
            f"git {shown} failed: {first[:300]}",
            hint=f"Run `git -C {quoted(self.folder)} fsck --connectivity-only` to see whether it is whole.",
        )


def program(name: str) -> str:
    """The absolute path of the program `name`, which may be absolute already.

    Only absolute folders of PATH count: the present folder is a repository's, and what lies there is not the user's.
    Raises `FileNotFoundError`.
    """
    if Path(name).is_absolute():
        return name
    if Path(name).name == name:
        suffixes = ("", ".exe") if sys.platform == "win32" else ("",)
        for found in (Path(folder, name + suffix) for folder in os.get_exec_path() for suffix in suffixes):
            if found.is_absolute() and found.is_file() and os.access(found, os.X_OK):
                return str(found)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def environment() -> dict[str, str]:
    """Our environment for git: without any repository of the parent's, in English, offline, without a terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return kept | _SET


def end(child: subprocess.Popen[bytes]) -> None:
    """End `child` and what it started (a filter, say), and collect it."""
    if child.poll() is None:
        if sys.platform == "win32":
            child.kill()
        else:
            # The child leads a session of its own, so its group is exactly what it started.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue  # Unsent input of a dead child is of no interest.
    child.wait()


def quoted(path: Path) -> str:
    """`path` as one word of a POSIX shell, for commands that people are told to run."""
    text = str(path)
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else "'" + text.replace("'", "'\\''") + "'"
