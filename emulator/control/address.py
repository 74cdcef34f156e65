"""Where a running lab listens: a socket that has a name and no file.

Linux keeps the names of such sockets (unix(7), "abstract") itself. They end with the process
that listens, however it dies, so none is ever stale; and they belong to the host's network
namespace, so nothing inside a lab reaches one. They have no permissions: both ends look at who
is on the other side instead, and talk to their own user alone.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "wanlat-lab"
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def name_of(pid: int) -> str:
    """Return the name at which this user's process ``pid`` listens. Raises LookupError."""
    for listener, name in _names():
        if listener == pid:
            return name
    raise LookupError(f"process {pid} has no lab that listens")


def listening() -> list[int]:
    """Return the processes of this user that listen as labs, in order."""
    return sorted({pid for pid, _ in _names()})


def listen() -> socket.socket:
    """Return a socket that listens at a name of this process. Raises OSError.

    Any user may take any name: a part of this one is random, so that none takes it before.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(f"\0{_PREFIX}/{os.geteuid()}/{os.getpid()}/{secrets.token_hex(16)}")
        made.listen()
    except BaseException:
        made.close()
        raise
    return made


def connect(pid: int, timeout_s: float) -> socket.socket:
    """Return a connection to a lab. Raises OSError."""
    try:
        name = name_of(pid)
    except LookupError as error:
        raise ConnectionRefusedError(errno.ECONNREFUSED, str(error)) from error
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.connect(f"\0{name}")
        if not is_ours(made):
            raise PermissionError(f"process {pid} is another user's")
    except BaseException:
        made.close()
        raise
    return made


def _names() -> Iterator[tuple[int, str]]:
    """Yield the processes of this user that listen, each with its name.

    A name that another user took, with the number of a process of this user, is left out: that
    process does not have its socket.
    """
    pattern = re.compile(rf"@({_PREFIX}/{os.geteuid()}/([0-9]{{1,10}})/[0-9a-f]{{32}})")
    sockets = cache(_sockets_of)
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines():
        # Num RefCount Protocol Flags Type St Inode Path; the flag is __SO_ACCEPTCON.
        fields = line.split(maxsplit=7)
        match = pattern.fullmatch(fields[-1]) if len(fields) == 8 else None
        if match and int(fields[3], 16) & 0x10000 and fields[6] in sockets(int(match[2])):
            yield int(match[2]), match[1]


def _sockets_of(pid: int) -> set[str]:
    """Return the inodes of the sockets that a process of this user has; none of another user's."""
    process, inodes = Path(f"/proc/{pid}"), set[str]()
    with suppress(OSError):
        if process.stat().st_uid != os.geteuid():
            return inodes
        for link in (process / "fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                inodes.update(re.findall(r"socket:\[([0-9]+)\]", str(link.readlink())))
    return inodes


def is_ours(connection: socket.socket) -> bool:
    """Return whether the other end is a process of this user."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _pid, uid, _gid = _CREDENTIALS.unpack(raw)
    return bool(uid == os.geteuid())
