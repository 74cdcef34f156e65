"""Ways out of a lab, tried from inside: prints, as JSON, those that were open.

A program for a node. What it does changes nothing should it succeed: files and devices are opened
and not written to, mounts are the lab's own. Arguments: a socket of the host's, two directories of
it that the lab may write, and, where the host could make one, a device in its files.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from wanlat.emulator import syscalls

HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "tun", "fuse", "ptmx"}
OWN = {"/run", "/proc", "/proc/sys/net", "/dev/pts", "/dev/shm", "/etc/hosts"}
NEW_CGROUP_NAMESPACE, REMOUNT, DETACH, SEIZE = 0x02000000, 0x20, 0x2, 0x4206
LIBC = ctypes.CDLL(None, use_errno=True)


def succeeds(action: Callable[..., object], *arguments: object) -> bool:
    try:
        action(*arguments)
    except OSError:
        return False
    return True


def opens(path: str | Path, flags: int = os.O_WRONLY) -> bool:
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def mount_points() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines]


def hosts() -> set[str]:
    """The mount points of what is the host's and neither the lab's own nor given to it."""
    own = {*OWN, *sys.argv[2:4]}
    return {each for each in mount_points() if each not in own and not each.startswith("/run/")}


def files() -> Iterator[str]:
    for path in {"/etc", "/usr", "/tmp", "/sys/kernel", *hosts()}:
        if os.access(path, os.W_OK) and not Path(path).is_char_device():
            yield path


def settings() -> Iterator[str]:
    """Of the machine, below /proc. (Those of a node's network are its own.)"""
    for top in Path("/proc").iterdir():
        if not top.name.isdigit() and not top.is_symlink():
            for path in (top, *top.rglob("*")):
                is_nodes = path.is_relative_to("/proc/sys/net")
                # Root opens the others too, which have nothing that takes what is written.
                if path.is_file() and path.stat().st_mode & 0o222 and not is_nodes and opens(path):
                    yield str(path)


def modes() -> Iterator[str]:
    """Of what is the machine's below /proc, and set to what they are."""
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() and not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            if succeeds(os.chmod, path, mode):
                yield str(path)


def control_groups() -> Iterator[str]:
    """Those that a process could be started in, which can be read: CLONE_INTO_CGROUP."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4]
        if " - cgroup2 " in line and Path(point, "cgroup.procs").exists():
            yield point


def devices() -> Iterator[str]:
    for path in Path("/dev").rglob("*"):
        is_device = path.is_char_device() or path.is_block_device()
        if is_device and not path.is_symlink() and path.name not in HARMLESS:
            yield str(path)
    yield from filter(opens, sys.argv[4:])
    for name, kind in (("block", stat.S_IFBLK), ("character", stat.S_IFCHR)):
        if succeeds(os.mknod, f"/run/{name}", kind | 0o600, os.makedev(1, 3)):
            yield f"a {name} device"


def mounts() -> Iterator[str]:
    for kind in ("proc", "sysfs", "cgroup", "cgroup2", "debugfs", "securityfs"):
        if succeeds(syscalls.mount, kind, "/run/here", kind):
            yield kind
    if succeeds(syscalls.unshare, NEW_CGROUP_NAMESPACE):
        yield "cgroup namespace"


def remounts() -> Iterator[str]:
    for path in {*hosts(), *OWN}:
        if LIBC.umount2(path.encode(), DETACH) == 0:
            yield f"{path} unmounted"
    for path in hosts():
        if succeeds(syscalls.mount, "none", path, "", REMOUNT | syscalls.MS_BIND):
            yield f"{path} remounted"


def sockets() -> Iterator[str]:
    with socket.socket(socket.AF_UNIX) as client:
        if succeeds(client.connect, sys.argv[1]):
            yield sys.argv[1]


def processes() -> Iterator[str]:
    """The supervisor and wire, which lead to what they have and the lab's programs have not."""
    for proc in Path("/proc").glob("[0-9]*"):
        name = (proc / "comm").read_text().strip()
        if name in ("wanlat-lab", "wire"):
            yield from (
                f"{name} {way}" for way in ("root", "exe", "ns/mnt") if opens(proc / way, 0)
            )
            if LIBC.ptrace(SEIZE, int(proc.name), None, None) == 0:
                yield f"{name} traced"


def apart(flags: int, way: Callable[[], Iterator[str]]) -> list[str]:
    """Try a way in a process and namespaces of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            syscalls.unshare(flags)
            os.write(write, json.dumps(sorted(way())).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        found: list[str] = json.loads(pipe.read() or b'["it failed"]')
    os.waitpid(child, 0)
    return found


def main() -> None:
    """Try every way as the lab's root, and as another user namespace's."""
    Path("/run/here").mkdir()
    own = syscalls.CLONE_NEWNS
    found = {
        f"{way.__name__} {how}".strip(): apart(flags, way)
        for way in (
            files,
            settings,
            modes,
            control_groups,
            devices,
            mounts,
            remounts,
            sockets,
            processes,
        )
        for how, flags in (("", own), ("in a namespace", own | syscalls.CLONE_NEWUSER))
    }
    print(json.dumps({way: opened for way, opened in found.items() if opened}))


main()
