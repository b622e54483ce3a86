"""Whether a folder lies on storage that is encrypted at rest, as far as Linux says.

Encrypted is: a folder with an fscrypt policy; a file system that encrypts by itself (ecryptfs, gocryptfs, encfs,
cryfs); a block device that is a dm-crypt mapping (LUKS), or consists of such devices alone (LVM, RAID, btrfs,
partitions, loop devices). Everything else is not, or cannot be told: ZFS, network file systems, disks that encrypt by
themselves, other systems than Linux. Whoever asks must take "cannot be told" for no. Swap, and copies that others make,
are not looked at.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ENCRYPTING: Final = frozenset({"ecryptfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs"})
_UNTOLD: Final = {
    "zfs": "a ZFS dataset, of which the system does not say whether it is encrypted",
    "tmpfs": "a file system in memory, which may be swapped out to any disk",
    "overlay": "a container's overlay, of which the system does not say where it is kept",
}
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_MAX_DEPTH: Final = 16

FS_ENCRYPT_FL: Final = 0x800
_FS_IOC_GETFLAGS: Final = 0x8000_6601 | struct.calcsize("l") << 16


@dataclass(frozen=True, slots=True)
class Protection:
    """`what` says on what a folder lies: "the LUKS device dm-0", "the unencrypted device sda1"."""

    is_encrypted: bool
    what: str


@dataclass(frozen=True, slots=True)
class _Mount:
    device: str
    point: str
    kind: str
    source: str


def file_flags(folder: Path) -> int:
    """The inode flags of a folder (`chattr`); 0 where the file system has none or this is not Linux."""
    if sys.platform != "linux":
        return 0
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return 0
    try:
        data = fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, bytes(struct.calcsize("l")))
        return int(struct.unpack("l", data)[0])
    except OSError:
        return 0
    finally:
        os.close(descriptor)


def protection_of(folder: Path, *, system: Path = Path("/"), flags: Callable[[Path], int] = file_flags) -> Protection:
    """On what `folder`, or the nearest folder above it that exists, is kept. `system` holds `proc` and `sys`."""
    place = next(candidate for candidate in (folder, *folder.parents) if candidate.exists()).resolve()
    if not (system / "proc" / "self" / "mountinfo").is_file():
        return Protection(False, "a disk of which this system does not say whether it is encrypted")
    if flags(place) & FS_ENCRYPT_FL:
        return Protection(True, "a folder with an encryption policy (fscrypt)")
    return _System(system).of_path(place, 0)


class _System:
    """What `/proc/self/mountinfo` and `/sys` say."""

    def __init__(self, root: Path) -> None:
        self._blocks = root / "sys" / "dev" / "block"
        self._classes = root / "sys" / "class" / "block"
        self._btrfs = root / "sys" / "fs" / "btrfs"
        self._mounts = list(_mounts((root / "proc" / "self" / "mountinfo").read_text("utf-8", "surrogateescape")))

    def of_path(self, place: Path, depth: int) -> Protection:
        text = os.fspath(place)
        around = [m for m in self._mounts if m.point == "/" or text == m.point or text.startswith(m.point + "/")]
        if not around:
            return Protection(False, "a file system that the system does not name")
        # Of two on one place the later one hides the other.
        mount = max(enumerate(around), key=lambda item: (len(item[1].point), item[0]))[1]
        if mount.kind in _ENCRYPTING:
            return Protection(True, f"an encrypting file system ({mount.kind})")
        if mount.kind in _UNTOLD:
            return Protection(False, _UNTOLD[mount.kind])
        if mount.kind == "btrfs":
            return self._all([self._of_block(block, depth) for block in self._btrfs_devices(mount.source)], "btrfs")
        block = self._blocks / mount.device
        if not block.exists():
            return Protection(False, f"a file system ({mount.kind}) of which the system does not name the device")
        return self._of_block(block, depth)

    def _of_block(self, block: Path, depth: int) -> Protection:
        device = block.resolve()
        if depth > _MAX_DEPTH:
            return Protection(False, f"the device {device.name}, whose parts have no end")
        if _line(device / "dm" / "uuid").startswith("CRYPT-"):
            return Protection(True, f"the encrypted device {_line(device / 'dm' / 'name') or device.name}")
        parts = sorted(device.glob("slaves/*"))
        if parts:
            return self._all([self._of_block(part, depth + 1) for part in parts], device.name)
        if (device / "partition").exists():
            return self._of_block(device.parent, depth + 1)
        backing = _line(device / "loop" / "backing_file")
        if backing:
            return self.of_path(Path(backing).parent, depth + 1)
        return Protection(False, f"the device {device.name}, which the system does not report as encrypted")

    def _btrfs_devices(self, source: str) -> list[Path]:
        """All devices of the file system that `source` is one of: a file may lie on any of them."""
        # A mapping's device has the name of its node: /dev/mapper/home is a link to it.
        name = Path(source).resolve().name
        for devices in self._btrfs.glob("*/devices"):
            found = sorted(devices.iterdir())
            mapped = {_line(device.resolve() / "dm" / "name") for device in found} - {""}
            if name in {device.name for device in found} or Path(source).name in mapped:
                return found
        return [self._classes / name] if (self._classes / name).exists() else []

    @staticmethod
    def _all(parts: list[Protection], name: str) -> Protection:
        if not parts:
            return Protection(False, f"{name}, of which the system does not name the devices")
        return next((part for part in parts if not part.is_encrypted), parts[0])


def _mounts(text: str) -> Iterator[_Mount]:
    """The lines of mountinfo, in their order: id, parent, device, root, point, options, optional fields, "-", kind,
    source, options."""
    for line in text.splitlines():
        left, mark, right = line.partition(" - ")
        fields, rest = left.split(" "), right.split(" ")
        if mark and len(fields) >= 6 and len(rest) >= 2:
            yield _Mount(fields[2], _plain(fields[4]), rest[0], _plain(rest[1]))


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)


def _line(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", "surrogateescape").rstrip("\n")
    return ""
