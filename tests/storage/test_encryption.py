"""Whether a folder lies on encrypted storage, over copies of what Linux shows of real machines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nm_lsp.storage.encryption import FS_ENCRYPT_FL, Protection, protection_of

LUKS = "CRYPT-LUKS2-0123456789abcdef-luks-0123"
LVM = "LVM-abcdefghijklmnop"


class Machine:
    """`/proc/self/mountinfo` and `/sys` of a machine, with links as the kernel makes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.home.mkdir()
        self._lines: list[str] = []
        (root / "proc" / "self").mkdir(parents=True)
        (root / "sys" / "dev" / "block").mkdir(parents=True)
        (root / "sys" / "class" / "block").mkdir(parents=True)

    def mount(self, point: Path | str, kind: str, device: str, source: str) -> None:
        """A mount with optional fields before the dash, as real ones have, and blanks written as octal numbers."""
        shown = str(point).replace(" ", "\\040")
        n = len(self._lines)
        self._lines.append(f"{n} 1 {device} / {shown} rw,relatime shared:{n} master:1 - {kind} {source} rw")
        (self.root / "proc" / "self" / "mountinfo").write_text("\n".join(self._lines) + "\n")

    def disk(self, name: str, number: str, *, uuid: str = "", dm_name: str = "", parts: tuple[str, ...] = ()) -> Path:
        device = self.root / "sys" / "devices" / name
        return self._block(device, name, number, uuid=uuid, dm_name=dm_name, parts=parts)

    def partition(self, disk: str, name: str, number: str) -> None:
        device = self._block(self.root / "sys" / "devices" / disk / name, name, number)
        (device / "partition").write_text("1\n")

    def loop(self, name: str, number: str, backing: Path) -> None:
        device = self.disk(name, number)
        (device / "loop").mkdir()
        (device / "loop" / "backing_file").write_text(f"{backing}\n")

    def btrfs(self, *names: str) -> None:
        devices = self.root / "sys" / "fs" / "btrfs" / "0123-uuid" / "devices"
        devices.mkdir(parents=True)
        for name in names:
            (devices / name).symlink_to((self.root / "sys" / "class" / "block" / name).resolve())

    def _block(
        self, device: Path, name: str, number: str, *, uuid: str = "", dm_name: str = "", parts: tuple[str, ...] = ()
    ) -> Path:
        device.mkdir(parents=True)
        (device / "slaves").mkdir()
        (self.root / "sys" / "dev" / "block" / number).symlink_to(device)
        (self.root / "sys" / "class" / "block" / name).symlink_to(device)
        for part in parts:
            (device / "slaves" / part).symlink_to((self.root / "sys" / "class" / "block" / part).resolve())
        if uuid:
            (device / "dm").mkdir()
            (device / "dm" / "uuid").write_text(f"{uuid}\n")
            (device / "dm" / "name").write_text(f"{dm_name}\n")
        return device

    def of(self, folder: Path, flags: int = 0) -> Protection:
        return protection_of(folder, system=self.root, flags=lambda _folder: flags)


def plain_partition(m: Machine) -> None:
    m.disk("sda", "8:0")
    m.partition("sda", "sda1", "8:1")
    m.mount("/", "ext4", "8:1", "/dev/sda1")


def luks(m: Machine) -> None:
    m.disk("sda", "8:0")
    m.partition("sda", "sda2", "8:2")
    m.disk("dm-0", "253:0", uuid=LUKS, dm_name="cryptroot", parts=("sda2",))
    m.mount("/", "ext4", "253:0", "/dev/mapper/cryptroot")


def lvm_on_luks(m: Machine) -> None:
    luks(m)
    m.disk("dm-1", "253:1", uuid=LVM, dm_name="vg-home", parts=("dm-0",))
    m.mount(m.home, "xfs", "253:1", "/dev/mapper/vg-home")


def luks_on_lvm(m: Machine) -> None:
    m.disk("sda", "8:0")
    m.disk("dm-0", "253:0", uuid=LVM, dm_name="vg-home", parts=("sda",))
    m.disk("dm-1", "253:1", uuid=LUKS, dm_name="home", parts=("dm-0",))
    m.mount(m.home, "ext4", "253:1", "/dev/mapper/home")


def lvm_half_on_luks(m: Machine) -> None:
    luks(m)
    m.disk("sdb", "8:16")
    m.disk("dm-1", "253:1", uuid=LVM, dm_name="vg-home", parts=("dm-0", "sdb"))
    m.mount(m.home, "ext4", "253:1", "/dev/mapper/vg-home")


def raid_of_luks(m: Machine) -> None:
    m.disk("dm-0", "253:0", uuid=LUKS, dm_name="a")
    m.disk("dm-1", "253:1", uuid=LUKS, dm_name="b")
    m.disk("md0", "9:0", parts=("dm-0", "dm-1"))
    m.mount(m.home, "ext4", "9:0", "/dev/md0")


def partition_of_luks(m: Machine) -> None:
    m.disk("dm-0", "253:0", uuid=LUKS, dm_name="a")
    m.partition("dm-0", "dm-0p1", "259:0")
    m.mount(m.home, "ext4", "259:0", "/dev/dm-0p1")


