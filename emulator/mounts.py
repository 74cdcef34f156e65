"""What a lab sees of the host's files and devices: its mounts, made and then sealed.

Sealed: whatever is mounted by then can be neither unmounted nor made writable again from inside,
by anyone. The kernel locks the mounts that a mount namespace is given when its user namespace is
another than that of the namespace it is copied from (mount_namespaces(7), restrictions). So a
process in a further user namespace makes the copy, and the lab moves into it without that process:
it keeps its capabilities over its network, and may still mount what is its own.

It is the same for root: root of a lab is the host's root to whoever looks at file owners alone, as
/proc/sys, device nodes and sockets do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence

from wanlat.emulator import syscalls
from wanlat.emulator.machine import available_memory_bytes

LAB_DIRECTORY = "/run/wanlat"
NAMESPACE_DIRECTORY = "/run/netns"  # where iproute2 looks, so that `ip netns exec` works inside

_HARDENED = syscalls.MS_NOSUID | syscalls.MS_NODEV
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "net/tun", "fuse")
"""Those that any user may have: the last two act within the namespaces of who opens them."""
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_CGROUP_NAMESPACES = "/proc/sys/user/max_cgroup_namespaces"


def host_sockets() -> list[str]:
    """Return the paths of the Unix sockets bound in the network namespace that this process is in.

    Those below /run are left out: a lab has its own.
    """
    with open("/proc/net/unix", "rb") as file:
        paths = {os.fsdecode(path) for path in _paths_of_sockets(file.read())}
    return sorted(path for path in paths if not path.startswith("/run/"))


def _paths_of_sockets(table: bytes) -> Iterator[bytes]:
    """Yield the absolute paths in a table as /proc/net/unix is: a path may have line breaks."""
    path = b""
    for line in table.removesuffix(b"\n").split(b"\n"):
        fields = line.split(None, 7)
        if len(fields) >= 7 and fields[0].endswith(b":"):
            if path.startswith(b"/"):
                yield path
            path = fields[7] if len(fields) == 8 else b""
        else:  # of the path before, or the heading
            path += b"\n" + line
    if path.startswith(b"/"):
        yield path


def make_private(writable: Sequence[str], sockets: Iterable[str]) -> None:
    """Let nothing of the host's be written but directories, and give the lab what it may write.

    ``sockets``: paths to cover. Raises OSError.
    """
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    given = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in writable}
    read_only = syscalls.MOUNT_ATTR_RDONLY
    syscalls.set_attributes("/", add=read_only | syscalls.MOUNT_ATTR_NODEV, with_submounts=True)
    # What is available now, less an eighth. The kernel's own default, half of all memory, is too
    # little for stores of large objects on an idle machine, and more than there is on a busy one:
    # there a store should hear that its disk is full, and not be killed for its neighbour's data.
    room = f"size={(available_memory_bytes() or 0) // 8 * 7}"
    _mount_proc()
    _cover_control_groups()
    syscalls.mount("tmpfs", "/run", "tmpfs", _HARDENED, f"mode=755,{room}")
    for directory in (LAB_DIRECTORY, NAMESPACE_DIRECTORY):
        os.mkdir(directory)  # noqa: PTH102 - pathlib takes longer to import than this to run
    _mount_devices(room)
    for path, fd in given.items():
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - it may be below /run
        syscalls.mount(f"/proc/self/fd/{fd}", path, flags=syscalls.MS_BIND)
        syscalls.set_attributes(path, remove=read_only)
        os.close(fd)
    _cover_sockets(sockets)


def seal() -> None:
    """Lock all mounts there are (see above). Raises OSError.

    No process may be left in the mount namespace that is the caller's now: it could still undo
    what is locked here.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = os.fork()
        if child == 0:
            _send_locked_copy(theirs)
        theirs.close()
        reply, fds, _, _ = socket.recv_fds(ours, 16, 1)
    os.waitpid(child, 0)
    if not fds:
        number = int(reply or errno.EIO)
        raise OSError(number, f"unshare: {os.strerror(number)}")
    syscalls.setns(fds[0], syscalls.CLONE_NEWNS)
    os.close(fds[0])


