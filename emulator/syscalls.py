"""The few Linux calls that Python 3.11 does not offer: namespaces, mounts, parent-death signal.

Sources: man pages unshare(2), setns(2), mount(2), mount_setattr(2), prctl(2), capabilities(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Container, Iterable

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NODEV = 0x4

_MNT_DETACH = 0x2
_SYS_MOUNT_SETATTR = 442  # the same on every architecture since it was new
_AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAPBSET_DROP = 24
_CAPABILITIES = range(64)  # as many as a capability set has bits

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str, path: str | None = None) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}", path)


def unshare(flags: int) -> None:
    """Move the calling process into new namespaces. Raises OSError."""
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    """Enter the namespace that ``fd`` refers to. Raises OSError."""
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, fstype: str = "", flags: int = 0, data: str = "") -> None:
    """Mount ``source`` on ``target``. Raises OSError; its ``filename`` is the target."""
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), fstype.encode(), flags, data.encode() or None
    )
    _check(result, f"mount {fstype or 'bind'}", target)


def set_attributes(
    target: str, *, add: int = 0, remove: int = 0, with_submounts: bool = False
) -> None:
    """Add attributes to a mount and remove others. Before Linux 5.12 it does nothing.

    Raises OSError.
    """
    mount_attr = struct.pack("=4Q", add, remove, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE if with_submounts else 0),
        mount_attr,
        ctypes.c_size_t(len(mount_attr)),
    )
    if result != 0 and ctypes.get_errno() != errno.ENOSYS:
        _check(result, f"mount_setattr of {target}")


def open_proc(at: str) -> int:
    """Return a descriptor of a /proc mounted anew, which ends with it and is seen nowhere.

    It is on the directory ``at`` for a moment. Before Linux 5.8 it is the /proc there already is.
    """
    mount("proc", at, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    try:
        return os.open(at, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        _check(_libc.umount2(os.fsencode(at), _MNT_DETACH), f"umount of {at}")


def die_with_parent(signal: int) -> None:
    """Have the kernel send ``signal`` to this process when its parent ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl PR_SET_PDEATHSIG")


def adopt_orphans() -> None:
    """Have the kernel make this process the parent of every orphan among its descendants."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl PR_SET_CHILD_SUBREAPER")


def limit_capabilities(kept: Container[int]) -> None:
    """Have no program that this process starts from now on get capabilities other than ``kept``.

    The process itself keeps those it has. Raises OSError.
    """
    for capability in _CAPABILITIES:
        if capability in kept:
            continue
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            if ctypes.get_errno() == errno.EINVAL:  # the kernel has no more
                return
            _check(-1, "prctl PR_CAPBSET_DROP")


def set_process_name(name: str) -> None:
    """Name this process in ``ps`` (15 characters at most)."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def wait_readable(descriptors: Iterable[int], timeout_s: float | None = None) -> set[int]:
    """Wait until one can be read, has hung up, or (a pidfd) its process has ended.

    Returns those; none after ``timeout_s``. Unlike select(), takes descriptors above 1023.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    timeout_ms = None if timeout_s is None else round(timeout_s * 1000)
    return {descriptor for descriptor, _ in poll.poll(timeout_ms)}