def plain_home_on_a_luks_system(m: Machine) -> None:
    luks(m)
    m.disk("sdb", "8:16")
    m.mount(m.home, "ext4", "8:16", "/dev/sdb")


def the_later_mount_hides_the_earlier(m: Machine) -> None:
    lvm_on_luks(m)
    m.disk("sdb", "8:16")
    m.mount(m.home, "ext4", "8:16", "/dev/sdb")


def a_neighbours_mount_is_not_ours(m: Machine) -> None:
    plain_partition(m)
    m.mount(f"{m.home}2", "ecryptfs", "0:40", "/x")


def gocryptfs(m: Machine) -> None:
    plain_partition(m)
    m.mount(m.home, "fuse.gocryptfs", "0:50", "/home/.cipher")


def ecryptfs_with_a_blank(m: Machine) -> None:
    plain_partition(m)
    (m.home / "my work").mkdir()
    m.mount(m.home / "my work", "ecryptfs", "0:51", "/home/.Private")
    m.home = m.home / "my work"


def zfs(m: Machine) -> None:
    m.mount("/", "zfs", "0:30", "rpool/ROOT")


def nfs(m: Machine) -> None:
    m.mount("/", "nfs4", "0:60", "server:/export")


def memory(m: Machine) -> None:
    m.mount("/", "tmpfs", "0:25", "tmpfs")


def container(m: Machine) -> None:
    m.mount("/", "overlay", "0:70", "overlay")


def btrfs_on_luks(m: Machine) -> None:
    m.disk("dm-0", "253:0", uuid=LUKS, dm_name="cryptroot")
    m.btrfs("dm-0")
    m.mount("/", "btrfs", "0:21", "/dev/mapper/cryptroot")


def btrfs_half_on_luks(m: Machine) -> None:
    m.disk("dm-0", "253:0", uuid=LUKS, dm_name="cryptroot")
    m.disk("sdb", "8:16")
    m.btrfs("dm-0", "sdb")
    m.mount("/", "btrfs", "0:21", "/dev/mapper/cryptroot")


def loop_on_luks(m: Machine) -> None:
    luks(m)
    m.loop("loop0", "7:0", Path("/var/image"))
    m.mount(m.home, "ext4", "7:0", "/dev/loop0")


def loop_on_plain(m: Machine) -> None:
    plain_partition(m)
    m.loop("loop0", "7:0", Path("/var/image"))
    m.mount(m.home, "ext4", "7:0", "/dev/loop0")


def nothing_known(m: Machine) -> None:
    m.mount("/elsewhere", "ext4", "8:1", "/dev/sda1")


ENCRYPTED = {
    luks: "the encrypted device cryptroot",
    lvm_on_luks: "the encrypted device cryptroot",
    luks_on_lvm: "the encrypted device home",
    raid_of_luks: "the encrypted device a",
    partition_of_luks: "the encrypted device a",
    gocryptfs: "an encrypting file system (fuse.gocryptfs)",
    ecryptfs_with_a_blank: "an encrypting file system (ecryptfs)",
    btrfs_on_luks: "the encrypted device cryptroot",
    loop_on_luks: "the encrypted device cryptroot",
}
NOT_ENCRYPTED = {
    plain_partition: "the device sda,",
    lvm_half_on_luks: "the device sdb,",
    plain_home_on_a_luks_system: "the device sdb,",
    the_later_mount_hides_the_earlier: "the device sdb,",
    a_neighbours_mount_is_not_ours: "the device sda,",
    zfs: "a ZFS dataset",
    nfs: "a file system (nfs4) of which the system does not name the device",
    memory: "a file system in memory",
    container: "a container's overlay",
    btrfs_half_on_luks: "the device sdb,",
    loop_on_plain: "the device sda,",
    nothing_known: "a file system that the system does not name",
}


@pytest.mark.parametrize("made", ENCRYPTED)
def test_encrypted(tmp_path: Path, made: Callable[[Machine], None]) -> None:
    machine = Machine(tmp_path)
    made(machine)
    assert machine.of(machine.home / "not" / "there" / "yet") == Protection(True, ENCRYPTED[made])


@pytest.mark.parametrize("made", NOT_ENCRYPTED)
def test_not_encrypted_or_not_to_be_told(tmp_path: Path, made: Callable[[Machine], None]) -> None:
    machine = Machine(tmp_path)
    made(machine)
    found = machine.of(machine.home)
    assert not found.is_encrypted
    assert found.what.startswith(NOT_ENCRYPTED[made])


def test_a_folder_with_a_policy_of_its_own(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    plain_partition(machine)
    assert machine.of(machine.home, FS_ENCRYPT_FL).is_encrypted
    assert not machine.of(machine.home, 0x80000).is_encrypted


def test_another_system_cannot_tell(tmp_path: Path) -> None:
    assert not protection_of(tmp_path, system=tmp_path / "none").is_encrypted


@pytest.mark.skipif(sys.platform != "linux", reason="reads this machine's own /proc and /sys")
def test_this_machine_is_read_without_a_fault(tmp_path: Path) -> None:
    assert protection_of(tmp_path).what