def _send_locked_copy(to: socket.socket) -> None:
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        copy = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        socket.send_fds(to, [b"0"], [copy])
    except OSError as error:
        to.send(str(error.errno).encode())
    finally:
        os._exit(0)


def _mount_proc() -> None:
    """Mount a /proc of the lab's processes, in which all that is the machine's is read-only.

    Also what has no write permission: the host's root may change its mode, which is the host's too.

    Those below /proc/sys/net are the network namespace's, that is the node's, of whoever opens
    them, and stay writable. Sealed, this /proc keeps the kernel from mounting a whole one beside
    it (mount_too_revealing(), fs/namespace.c).
    """
    syscalls.mount("proc", "/proc", "proc", _HARDENED | syscalls.MS_NOEXEC)
    # In a namespace of its own its owner could mount control groups anew, and write to them.
    with contextlib.suppress(FileNotFoundError), open(_CGROUP_NAMESPACES, "w") as file:
        file.write("0")
    for path in _entries_of_the_machine():
        syscalls.mount(path, path, flags=syscalls.MS_BIND)
        syscalls.set_attributes(path, add=syscalls.MOUNT_ATTR_RDONLY)
    syscalls.mount("/proc/sys/net", "/proc/sys/net", flags=syscalls.MS_BIND)
    syscalls.set_attributes("/proc/sys/net", remove=syscalls.MOUNT_ATTR_RDONLY)


def _entries_of_the_machine() -> Iterator[str]:
    """Yield all of /proc that belongs to no process."""
    with os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdigit() and not entry.is_symlink():
                yield entry.path


def _cover_control_groups() -> None:
    """Mount nothing on every hierarchy of version 2.

    Who can open a group, if only to read it, may start a process in it: CLONE_INTO_CGROUP, which
    no read-only mount prevents.
    """
    with open("/proc/self/mountinfo", "rb") as file:
        lines = [line.split(b" - cgroup2 ") for line in file]
    for point in (before.split()[4] for before, *after in lines if after):
        # A space, a tab, a line break and a backslash are three octal digits (proc(5)).
        path = os.fsdecode(point.decode("unicode_escape").encode("latin-1"))
        with contextlib.suppress(FileNotFoundError):  # something else is mounted above it
            syscalls.mount("tmpfs", path, "tmpfs", _HARDENED | syscalls.MS_RDONLY)


def _cover_sockets(paths: Iterable[str]) -> None:
    """Mount something else on sockets: a read-only mount does not keep one from connecting."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            if _is_socket(path):
                syscalls.mount("/dev/null", path, flags=syscalls.MS_BIND)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:  # it is gone, or out of reach, for the lab as well
        return False


def _mount_devices(room: str) -> None:
    """Put a /dev of few devices on the host's, and terminals and shared memory of the lab's own."""
    host = os.open("/dev", os.O_PATH | os.O_DIRECTORY)
    syscalls.mount("tmpfs", "/dev", "tmpfs", syscalls.MS_NOSUID, "mode=755")
    for directory in ("/dev/net", "/dev/pts", "/dev/shm"):
        os.mkdir(directory)  # noqa: PTH102
    for name in _DEVICES:
        with contextlib.suppress(FileNotFoundError):
            os.stat(name, dir_fd=host)
            device = f"/dev/{name}"
            os.close(os.open(device, os.O_CREAT | os.O_WRONLY))
            syscalls.mount(f"/proc/self/fd/{host}/{name}", device, flags=syscalls.MS_BIND)
            syscalls.set_attributes(device, remove=syscalls.MOUNT_ATTR_NODEV)
    os.close(host)
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"/dev/{name}")  # noqa: PTH211
    syscalls.set_attributes("/dev", add=syscalls.MOUNT_ATTR_RDONLY)
    syscalls.mount("devpts", "/dev/pts", "devpts", syscalls.MS_NOSUID, "newinstance,ptmxmode=666")
    syscalls.mount("tmpfs", "/dev/shm", "tmpfs", _HARDENED, f"mode=1777,{room}")
