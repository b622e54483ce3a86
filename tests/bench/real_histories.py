"""Real git histories for the benchmarks that need them, unpacked from a Debian package that ships them as test data.

    apt-get install golang-github-go-git-go-git-fixtures-dev
    python tests/bench/real_histories.py FOLDER

Makes FOLDER/NAME a git repository with its files checked out at the newest commit, for each of `HISTORIES`.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = "golang-github-go-git-go-git-fixtures-dev"
SOURCE = Path("/usr/share/gocode/src/github.com/go-git/go-git-fixtures/data.go")
HISTORIES = {
    "spinnaker": "f2e0a8889a746f7600e07d2246a2e29a72f696be",
    "go-git": "3559b3b47e695b33b0913237a4df3357e739831c",
    "storable": "0d3d824fb5c930e7e7e1f0f399f2976847d31fd3",
    "rumprun-xen": "7861f2632868833a35fe5e4ab94f99638ec5129b",
}
"""Name → checksum of its pack: Python and shell, Go, Go, C."""


def git(folder: Path, *arguments: str, data: bytes | None = None) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, input=data, check=True, capture_output=True)
    return done.stdout.decode()


def packed(text: str, checksum: str) -> bytes:
    """The pack file that the Go source `text` holds as base64 of gzip. Raises SystemExit if it is not there."""
    found = re.search(rf'"/data/pack-{checksum}\.pack": \{{.*?compressed: `(.*?)`', text, re.DOTALL)
    if found is None:
        raise SystemExit(f"{SOURCE} holds no pack {checksum}; another version of {PACKAGE}?")
    return gzip.decompress(base64.b64decode(found[1].replace("\n", "")))


def unpack(folder: Path, pack: bytes) -> int:
    """Make `folder` a repository of the pack, at the tip with the most commits; returns their number."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "unpack-objects", "-q", data=pack)
    # A pack names no branches; of its tips the one with the longest history is taken.
    tips = re.findall("dangling commit ([0-9a-f]{40})", git(folder, "fsck", "--no-reflogs"))
    counted = [(int(git(folder, "rev-list", "--count", tip)), tip) for tip in tips]
    n_commits, newest = max(counted)
    git(folder, "update-ref", "refs/heads/main", newest)
    git(folder, "reset", "-q", "--hard")
    return n_commits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if not SOURCE.is_file():
        raise SystemExit(f"{SOURCE} is not there: apt-get install {PACKAGE}")
    text = SOURCE.read_text("ascii")
    for name, checksum in HISTORIES.items():
        if (folder / name).exists():
            print(f"{name}: there already", file=sys.stderr)
            continue
        print(f"{name}: {unpack(folder / name, packed(text, checksum))} commits")


if __name__ == "__main__":
    main()
